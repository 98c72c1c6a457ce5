"""The rows of a sweep as CSV, JSON or Parquet, written chunk by chunk; a file is whole or not there."""

import csv
import json
from collections.abc import Callable, Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from kvcalc.bodies import plain
from kvcalc.documents import replacing
from kvcalc.errors import SettingsError, did_you_mean
from kvcalc.output.csv import safe
from kvcalc.results import Result
from kvcalc.sweeping.chunks import Chunk, Values, Words, as_list
from kvcalc.tables import Column

if TYPE_CHECKING:
    import pyarrow

FORMS = ("csv", "json", "parquet")
"""What rows may be saved as; the suffix of the file says which."""


def form_of(file: str, form: str = "") -> str:
    """Return in which form a file is to be written: as asked, else by its suffix.

    Raises
    ------
    SettingsError
        If the suffix says nothing or something else, or pyarrow is not installed.

    Examples
    --------
    >>> form_of("rows.csv"), form_of("rows.txt", "json")
    ('csv', 'json')
    """
    suffix = Path(file).suffix.lower().removeprefix(".")
    if not form and suffix not in FORMS:
        raise SettingsError(f"--save {file}: the name must end in .csv, .json or .parquet, or say --format")
    if form and suffix in FORMS and suffix != form:
        raise SettingsError(f"--save {file}: ends in .{suffix}, but --format says {form}")
    if form and form not in FORMS:
        raise SettingsError(
            f"--format {form}: rows are saved as csv, json or parquet{did_you_mean(form, FORMS)}"
        )
    found = form or suffix
    if found == "parquet" and find_spec("pyarrow") is None:
        raise SettingsError(f"--save {file}: Parquet needs pyarrow: pip install 'kvcalc[parquet]'")
    return found


def write_rows(
    file: str,
    form: str,
    chunks: Iterable[Chunk],
    columns: Sequence[Column],
    about: Callable[[], Result],
) -> None:
    """Write rows to a file; `about` tells the rest of the answer once all rows have gone by."""
    with replacing(file) as beside:
        if form == "parquet":
            _parquet(beside, chunks, columns, about)
            return
        with beside.open("w", encoding="utf-8", newline="") as out:
            (write_csv if form == "csv" else write_json)(out, chunks, columns, about)


def write_csv(
    out: TextIO, chunks: Iterable[Chunk], columns: Sequence[Column], about: Callable[[], Result]
) -> None:
    """Write a header `name [unit]` and a line a row; texts cannot become formulas of a spreadsheet."""
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([safe(column.header) for column in columns])
    for chunk in chunks:
        cells = [_csv_cells(chunk.columns[column.name]) for column in columns]
        writer.writerows(zip(*cells, strict=True))


def _csv_cells(values: Values) -> list[Any]:
    if isinstance(values, Words):
        known = [safe(word) for word in values.words]
        return [known[code] for code in values.codes.tolist()]
    if values.dtype.kind == "b":
        return ["true" if value else "false" for value in values.tolist()]
    return as_list(values)


def write_json(
    out: TextIO, chunks: Iterable[Chunk], columns: Sequence[Column], about: Callable[[], Result]
) -> None:
    """Write the JSON body of the answer, its rows first, since all else is known only after them."""
    out.write('{\n"rows": [')
    names = [column.name for column in columns]
    before = "\n"
    for chunk in chunks:
        lists = [as_list(chunk.columns[name]) for name in names]
        for cells in zip(*lists, strict=True):
            out.write(before + json.dumps(plain(dict(zip(names, cells, strict=True)))))
            before = ",\n"
    body = {name: value for name, value in about().to_dict().items() if name != "rows"}
    rest = json.dumps(body, indent=2).removeprefix("{\n").removesuffix("\n}")
    out.write(f"\n],\n{rest}\n}}\n")


def _parquet(
    file: Path, chunks: Iterable[Chunk], columns: Sequence[Column], about: Callable[[], Result]
) -> None:
    import pyarrow as arrow
    import pyarrow.parquet as parquet

    writer: parquet.ParquetWriter | None = None
    try:
        for chunk in chunks:
            arrays = [_arrow(chunk.columns[column.name]) for column in columns]
            if writer is None:
                schema = arrow.schema(
                    [
                        arrow.field(column.name, array.type, metadata={"unit": column.unit})
                        for column, array in zip(columns, arrays, strict=True)
                    ]
                )
                words = [column.name for column in columns if not column.unit and column.name != "fits"]
                writer = parquet.ParquetWriter(file, schema, compression="snappy", use_dictionary=words)
            writer.write_table(arrow.Table.from_arrays(arrays, schema=writer.schema))
        if writer is not None:
            writer.add_key_value_metadata({about().SCHEMA: json.dumps(about().to_dict())})
    finally:
        if writer is not None:
            writer.close()


def _arrow(values: Values) -> "pyarrow.Array":
    """Return a column as Arrow has it: NaN and empty words are nulls."""
    import pyarrow as arrow

    if not isinstance(values, Words):
        return arrow.array(values, from_pandas=True)
    known = arrow.array([word or None for word in values.words], type=arrow.string())
    return arrow.DictionaryArray.from_arrays(arrow.array(values.codes), known).cast(arrow.string())
