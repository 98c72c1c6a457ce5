"""Lists of things of one kind, such as the known models: named columns with units, and rows."""

from dataclasses import dataclass
from typing import Any

from kvcalc.bodies import plain


@dataclass(frozen=True)
class Column:
    """One named quantity of a table; a text has no unit."""

    name: str
    unit: str = ""
    share: bool = False  # a number without dimension that people read as a percentage
    large: bool = False  # a count that people read by its magnitude, such as "70 B" parameters

    @property
    def header(self) -> str:
        """Name with its unit, as a spreadsheet shows it."""
        return f"{self.name} [{self.unit}]" if self.unit else self.name


@dataclass(frozen=True)
class Table:
    """A list of things of one kind, such as the known models, for every output format."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Any, ...], ...]
    notes: tuple[str, ...] = ()
    schema: str = "kvcalc.table/1"
    is_list: bool = False  # long: shown one row a line, whatever the width

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON body: one object a row, full precision, units beside them."""
        from kvcalc import __version__

        names = [column.name for column in self.columns]
        return {
            "schema": self.schema,
            "version": __version__,
            "title": self.title,
            "units": {f"rows.{column.name}": column.unit for column in self.columns if column.unit},
            "rows": [{name: plain(item) for name, item in zip(names, row, strict=True)} for row in self.rows],
            "notes": list(self.notes),
        }
