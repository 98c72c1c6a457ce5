"""Ledgers in Parquet: a row a session, and everything else as JSON in the file's metadata.

Columns: id, tenant, state (text); tokens (integer); blocks (list of integers), or for a model of several
KV groups one list a group, named `blocks.GROUP`; idle (seconds), p_reuse, remaining may be missing.
The metadata key `kvcalc.ledger/1` holds the rest of the ledger as it would stand in a JSON file.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from kvcalc.documents import Section, parse_json, replacing
from kvcalc.errors import ProfileError, SettingsError, UnknownProfileError, did_you_mean
from kvcalc.quota.sessions import Columns

if TYPE_CHECKING:
    import pyarrow

HEAD = b"kvcalc.ledger/1"
"""Key of the metadata that holds everything but the sessions."""

_TEXTS = ("id", "tenant", "state")
_NUMBERS = ("idle", "p_reuse", "remaining")


def read_parquet(file: Path) -> tuple[Section, Columns]:
    """Return the head and the sessions of a Parquet ledger."""
    table = _read(file)
    found = (table.schema.metadata or {}).get(HEAD)
    if found is None:
        raise ProfileError(
            f"{file}: no metadata {HEAD.decode()!r}, which holds pool and tenants; or name this file under "
            "`sessions` of a YAML ledger"
        )
    head = Section.of(parse_json(found.decode("utf-8"), str(file)), str(file))
    return head, _columns(table, str(file), _group_names(head))


def read_columns(file: Path) -> Columns:
    """Return the sessions of a Parquet file whose head stands elsewhere."""
    if not file.is_file():
        raise UnknownProfileError(f"{file!s:.200}: no such file")
    table = _read(file)
    names = [name.partition(".")[2] for name in table.column_names if name.startswith("blocks")]
    return _columns(table, str(file), names)


def write_parquet(path: Path, head: Mapping[str, Any], columns: Mapping[str, Any]) -> None:
    """Write a ledger whole or not at all; `columns` has arrays, block tables as flat values and offsets."""
    arrow = _arrow()
    import pyarrow.parquet

    arrays = {
        name: arrow.ListArray.from_arrays(arrow.array(value[1]), arrow.array(value[0]))
        if isinstance(value, tuple)
        else arrow.array(value, from_pandas=True)
        for name, value in columns.items()
    }
    table = arrow.table(arrays).replace_schema_metadata({HEAD: json.dumps(head).encode("utf-8")})
    with replacing(path) as beside:
        pyarrow.parquet.write_table(table, beside)


def _arrow() -> Any:  # noqa: ANN401 - the package, which has no types of its own
    try:
        import pyarrow
    except ImportError:
        raise SettingsError("Parquet needs pyarrow: pip install 'kvcalc[parquet]'") from None
    return pyarrow


def _read(file: Path) -> "pyarrow.Table":
    arrow = _arrow()
    import pyarrow.parquet

    try:
        return pyarrow.parquet.read_table(file)
    except (arrow.ArrowException, OSError) as error:
        raise ProfileError(f"{file}: {str(error).splitlines()[0]}") from None


def _group_names(head: Section) -> list[str]:
    return list(head.section("groups").data) if "groups" in head else [""]


def _columns(table: "pyarrow.Table", file: str, groups: list[str]) -> Columns:
    tables = {f"blocks.{name}" if name else "blocks": index for index, name in enumerate(groups)}
    known = (*_TEXTS, "tokens", *_NUMBERS, *tables)
    for name in table.column_names:
        if name not in known:
            raise ProfileError(f"{file}: column {name!r}: unknown{did_you_mean(name, known)}")
    for name in (*_TEXTS, "tokens", *tables):
        if name not in table.column_names:
            raise ProfileError(f"{file}: column {name!r}: missing")
    held, holders, of_group = [], [], []
    for name, index in tables.items():
        values, holder = _lists(table, name, file)
        held.append(values)
        holders.append(holder)
        of_group.append(np.full(values.size, index, dtype=np.int64))
    holder = np.concatenate(holders)
    order = np.argsort(holder, kind="stable") if len(tables) > 1 else slice(None)
    return Columns(
        ids=[str(value) for value in table.column("id").to_pylist()],
        tenant=table.column("tenant").to_pylist(),
        state=table.column("state").to_pylist(),
        tokens=_integers(table, "tokens", file),
        idle=_numbers(table, "idle", file),
        reuse=_numbers(table, "p_reuse", file),
        remaining=_numbers(table, "remaining", file),
        holder=holder[order],
        raw=np.concatenate(held)[order],
        group=np.concatenate(of_group)[order],
    )


def _lists(table: "pyarrow.Table", name: str, file: str) -> tuple[Any, Any]:
    """Return the values of a column of lists, and the row of each."""
    arrow = _arrow()
    column = table.column(name).combine_chunks()
    column = column.combine_chunks() if hasattr(column, "combine_chunks") else column
    if not (arrow.types.is_list(column.type) or arrow.types.is_large_list(column.type)):
        raise ProfileError(f"{file}: column {name!r}: expected lists of block numbers, not {column.type}")
    if not arrow.types.is_integer(column.type.value_type):
        raise ProfileError(f"{file}: column {name!r}: expected whole numbers, not {column.type.value_type}")
    import pyarrow.compute as compute

    lengths = compute.fill_null(compute.list_value_length(column), 0).to_numpy(zero_copy_only=False)
    values = column.flatten().to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
    return values, np.repeat(np.arange(len(column), dtype=np.int64), lengths)


def _integers(table: "pyarrow.Table", name: str, file: str) -> Any:  # noqa: ANN401 - an array
    column = table.column(name)
    if not _arrow().types.is_integer(column.type) or column.null_count:
        raise ProfileError(f"{file}: column {name!r}: expected whole numbers in every row, not {column.type}")
    return column.to_numpy().astype(np.int64)


def _numbers(table: "pyarrow.Table", name: str, file: str) -> Any:  # noqa: ANN401 - an array
    if name not in table.column_names:
        return np.full(table.num_rows, np.nan)
    column = table.column(name)
    types = _arrow().types
    if not (types.is_integer(column.type) or types.is_floating(column.type) or types.is_null(column.type)):
        raise ProfileError(f"{file}: column {name!r}: expected numbers, not {column.type}")
    return column.to_numpy().astype(float)
