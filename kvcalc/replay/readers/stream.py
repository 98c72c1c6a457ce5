"""Files -> lines of JSON, one at a time: plain, gzip or zstd, by what the file holds and not by its name."""

import gzip
import io
import json
import os
import zlib
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

from kvcalc.errors import ProfileError

MOST_LINE = 256 * 2**20
"""Longest line that is read [byte]; a session of coding agents on one line has some tens of MiB."""
EVERY_LINES = 256
"""How often progress is told [line]."""
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_CUT = (EOFError, zlib.error, gzip.BadGzipFile)

Source = io.BufferedIOBase

Told = Callable[[int, int], None]
"""Told how many bytes of how many have been read."""


class CutOffError(Exception):
    """A compressed file that ends in the middle, or is damaged."""


def files_of(path: str) -> list[Path]:
    """Return the files of a trace: the file itself, or those of a folder in the order of their names."""
    given = Path(path).expanduser()
    if not given.exists():
        raise ProfileError(f"{path}: no such file or folder")
    if not given.is_dir():
        return [given]
    ends = (".json", ".jsonl", ".json.gz", ".jsonl.gz", ".json.zst", ".jsonl.zst")
    found = sorted(file for file in given.iterdir() if file.is_file() and file.name.endswith(ends))
    if not found:
        raise ProfileError(f"{path}: no .json or .jsonl file in this folder")
    return found


def lines(file: Path, told: Told | None = None) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of a file with their numbers; blank ones are passed over.

    Raises
    ------
    ProfileError
        If the file cannot be read.
    CutOffError
        If a compressed file ends in the middle; the lines before have been yielded.
    """
    try:
        with file.open("rb") as raw:
            # A pipe has neither a size nor a place, so that nothing can be told of it.
            told = told if raw.seekable() else None
            size = os.fstat(raw.fileno()).st_size
            source = _opened(raw, file)
            number = 0
            while line := _line(source, file, number + 1):
                number += 1
                if told is not None and number % EVERY_LINES == 0:
                    told(min(raw.tell(), size), size)
                line = line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
                if not line.isspace():
                    yield number, line
    except OSError as error:
        raise ProfileError(f"{file}: {(error.strerror or str(error)).lower()}") from None


def _line(source: Source, file: Path, number: int) -> bytes:
    try:
        line = source.readline(MOST_LINE + 1)
    except _CUT as error:
        raise CutOffError(str(error)) from None
    except Exception as error:
        if type(error).__name__ == "ZstdError":
            raise CutOffError(str(error)) from None
        raise
    if len(line) > MOST_LINE:
        raise ProfileError(f"{file}:{number}: a line of more than {MOST_LINE // 2**20} MiB is not read")
    return line


def _opened(raw: io.BufferedReader, file: Path) -> Source:
    magic = raw.peek(4)[:4]
    if magic[:2] == _GZIP:
        return gzip.GzipFile(fileobj=raw)
    if magic == _ZSTD:
        opened: io.BufferedIOBase = _zstd(file).ZstdFile(raw)
        return opened
    return raw


def _zstd(file: Path) -> Any:  # noqa: ANN401 - a module
    for name in ("compression.zstd", "backports.zstd"):
        try:
            return import_module(name)
        except ImportError:
            continue
    raise ProfileError(f"{file}: reading zstd needs a package: pip install 'kvcalc[zstd]'")


def _no_number(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a number")


def parser() -> Callable[[bytes], Any]:
    """Return the fastest JSON parser that is installed; all refuse NaN and raise ValueError."""
    try:
        return import_module("orjson").loads  # type: ignore[no-any-return]
    except ImportError:
        return plain_parser()


def plain_parser() -> Callable[[bytes], Any]:
    """Return the parser of the standard library."""
    return lambda line: json.loads(line, parse_constant=_no_number)
