"""JSON from strangers: bounded in size and depth, refused in one line that names file and place."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kvcalc.errors import ProfileError

MAX_BYTES = 8 * 2**20
"""Largest file that is read [byte]; real configs have 0.3 to 40 KiB, quantization lists included."""

MAX_DEPTH = 64
"""Deepest nesting that is accepted; real configs have at most 8 levels."""


def read_json(path: Path) -> Mapping[str, Any]:
    """Read a JSON object from a file that nobody has checked."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise ProfileError(f"{path}: cannot be read: {error.strerror or error}") from None
    if len(data) > MAX_BYTES:
        raise ProfileError(f"{path}: larger than {MAX_BYTES // 2**20} MiB, which no config.json is")
    return parse_json(data, str(path))


def parse_json(data: bytes, where: str) -> Mapping[str, Any]:
    """Return the JSON object in `data`, or say where it is malformed."""
    try:
        parsed = json.loads(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise ProfileError(f"{where}: byte {error.start}: not UTF-8 text") from None
    except json.JSONDecodeError as error:
        raise ProfileError(f"{where}: line {error.lineno} column {error.colno}: {error.msg}") from None
    except RecursionError:
        raise ProfileError(f"{where}: nested more than {MAX_DEPTH} levels deep") from None
    except ValueError:  # an integer of more digits than Python converts
        raise ProfileError(f"{where}: holds a number that is out of range") from None
    return checked_object(parsed, where)


def checked_object(parsed: object, where: str) -> Mapping[str, Any]:
    """Return `parsed` if it is a mapping of bounded depth."""
    if not isinstance(parsed, Mapping):
        raise ProfileError(f"{where}: expected an object of keys and values, got {type(parsed).__name__}")
    level: list[object] = [parsed]
    for _ in range(MAX_DEPTH):
        level = [inner for outer in level for inner in _inside(outer)]
        if not level:
            return parsed
    raise ProfileError(f"{where}: nested more than {MAX_DEPTH} levels deep")


def _inside(value: object) -> list[object]:
    if isinstance(value, Mapping):
        return list(value.values())
    return list(value) if isinstance(value, list) else []
