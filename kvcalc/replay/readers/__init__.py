"""Trace files of every dialect -> `Trace`.  One file for each dialect; lines are read one at a time."""

from collections.abc import Mapping
from itertools import islice

from kvcalc.errors import ProfileError
from kvcalc.replay.readers.dialect import Asked
from kvcalc.replay.readers.ragpulse import of_requests
from kvcalc.replay.readers.reading import FIRST_LINES, Reading
from kvcalc.replay.readers.recognise import DIALECTS, dialect_named, recognised
from kvcalc.replay.readers.stream import CutOffError, Told, files_of, lines, parser
from kvcalc.replay.readers.tokens import UNITS
from kvcalc.replay.trace import Trace

TIME_UNITS = tuple(UNITS)
"""Units that times of a dialect without a fixed one may be said to have."""

__all__ = ["DIALECTS", "TIME_UNITS", "Asked", "dialect_named", "is_trace", "read_trace"]


def read_trace(
    path: str, dialect: str | None = None, asked: Asked | None = None, told: Told | None = None
) -> Trace:
    """Read a trace: a file, plain, .gz or .zst, or a folder of them.

    Parameters
    ----------
    path : the file or folder
    dialect : the name of its dialect; recognised from its first lines when None
    asked : what the user says of it
    told : called now and then with the bytes read and their total

    Raises
    ------
    ProfileError
        If the file cannot be read, holds no request, or a line of it is broken; names file and line.
    SettingsError
        If the dialect is unknown.
    """
    kind = None if dialect is None else dialect_named(dialect)
    return Reading(path, kind, asked or Asked(), told).trace()


def is_trace(path: str) -> bool:
    """Tell whether the first lines of a file are of a dialect with block hashes."""
    parse = parser()
    try:
        first = [parse(line) for _, line in islice(lines(of_requests(files_of(path))[0]), FIRST_LINES)]
        rows = [row for row in first if isinstance(row, Mapping)]
        return bool(rows) and recognised(rows, path) is not None
    except (ProfileError, CutOffError, ValueError, RecursionError):
        return False
