"""Carries objects over to the mirror, with traced numbers in place of those that are inputs."""

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from kvcalc.tracing.mirror import Mirror, is_mirrored

Leaf = Callable[[str, Any], Any]
"""Gives what stands in place of a number or a tuple at a dotted path: itself, or a traced input."""


def lifted(mirror: Mirror, value: Any, path: str, leaf: Leaf) -> Any:
    """Return the same object of the mirror's own classes."""
    if isinstance(value, (bool, str, type(None))):
        return value
    if isinstance(value, (int, float)):
        return leaf(path, value)
    if isinstance(value, Mapping):
        return {key: lifted(mirror, item, _at(path, key), leaf) for key, item in value.items()}
    if isinstance(value, tuple):
        whole = leaf(path, value)
        if whole is not value:
            return whole
    if isinstance(value, (tuple, list, frozenset)):
        items = [lifted(mirror, item, _at(path, place), leaf) for place, item in enumerate(value)]
        return type(value)(items)
    if is_dataclass(value) and not isinstance(value, type):
        return _lifted_object(mirror, value, path, leaf)
    return value


def _at(path: str, name: object) -> str:
    return f"{path}.{name}" if path else str(name)


def _lifted_object(mirror: Mirror, value: Any, path: str, leaf: Leaf) -> Any:
    kind = type(value)
    if is_mirrored(kind.__module__):
        kind = getattr(mirror.load(kind.__module__), kind.__qualname__)
    made = object.__new__(kind)
    for item in fields(value):
        object.__setattr__(
            made, item.name, lifted(mirror, getattr(value, item.name), _at(path, item.name), leaf)
        )
    return made


__all__ = ["lifted"]
