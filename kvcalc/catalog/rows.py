"""Files of rows (CSV, JSON, JSONL, YAML) -> one section a row, which knows its place for messages.

A cell of a CSV file is text, as a value of the other formats may be; the readers of single values take
both.  Blank cells are values that are not there.
"""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kvcalc.documents import Section, parse_json, read, read_text
from kvcalc.errors import ProfileError, did_you_mean

MOST_ROWS = 1_000_000
"""Most rows of one file [1]."""

FORMATS = (".csv", ".json", ".jsonl", ".yaml", ".yml")


def read_rows(path: str, key: str, columns: tuple[str, ...]) -> Iterator[Section]:
    """Yield the rows of a file, whose format its name ends in.

    Parameters
    ----------
    path : the file
    key : what a JSON or YAML file may put its list under, such as ``sequences``
    columns : the names that a row may have; others are refused with the nearest valid one

    Raises
    ------
    ProfileError
        If the file cannot be read or a column is unknown; names the file, the line and the column.
    """
    file = Path(path).expanduser()
    suffix = file.suffix.lower()
    if suffix not in FORMATS:
        raise ProfileError(f"{path}: unknown format {suffix or file.name!r}; valid are {', '.join(FORMATS)}")
    if suffix == ".csv":
        rows = _csv_rows(file, path, columns)
    elif suffix == ".jsonl":
        rows = _json_lines(file, path)
    else:
        rows = _items(read(file), path, key)
    for number, section in enumerate(rows):
        if number == MOST_ROWS:
            raise ProfileError(f"{path}: more than {MOST_ROWS:,} rows")
        for name in section.data:
            if name not in columns:
                raise ProfileError(f"{section.where(name)}: unknown column{did_you_mean(name, columns)}")
        yield section


def _csv_rows(file: Path, path: str, columns: tuple[str, ...]) -> Iterator[Section]:
    # Spreadsheets put a mark before the first column, and leave blank lines at the end.
    reader = csv.reader(read_text(file).removeprefix("\ufeff").splitlines(), strict=True)
    try:
        header = [cell.strip() for cell in next(reader, [])]
        for name in header:
            if name not in columns:
                nearest = did_you_mean(name, columns)
                raise ProfileError(f"{path}: line 1: unknown column {name!r:.60}{nearest}")
            if header.count(name) > 1:
                raise ProfileError(f"{path}: line 1: column {name} is there twice")
        for cells in reader:
            if not any(cell.strip() for cell in cells):
                continue
            where = f"{path}: line {reader.line_num}"
            if len(cells) != len(header):
                raise ProfileError(f"{where}: {len(cells)} values for {len(header)} columns")
            given = {name: cell.strip() for name, cell in zip(header, cells, strict=True) if cell.strip()}
            yield Section(given, where)
    except csv.Error as error:
        raise ProfileError(f"{path}: line {reader.line_num}: {error}") from None


def _json_lines(file: Path, path: str) -> Iterator[Section]:
    for number, line in enumerate(read_text(file).splitlines(), start=1):
        if line.strip():
            where = f"{path}: line {number}"
            yield _section(parse_json(line, where), where)


def _items(data: Any, path: str, key: str) -> Iterator[Section]:  # noqa: ANN401 - as parsed
    if isinstance(data, dict):
        section = Section.of(data, path)
        section.check((key,))
        data = section.items(key)
    if not isinstance(data, list):
        raise ProfileError(f"{path}: expected a list of {key}, or the list under {key!r}")
    for number, item in enumerate(data, start=1):
        yield _section(item, f"{path}: {key} {number}")


def _section(item: Any, where: str) -> Section:  # noqa: ANN401 - as parsed
    section = Section.of(item, where)
    return Section({name: value for name, value in section.data.items() if value is not None}, where)
