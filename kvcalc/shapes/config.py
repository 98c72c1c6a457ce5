"""One Hugging Face config.json, read with aliases and nesting, remembering what was understood.

A config is data from a stranger: nothing of it is executed, and a key that changes the cache but
that no family has read is an error (`refuse_unread`), never a silent fall-through.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from kvcalc.errors import UnsupportedModelError

NESTED = ("text_config", "llm_config", "language_config", "thinker_config", "decoder", "language_model")
"""Where multimodal checkpoints keep the language model, first hit first."""

_REQUIRED = object()


class Config:
    """Read-only view of a config that looks into the nested text config first."""

    def __init__(self, data: Mapping[str, Any], where: str = "config.json") -> None:
        self.where = where
        self.top = data
        self.text = _innermost(data)
        self.read: set[str] = set()

    @property
    def model_type(self) -> str:
        """`model_type` of the language model, else of the whole checkpoint, else ''."""
        return str(self.text.get("model_type") or self.top.get("model_type") or "")

    @property
    def outer_model_type(self) -> str:
        """`model_type` of the whole checkpoint."""
        return str(self.top.get("model_type") or "")

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

    def integer(self, *names: str, default: Any = _REQUIRED) -> int:  # noqa: ANN401
        """Return the first of `names` as an int, or raise an error that names file and key."""
        value = self.own(*names)
        if value is None:
            if default is _REQUIRED:
                raise UnsupportedModelError(
                    f"{self.where}: {names[0]}: missing (model_type {self.model_type!r} needs it)"
                )
            return default  # type: ignore[no-any-return]
        if isinstance(value, bool) or not isinstance(value, (int, float)) or value != int(value):
            raise UnsupportedModelError(f"{self.where}: {names[0]}: {value!r} is not a whole number")
        if not 0 <= value < 2**48:
            raise UnsupportedModelError(f"{self.where}: {names[0]}: {value!r} is out of range")
        return int(value)

    def words(self, name: str, length: int | None = None) -> list[str] | None:
        """Return a per-layer list of words, checked for type and length; None when absent."""
        value = self.own(name)
        if value is None:
            return None
        if not isinstance(value, Sequence) or isinstance(value, str):
            raise UnsupportedModelError(f"{self.where}: {name}: expected a list, got {value!r:.60}")
        if length is not None and len(value) != length:
            raise UnsupportedModelError(f"{self.where}: {name}: {len(value)} entries for {length} layers")
        return [str(word) for word in value]


def _innermost(data: Mapping[str, Any]) -> Mapping[str, Any]:
    for key in NESTED:
        inner = data.get(key)
        if isinstance(inner, Mapping) and inner:
            return _innermost(inner)
    return data
