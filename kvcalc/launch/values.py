"""One text of a launch -> the value that its engine reads, or what is wrong with it."""

import math
import re
from typing import Any

from kvcalc.errors import KvcalcError
from kvcalc.launch.flags.dialect import Flag

_SIZE = re.compile(r"([+-]?\d+(?:\.\d+)?)\s*(?:([kKmMgGtT])(i?)[bB]?)?")
_DECIMAL, _BINARY = 1000, 1024
_POWERS = {"k": 1, "m": 2, "g": 3, "t": 4}
_TRUE, _FALSE = frozenset({"true", "1", "yes", "on"}), frozenset({"false", "0", "no", "off"})


class BadValueError(KvcalcError, ValueError):
    """A value that the engine would refuse; the message says what it should be."""


def read(flag: Flag, value: Any, file: str) -> Any:  # noqa: ANN401 - text, or what a document holds
    """Return the value of a flag as its engine reads it.

    Raises
    ------
    BadValueError
        If it is not of the flag's kind.
    """
    return _READERS[flag.kind](value, file)


def _integer(value: Any, _: str) -> int:  # noqa: ANN401
    number = _number(value, _)
    if number != int(number):
        raise BadValueError(f"{value!r} is not a whole number")
    return int(number)


def _number(value: Any, _: str) -> float:  # noqa: ANN401
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise BadValueError(f"{value!r} is not a plain number")
    return number


def _count(value: Any, _: str) -> int:  # noqa: ANN401
    count = _integer(value, _)
    if count < 1:
        raise BadValueError(f"{value!r} is not a count of at least 1")
    return count


def _size(value: Any, _: str) -> float:  # noqa: ANN401
    """Read `32k` (decimal) and `32K` or `32Ki` (binary), as vLLM's human-readable integers."""
    if value in ("auto", "-1", -1):
        return -1.0
    match = _SIZE.fullmatch(str(value).strip())
    if match is None or isinstance(value, bool):
        raise BadValueError(f"{value!r} is not a number such as 32768, 32k (32,000) or 32K (32,768)")
    number, letter, binary = float(match[1]), match[2] or "", match[3]
    if not letter:
        return number
    base = _BINARY if binary or letter.isupper() else _DECIMAL
    return float(number * base ** _POWERS[letter.lower()])


def _layers(value: Any, _: str) -> int | str:  # noqa: ANN401
    """Read llama.cpp's number of layers on the GPU; as many as fit and all of them are words."""
    if value in ("auto", "all"):
        return str(value)
    layers = _integer(value, _)
    return "auto" if layers == -1 else "all" if layers < -1 else layers


def _text(value: Any, _: str) -> str:  # noqa: ANN401
    return str(value)


def _switch(value: Any, _: str) -> bool:  # noqa: ANN401
    word = str(value).lower()
    if word not in _TRUE | _FALSE:
        raise BadValueError(f"{value!r} is neither true nor false")
    return word in _TRUE


def _off(value: Any, file: str) -> bool:  # noqa: ANN401
    return not _switch(value, file)


def _json(value: Any, file: str) -> Any:  # noqa: ANN401
    from kvcalc.documents import parse_json

    if not isinstance(value, str):
        return value
    try:
        return parse_json(value, file)
    except KvcalcError as error:
        reason = str(error).removeprefix(f"{file}:").removeprefix(f"{file}: ")
        raise BadValueError(f"not JSON ({reason}): {value:.60}") from None


def _items(value: Any, file: str) -> list[Any]:  # noqa: ANN401
    found = _json(value, file)
    if not isinstance(found, list) or not all(isinstance(item, dict) for item in found):
        raise BadValueError(f"{value!s:.60} is no list of objects")
    return found


_READERS = {
    "count": _count,
    "integer": _integer,
    "number": _number,
    "size": _size,
    "layers": _layers,
    "text": _text,
    "switch": _switch,
    "off": _off,
    "json": _json,
    "items": _items,
}
