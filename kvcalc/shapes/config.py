"""One Hugging Face config.json, read with aliases and nesting, remembering what was understood.

A config is data from a stranger: nothing of it is executed, and a key that changes the cache but
that no family has read is an error (`refuse_unread`), never a silent fall-through.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from kvcalc.errors import UnsupportedModelError
from kvcalc.shapes.components import MOST_ELEMENTS
from kvcalc.shapes.harmless_keys import suspicious

NESTED = (
    "text_config",
    "llm_config",
    "llm_cfg",
    "language_config",
    "thinker_config",
    "decoder",
    "decoder_config",
    "language_model",
)
"""Where multimodal checkpoints keep the language model, first hit first."""

MOST_LAYERS = 4096
"""A number of layers beyond this is a mistake, or meant to exhaust memory; known models have 126 at most."""

_REQUIRED = object()


class Config:
    """Read-only view of a config that looks into the nested text config first."""

    def __init__(self, data: Mapping[str, Any], where: str = "config.json") -> None:
        self.where = where
        self.top = data
        self.text = _innermost(data)
        self.read: set[str] = set()

    @property
    def nested(self) -> bool:
        """Whether the language model is a part of a larger checkpoint."""
        return self.text is not self.top

    @property
    def model_type(self) -> str:
        """`model_type` of the language model, else of the whole checkpoint, else ''."""
        return str(self.text.get("model_type") or self.top.get("model_type") or "")

    @property
    def outer_model_type(self) -> str:
        """`model_type` of the whole checkpoint."""
        return str(self.top.get("model_type") or "")

    def with_defaults(self, defaults: Mapping[str, Any]) -> "Config":
        """Return this config with values for keys that the text config does not have at all.

        A key that is present and null stays null: it says that a feature is off.
        """
        filled = Config(self.top, self.where)
        filled.text = {**defaults, **self.text}
        filled.read = self.read
        return filled

    def section(self, name: str) -> "Config | None":
        """Return the mapping under `name` as a config of its own; None when absent.

        What is read there counts as read here, so that `refuse_unread` covers sections too.
        """
        value = self.own(name)
        if value is None:
            return None
        if not isinstance(value, Mapping):
            raise UnsupportedModelError(f"{self.where}: {name}: expected a section, got {value!r:.60}")
        part = Config({"model_type": self.model_type}, f"{self.where}: {name}")
        part.text = value
        part.read = self.read
        return part

    def get(self, *names: str, default: Any = None) -> Any:  # noqa: ANN401 - JSON holds anything
        """Return the first of `names` that is present and not null, text config before top level."""
        self.read.update(names)
        for source in (self.text, self.top):
            for name in names:
                if source.get(name) is not None:
                    return source[name]
        return default

    def own(self, *names: str, default: Any = None) -> Any:  # noqa: ANN401
        """Like `get`, in the text config alone (top-level values may describe a vision tower)."""
        self.read.update(names)
        for name in names:
            if self.text.get(name) is not None:
                return self.text[name]
        return default

    def has(self, name: str) -> bool:
        """Whether the text config mentions `name`, be it as null."""
        return name in self.text

    def flag(self, name: str, default: bool = False) -> bool:
        """Return a switch; anything but true, false or null is refused."""
        value = self.own(name)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise UnsupportedModelError(f"{self.where}: {name}: expected true or false, got {value!r:.60}")
        return value

    def integer(self, *names: str, default: Any = _REQUIRED) -> int:  # noqa: ANN401
        """Return the first of `names` as an int, or raise an error that names file and key."""
        value = self.own(*names)
        if value is None:
            if default is _REQUIRED:
                raise UnsupportedModelError(
                    f"{self.where}: {names[0]}: missing (model_type {self.model_type!r} needs it)"
                )
            return default  # type: ignore[no-any-return]
        name = next(name for name in names if self.text.get(name) is not None)
        return self._whole(name, value)

    def size(self, *names: str, default: Any = _REQUIRED) -> int:  # noqa: ANN401
        """Like `integer`, for a count or width that must be at least 1."""
        value = self.integer(*names, default=default)
        if value is not None and value < 1:
            raise UnsupportedModelError(f"{self.where}: {names[0]}: {value} must be at least 1")
        return value

    def layer_count(self, *names: str, default: Any = _REQUIRED, least: int = 1) -> int:  # noqa: ANN401
        """Like `size`, for a number of layers, which has an upper end as well."""
        value = self.integer(*names, default=default)
        if not least <= value <= MOST_LAYERS:
            raise UnsupportedModelError(
                f"{self.where}: {names[0]}: {value} is not within {least} to {MOST_LAYERS} layers"
            )
        return value

    def words(self, name: str, length: int | None = None) -> list[str] | None:
        """Return a per-layer list of words, checked for type and length; None when absent."""
        value = self._list(name, length)
        return None if value is None else [str(word) for word in value]

    def integers(self, name: str, length: int | None = None) -> list[int] | None:
        """Return a list of whole numbers, checked for type and length; None when absent."""
        value = self._list(name, length)
        return None if value is None else [self._whole(name, number) for number in value]

    def refuse(self, name: str, reason: str) -> UnsupportedModelError:
        """Return the error that says what about key `name` is not understood."""
        return UnsupportedModelError(
            f"{self.where}: {name}: {reason} (model_type {self.model_type or self.outer_model_type!r})"
        )

    def refuse_unread(self) -> None:
        """Raise `UnsupportedModelError` if a key may change the cache and no family has read it."""
        unread = set(suspicious(self.top, {*self.read, *NESTED}))
        if unread:
            names = ", ".join(repr(name) for name in sorted(unread)[:8])
            more = f" and {len(unread) - 8} more" if len(unread) > 8 else ""
            raise UnsupportedModelError(
                f"{self.where}: {names}{more}: not understood for model_type "
                f"{self.model_type!r}, and may change what its cache holds"
            )

    def _whole(self, name: str, value: Any) -> int:  # noqa: ANN401
        if isinstance(value, bool) or not isinstance(value, (int, float)) or value % 1 != 0:
            raise UnsupportedModelError(f"{self.where}: {name}: {value!r:.60} is not a whole number")
        if not 0 <= value < MOST_ELEMENTS:
            raise UnsupportedModelError(f"{self.where}: {name}: {value!r:.60} is out of range")
        return int(value)

    def _list(self, name: str, length: int | None) -> Sequence[Any] | None:
        value = self.own(name)
        if value is None:
            return None
        if not isinstance(value, Sequence) or isinstance(value, str):
            raise UnsupportedModelError(f"{self.where}: {name}: expected a list, got {value!r:.60}")
        if length is not None and len(value) != length:
            raise UnsupportedModelError(f"{self.where}: {name}: {len(value)} entries for {length} layers")
        return value


def _innermost(data: Mapping[str, Any]) -> Mapping[str, Any]:
    for key in NESTED:
        inner = data.get(key)
        if isinstance(inner, Mapping) and inner:
            return _innermost(inner)
    return data
