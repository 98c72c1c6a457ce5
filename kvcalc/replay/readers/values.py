"""Checked values of one line of a trace."""

import math
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from kvcalc.documents import describe

_NUMBER = re.compile(r"[-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?")

MOST_TOKENS = 2**40
"""Largest length that is believed [token]."""

Row = Mapping[str, Any]
"""One line as parsed."""


class BrokenLineError(Exception):
    """A line that cannot be used; the message says why."""


def whole(row: Row, key: str, default: int | None = None) -> int:
    """Return a length in tokens: a whole number of at least 0."""
    value = row.get(key, default)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if value is None:
        raise BrokenLineError(f"{key}: missing")
    if isinstance(value, bool) or not isinstance(value, int):
        raise BrokenLineError(f"{key}: {describe(value)} is not a whole number")
    if value < 0:
        raise BrokenLineError(f"{key}: {value} is negative")
    if value > MOST_TOKENS:
        raise BrokenLineError(f"{key}: {value} is more than any request has")
    return value


def seconds(row: Row, key: str, unit: float = 1.0) -> float:
    """Return a time: a number of `unit` seconds, its text, or an ISO date; NaN where there is none."""
    value = row.get(key)
    if value is None:
        return math.nan
    found = _date(value) if isinstance(value, str) and not _NUMBER.fullmatch(value.strip()) else math.nan
    if math.isnan(found) and not isinstance(value, bool):
        try:
            found = float(value) * unit
        except (TypeError, ValueError, OverflowError):
            found = math.nan
    if not math.isfinite(found):
        raise BrokenLineError(f"{key}: {describe(value)} is not a time")
    return found


def _date(text: str) -> float:
    try:
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError):
        return math.nan


def name(row: Row, *keys: str) -> str | None:
    """Return the first of the names that the row has, as text."""
    for key in keys:
        value = row.get(key)
        if isinstance(value, (str, int)) and not isinstance(value, bool):
            return str(value)
        if value is not None:
            raise BrokenLineError(f"{key}: {describe(value)} is not a name")
    return None


def listed(row: Row, key: str) -> list[Any]:
    """Return a list."""
    value = row.get(key)
    if value is None:
        raise BrokenLineError(f"{key}: missing")
    if not isinstance(value, list):
        raise BrokenLineError(f"{key}: expected a list, got {describe(value)}")
    return value


def inner(row: Row, key: str) -> Row:
    """Return a mapping inside the row."""
    value = row.get(key)
    if not isinstance(value, Mapping):
        raise BrokenLineError(f"{key}: expected a mapping, got {describe(value)}")
    return value
