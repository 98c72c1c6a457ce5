"""Files -> plain data."""

import json
import re
from pathlib import Path
from typing import Any, NoReturn, Protocol

from kvcalc.documents.dialect import parse_yaml
from kvcalc.documents.limits import MAX_BYTES, Document, check_size
from kvcalc.errors import ProfileError


class Readable(Protocol):
    """A file on disk or inside a wheel: `pathlib.Path` and `importlib.resources` both are."""

    def read_bytes(self) -> bytes:
        """Return the content."""


def read(file: Readable) -> Document:
    """Return the content of a `.json`, `.yaml` or `.yml` file as plain data.

    Raises
    ------
    ProfileError
        If the file cannot be read, is too large, or is malformed; names the file and the line.
    """
    parse = parse_json if str(file).endswith(".json") else parse_yaml
    return parse(read_text(file), str(file))


def read_text(file: Readable, limit: int = MAX_BYTES) -> str:
    """Return the text of a file of at most `limit` bytes, which must be UTF-8."""
    try:
        if isinstance(file, Path):
            check_size(file.stat().st_size, str(file), limit)
            with file.open("rb") as opened:
                content = opened.read(limit + 1)  # a device or a pipe has no size, and may never end
        else:
            content = file.read_bytes()
    except OSError as error:
        raise ProfileError(f"{file}: {(error.strerror or str(error)).lower()}") from None
    check_size(len(content), str(file), limit)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ProfileError(f"{file}:{line}: not UTF-8 text") from None


def parse_json(text: str, name: str, limit: int = MAX_BYTES) -> Document:
    """Return JSON text of at most `limit` bytes as plain data; duplicate keys, NaN and Infinity are refused.

    >>> parse_json('{"on": "h100"}', "plan.json")
    {'on': 'h100'}
    """
    check_size(len(text), name, limit)

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            keys = [key for key, _ in pairs]
            twice = next(key for key in keys if keys.count(key) > 1)
            raise ProfileError(f"{name}: {twice}: given twice in one object")
        return found

    def no_number(constant: str) -> NoReturn:
        raise ProfileError(f"{name}:{_line_of(text, constant)}: {constant} is not a number")

    try:
        return json.loads(text, object_pairs_hook=unique, parse_constant=no_number)
    except ProfileError:  # which is a ValueError as well
        raise
    except json.JSONDecodeError as error:
        raise ProfileError(f"{name}:{error.lineno}: not valid JSON: {error.msg}") from None
    except RecursionError:
        raise ProfileError(f"{name}: nested too deeply") from None
    except ValueError as error:  # an integer of thousands of digits
        raise ProfileError(f"{name}: {str(error).split(';')[0]}") from None


def _line_of(text: str, constant: str) -> int:
    """Return the line of a constant that stands outside of every text."""
    pattern = rf'"(?:[^"\\]|\\.)*"|(?<![\w-])({re.escape(constant)})'
    at = next((found.start(1) for found in re.finditer(pattern, text, re.DOTALL) if found[1]), 0)
    return text.count("\n", 0, at) + 1
