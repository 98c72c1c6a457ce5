"""A model shape as a document that people write, and back.

All values are counts, so the YAML file and the built-in table hold the same plain data; reading is
strict: an unknown or missing key names file, key and the nearest valid one.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast, get_args

from kvcalc.errors import ProfileError, did_you_mean
from kvcalc.shapes.components import (
    MOST_ELEMENTS,
    Attention,
    Component,
    Growth,
    GrowthKind,
    ModelShape,
    Split,
    Storage,
    Tensor,
)

_GROWTHS: tuple[str, ...] = get_args(GrowthKind)
_SHAPE_KEYS = (
    "model_type",
    "layers",
    "hidden",
    "query_heads",
    "max_tokens",
    "dtype",
    "kv_dtype",
    "state_dtype",
    "cache",
    "draft",
    "engine_cache",
    "notes",
)


def shape_keys() -> tuple[str, ...]:
    """Return the keys of a profile that describe its shape."""
    return _SHAPE_KEYS


def shape_to_document(shape: ModelShape) -> dict[str, Any]:
    """Return the shape as plain data, absent values left out."""
    document: dict[str, Any] = {
        "model_type": shape.model_type,
        "layers": shape.layers,
        "hidden": shape.hidden,
        "query_heads": shape.query_heads,
        "max_tokens": shape.max_tokens,
        "dtype": shape.dtype,
        "kv_dtype": shape.kv_dtype,
        "state_dtype": shape.state_dtype,
        "cache": [_component_to_document(part) for part in shape.components],
        "draft": [_component_to_document(part) for part in shape.draft],
        "engine_cache": {
            engine: [_component_to_document(part) for part in parts]
            for engine, parts in shape.engine_components.items()
        },
        "notes": list(shape.notes),
    }
    return {key: value for key, value in document.items() if value not in (None, [], {})}


def shape_from_document(name: str, document: Mapping[str, Any], where: str) -> ModelShape:
    """Build a shape from plain data, refusing what is unknown, missing or of the wrong type."""
    reader = Reader(document, where, _SHAPE_KEYS)
    engine_cache = document.get("engine_cache") or {}
    if not isinstance(engine_cache, Mapping):
        raise ProfileError(f"{where}: engine_cache: expected one list of components per engine")
    return ModelShape(
        name=name,
        model_type=reader.text("model_type"),
        components=_components(document.get("cache"), f"{where}: cache"),
        layers=reader.count("layers"),
        hidden=reader.count("hidden"),
        query_heads=reader.count("query_heads"),
        max_tokens=reader.count("max_tokens") if document.get("max_tokens") is not None else None,
        dtype=reader.text("dtype", "bf16"),
        kv_dtype=reader.text("kv_dtype", "") or None,
        state_dtype=reader.text("state_dtype", "") or None,
        draft=_components(document.get("draft") or [], f"{where}: draft", empty=True),
        engine_components={
            str(engine): _components(parts, f"{where}: engine_cache.{engine}")
            for engine, parts in engine_cache.items()
        },
        notes=tuple(str(note) for note in document.get("notes") or ()),
    )


class Reader:
    """Strict access to one mapping of a document."""

    def __init__(self, data: Any, where: str, known: Sequence[str]) -> None:  # noqa: ANN401 - as parsed
        if not isinstance(data, Mapping):
            raise ProfileError(f"{where}: expected keys and values, got {data!r:.60}")
        for key in data:
            if key not in known:
                raise ProfileError(f"{where}: {key}: unknown key{did_you_mean(str(key), list(known))}")
        self.data = data
        self.where = where

    def count(self, key: str, default: int | None = None) -> int:
        """Return a whole number >= 0."""
        value = self.data.get(key, default)
        if value is None:
            raise ProfileError(f"{self.where}: {key}: missing")
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < MOST_ELEMENTS:
            raise ProfileError(f"{self.where}: {key}: {value!r} is not a whole number >= 0")
        return value

    def text(self, key: str, default: str | None = None, choices: Sequence[str] = ()) -> str:
        """Return a word, one of `choices` when given."""
        value = self.data.get(key, default)
        if value is None:
            raise ProfileError(f"{self.where}: {key}: missing")
        if not isinstance(value, str):
            raise ProfileError(f"{self.where}: {key}: {value!r} is not a word")
        if choices and value not in choices:
            raise ProfileError(f"{self.where}: {key}: {value!r}{did_you_mean(value, list(choices))}")
        return value


def _component_to_document(part: Component) -> dict[str, Any]:
    growth: dict[str, Any] = {"growth": part.growth.kind}
    if part.growth.kind != "linear":
        growth["size"] = part.growth.size
    document: dict[str, Any] = {"kind": part.kind, "layers": layer_ranges(part.layers), **growth}
    document["entry"] = [_tensor_to_document(tensor) for tensor in part.entry]
    if part.attention is not None:
        attention = {
            "query_heads": part.attention.query_heads,
            "key_dim": part.attention.key_dim,
            "value_dim": part.attention.value_dim,
            "top_k": part.attention.top_k,
        }
        document["attention"] = {key: value for key, value in attention.items() if value is not None}
    return document


def _tensor_to_document(tensor: Tensor) -> dict[str, Any]:
    document = {"name": tensor.name, "heads": tensor.heads, "width": tensor.width}
    for key, default in (("rows", 1), ("split", "heads"), ("storage", "kv")):
        if getattr(tensor, key) != default:
            document[key] = getattr(tensor, key)
    return document


def _components(data: Any, where: str, empty: bool = False) -> tuple[Component, ...]:  # noqa: ANN401
    if not isinstance(data, Sequence) or isinstance(data, str) or not (data or empty):
        raise ProfileError(f"{where}: expected a list of components")
    return tuple(_component(item, f"{where}[{index}]") for index, item in enumerate(data))


def _component(data: Any, where: str) -> Component:  # noqa: ANN401
    reader = Reader(data, where, ("kind", "layers", "growth", "size", "entry", "attention"))
    kind = reader.text("growth", "linear", _GROWTHS)
    size = reader.count("size") if kind != "linear" else 0
    if kind in ("window", "chunk", "strided") and size < 1:
        raise ProfileError(f"{where}: size: a {kind} needs at least 1")
    entry = reader.data.get("entry")
    if not isinstance(entry, Sequence) or isinstance(entry, str) or not entry:
        raise ProfileError(f"{where}: entry: expected a list of tensors")
    attention = reader.data.get("attention")
    return Component(
        kind=reader.text("kind"),
        layers=layers_from(reader.data.get("layers"), f"{where}: layers"),
        entry=tuple(_tensor(item, f"{where}: entry[{index}]") for index, item in enumerate(entry)),
        growth=Growth(cast(GrowthKind, kind), size),
        attention=None if attention is None else _attention(attention, f"{where}: attention"),
    )


def _tensor(data: Any, where: str) -> Tensor:  # noqa: ANN401
    reader = Reader(data, where, ("name", "heads", "width", "rows", "split", "storage"))
    return Tensor(
        name=reader.text("name"),
        heads=reader.count("heads"),
        width=reader.count("width"),
        rows=reader.count("rows", 1),
        split=cast(Split, reader.text("split", "heads", get_args(Split))),
        storage=cast(Storage, reader.text("storage", "kv", get_args(Storage))),
    )


def _attention(data: Any, where: str) -> Attention:  # noqa: ANN401
    reader = Reader(data, where, ("query_heads", "key_dim", "value_dim", "top_k"))
    top_k = reader.count("top_k") if reader.data.get("top_k") is not None else None
    return Attention(reader.count("query_heads"), reader.count("key_dim"), reader.count("value_dim"), top_k)


def layer_ranges(layers: Iterable[int]) -> str:
    """Write layer indices the short way: (0, 1, 2, 5) as "0-2,5"."""
    spans: list[list[int]] = []
    for layer in layers:
        if spans and layer == spans[-1][1] + 1:
            spans[-1][1] = layer
        else:
            spans.append([layer, layer])
    return ",".join(f"{first}-{last}" if first != last else str(first) for first, last in spans)


def layers_from(data: Any, where: str) -> tuple[int, ...]:  # noqa: ANN401
    """Read layer indices written the short way."""
    text = str(data) if isinstance(data, int) and not isinstance(data, bool) else data
    if not isinstance(text, str) or not text:
        raise ProfileError(f"{where}: expected layer indices such as '0-31' or '0,2,4-6', got {data!r}")
    layers: list[int] = []
    for span in text.split(","):
        first, dash, last = span.partition("-")
        if not first.strip().isdigit() or (dash and not last.strip().isdigit()):
            raise ProfileError(f"{where}: {span!r} is not a layer or a range of layers")
        stop = int(last or first)
        if not int(first) <= stop < 10_000:
            raise ProfileError(f"{where}: {span!r} is not a range of layers below 10,000")
        layers.extend(range(int(first), stop + 1))
    return tuple(layers)
