"""Metadata keys of one architecture, read strictly, and the heads of its attention layers."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from kvcalc.errors import UnsupportedModelError
from kvcalc.shapes.components import LINEAR, Component, Growth
from kvcalc.shapes.families.attention import kv_component
from kvcalc.shapes.readers.gguf.file import SKIPPED, Header

MOST_LAYERS = 512
"""llama.cpp's LLAMA_MAX_LAYERS."""


def read_architecture(header: Header) -> str:
    """Return the architecture that the file names, whose keys begin with it."""
    named = header.metadata.get("general.architecture")
    if isinstance(named, str):
        return named
    later = "; give the first part of a split file" if "split.no" in header.metadata else ""
    raise UnsupportedModelError(f"{header.where}: general.architecture: missing{later}")


class Keys:
    """The metadata of one architecture, read strictly and by short name (``attention.head_count``)."""

    def __init__(self, header: Header, architecture: str) -> None:
        self.where = header.where
        self.data = header.metadata
        self.architecture = architecture
        self.blocks = self.size("block_count")
        if self.blocks > MOST_LAYERS:
            raise self.refuse("block_count", f"{self.blocks} is more than {MOST_LAYERS} layers")
        drafts = self.whole("nextn_predict_layers", 0)
        if drafts >= self.blocks:
            raise self.refuse("nextn_predict_layers", f"{drafts} of {self.blocks} layers")
        self.layers = self.blocks - drafts  # the model's own; draft layers follow them

    def refuse(self, key: str, reason: str) -> UnsupportedModelError:
        """Return the error that says what about a key is not understood."""
        return UnsupportedModelError(
            f"{self.where}: {self.architecture}.{key}: {reason} (architecture {self.architecture!r})"
        )

    def raw(self, key: str) -> Any:  # noqa: ANN401 - whatever the file holds
        """Return the value of a key, or None."""
        return self.data.get(f"{self.architecture}.{key}")

    def whole(self, key: str, default: int | None = None) -> int:
        """Return a whole number of at least 0; a missing one is an error unless it has a default."""
        value = self.raw(key)
        if value is None:
            if default is None:
                raise self.refuse(key, "missing")
            return default
        if isinstance(value, bool):
            raise self.refuse(key, f"expected a whole number, got {value}")
        return self._whole(key, value)

    def size(self, key: str, default: int | None = None) -> int:
        """Return a whole number of at least 1."""
        value = self.whole(key, default)
        if value < 1:
            raise self.refuse(key, f"{value} must be at least 1")
        return value

    def per_layer(self, key: str, default: Sequence[int] | None = None) -> list[int]:
        """Return one whole number a layer, drafts included, from a list or a number for all."""
        value = self.raw(key)
        if value is None and default is not None:
            return list(default)
        if not isinstance(value, tuple):
            return [self.whole(key)] * self.blocks
        if len(value) not in (self.blocks, self.layers):
            raise self.refuse(key, f"{len(value)} entries for {self.blocks} layers")
        numbers = [self._whole(key, item) for item in value]
        return numbers + [0] * (self.blocks - len(numbers))

    def _whole(self, key: str, value: Any) -> int:  # noqa: ANN401
        if value is SKIPPED or not isinstance(value, int) or not 0 <= value < 2**32:
            shown = "a long list or text" if value is SKIPPED else repr(value)
            raise self.refuse(key, f"expected a whole number, got {shown:.60}")
        return int(value)


@dataclass(frozen=True)
class Heads:
    """Head counts and widths of every layer, draft layers included."""

    query: list[int]
    kv: list[int]
    key_width: int
    value_width: int
    window_key_width: int
    window_value_width: int

    def components(
        self, kind: str, layers: Iterable[int], growth: Growth = LINEAR, windowed: bool = False
    ) -> list[Component]:
        """Return the layers as components, one for each number of KV heads; a layer without has none."""
        key = self.window_key_width if windowed else self.key_width
        value = self.window_value_width if windowed else self.value_width
        groups: dict[tuple[int, int], list[int]] = {}
        for layer in layers:
            if self.kv[layer]:
                groups.setdefault((self.kv[layer], self.query[layer]), []).append(layer)
        return [
            kv_component(kind, group, kv, key, value, query, growth) for (kv, query), group in groups.items()
        ]


def read_heads(keys: Keys) -> Heads:
    """Read the heads; widths are hidden / heads of the first layer where the file gives none."""
    query = keys.per_layer("attention.head_count")
    if not query[0] and keys.raw("attention.key_length") is None:
        raise keys.refuse("attention.key_length", "missing, and the first layer has no heads")
    width = keys.size("embedding_length") // query[0] if query[0] else None
    key = keys.size("attention.key_length", width)
    value = keys.size("attention.value_length", width)
    return Heads(
        query=query,
        kv=keys.per_layer("attention.head_count_kv", query),
        key_width=key,
        value_width=value,
        window_key_width=keys.size("attention.key_length_swa", key),
        window_value_width=keys.size("attention.value_length_swa", value),
    )


Built = tuple[list[Component], list[Component], tuple[str, ...]]
"""Components, draft components, notes."""


def full_attention(heads: Heads, layers: Iterable[int]) -> list[Component]:
    """Return layers that keep keys and values of the whole context."""
    return heads.components("full_attention", layers)


def drafts(keys: Keys) -> range:
    """Return the layers that only speculative decoding runs; they follow the model's own."""
    return range(keys.layers, keys.blocks)
