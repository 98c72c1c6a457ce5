"""A CSV file of measured prefill times -> points in base units, strictly."""

import csv
import math
from collections.abc import Mapping
from pathlib import Path

from kvcalc.documents import read_text
from kvcalc.errors import ProfileError, did_you_mean
from kvcalc.scenario import Measurements, PrefillPoint

COLUMNS = ("tokens", "cached", "seconds")
"""Tokens that were computed, tokens before them whose KV was there, and how long it took."""
MOST_POINTS = 10_000
"""Most rows of one file [1]; a calibration takes a few."""
MOST_TOKENS = 10**9
"""Longest prompt that is believed [token]; far above any context."""


def read_points(path: str) -> Measurements:
    """Read a file whose first line is ``tokens,cached,seconds``, in any order; `cached` may be left out.

    Raises
    ------
    ProfileError
        If the file cannot be read, a column is unknown or missing, or a value is no positive number;
        names the file, the line and the column.
    """
    # Spreadsheets put a mark before the first column, and leave blank lines at the end.
    lines = read_text(Path(path).expanduser()).removeprefix("\ufeff").splitlines()
    reader = csv.reader(lines, strict=True)
    points: list[PrefillPoint] = []
    try:
        header = [cell.strip() for cell in next(reader, [])]
        _check_header(header, path)
        for cells in reader:
            if any(cell.strip() for cell in cells):
                points.append(_point(header, cells, f"{path}: line {reader.line_num}"))
            if len(points) > MOST_POINTS:
                raise ProfileError(f"{path}: more than {MOST_POINTS:,} points; a calibration takes a few")
    except csv.Error as error:
        raise ProfileError(f"{path}: line {reader.line_num}: {error}") from None
    if not points:
        raise ProfileError(f"{path}: no points; write lines such as 8192,0,0.214 under {','.join(COLUMNS)}")
    return Measurements(path, tuple(points))


def _check_header(header: list[str], path: str) -> None:
    for name in header:
        if name not in COLUMNS:
            raise ProfileError(
                f"{path}: line 1: unknown column {name!r:.60}{did_you_mean(name, COLUMNS)}; "
                f"the first line is {','.join(COLUMNS)}"
            )
    for name in ("tokens", "seconds"):
        if header.count(name) != 1:
            how_often = "twice" if name in header else "not"
            raise ProfileError(f"{path}: line 1: column {name} is {how_often} there")


def _point(header: list[str], cells: list[str], where: str) -> PrefillPoint:
    if len(cells) != len(header):
        raise ProfileError(f"{where}: {len(cells)} values for {len(header)} columns")
    row = dict(zip(header, cells, strict=True))
    return PrefillPoint(
        tokens=_tokens(row, "tokens", where, least=1),
        cached=_tokens(row, "cached", where, least=0),
        seconds=_seconds(row, where),
        where=where,
    )


def _tokens(row: Mapping[str, str], name: str, where: str, least: int) -> int:
    text = row.get(name, "0").strip()
    if not (text.isascii() and text.isdigit() and len(text) <= 12 and least <= int(text) <= MOST_TOKENS):
        raise ProfileError(f"{where}: {name}: {text!r:.60} is not a whole number of {least} or more")
    return int(text)


def _seconds(row: Mapping[str, str], where: str) -> float:
    text = row["seconds"].strip()
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (value > 0 and math.isfinite(value)):
        raise ProfileError(f"{where}: seconds: {text!r:.60} is not a positive number")
    return value
