"""Any frozen dataclass of annotated quantities -> JSON data, and the unit of each of its numbers."""

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, get_type_hints

import numpy as np


def public(value: Any) -> dict[str, Any]:  # noqa: ANN401 - any dataclass
    """Return the fields of a dataclass by name."""
    return {item.name: getattr(value, item.name) for item in fields(value)}


def plain(value: Any) -> Any:  # noqa: ANN401 - any field of any result
    """Return a field as JSON data: dataclasses to dicts, numpy to Python, NaN to None."""
    if is_dataclass(value) and not isinstance(value, type):
        return {name: plain(item) for name, item in public(value).items()}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return [plain(item) for item in value.tolist()]
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value


def units_of(kind: type) -> dict[str, str]:
    """Return the unit of every numeric field by dotted key; list items share the key of the list."""
    found: dict[str, str] = {}
    _collect_units(kind, "", found)
    return found


def _collect_units(kind: type, prefix: str, found: dict[str, str]) -> None:
    for name, hint in get_type_hints(kind, include_extras=True).items():
        if name.isupper():
            continue
        unit, nested = _unit_of(hint)
        if unit:
            found[prefix + name] = unit
        elif nested is not None:
            _collect_units(nested, prefix + name + ".", found)


def _unit_of(hint: Any) -> tuple[str | None, type | None]:  # noqa: ANN401 - a type hint
    metadata = getattr(hint, "__metadata__", None)
    if metadata and isinstance(metadata[0], str):
        return metadata[0], None
    if isinstance(hint, type) and is_dataclass(hint):
        return None, hint
    for inner in getattr(hint, "__args__", ()):
        unit, nested = _unit_of(inner)
        if unit or nested:
            return unit, nested
    return None, None
