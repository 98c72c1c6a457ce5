"""What a sweep answers: its axes, how many rows fit, the best of them, and the rows themselves."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, overload

from kvcalc.quantity import Count
from kvcalc.records import record
from kvcalc.results import Result
from kvcalc.sweeping.chunks import Chunk, Columns, Words, joined
from kvcalc.tables import Column

if TYPE_CHECKING:
    import pandas as pd


@record
class SweepAxis:
    """One input that was varied."""

    key: str  # of the input
    unit: str  # of its values; empty for words
    count: Count  # how many values it took
    first: float | str  # of them
    last: float | str  # of them
    said: str  # the values as they were asked for


@record
class SweepColumn:
    """One column of the rows, under the dotted key that it has in the JSON of a plan."""

    name: str  # of the input or of the quantity
    unit: str  # empty for words
    meaning: str  # in words
    share: bool = False  # a number that people read as a percentage


@record
class SweepLine:
    """One line of a chart: a value for each point, null where there is none."""

    inputs: Mapping[str, Any]  # values of the other inputs, by key
    values: tuple[float | None, ...]  # in the unit of the chart


@record
class SweepChart:
    """One column over one input, with a line for each combination of the other inputs."""

    column: str  # that is drawn
    unit: str  # of the column
    over: str  # input along the axis
    over_unit: str  # of the points
    points: tuple[float, ...]  # values of the input
    lines: tuple[SweepLine, ...]  # the first few combinations
    left_out: Count  # lines that are not drawn


class Rows(Sequence[Mapping[str, Any]]):
    """The rows of a sweep, one mapping of columns to values each, held as arrays."""

    def __init__(self, chunks: Sequence[Chunk], count: int) -> None:
        self.chunks = chunks
        self._count = count

    def __len__(self) -> int:
        """Return the number of rows."""
        return self._count

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        """Yield every row."""
        for chunk in self.chunks:
            yield from chunk.rows()

    @overload
    def __getitem__(self, index: int) -> Mapping[str, Any]: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Mapping[str, Any]]: ...

    def __getitem__(self, index: int | slice) -> Mapping[str, Any] | Sequence[Mapping[str, Any]]:
        """Return one row, or several."""
        if isinstance(index, slice):
            return [self[place] for place in range(*index.indices(self._count))]
        place = index + self._count if index < 0 else index
        for chunk in self.chunks:
            if chunk.start <= place < chunk.start + len(chunk):
                return chunk.row(place - chunk.start)
        raise IndexError(f"the sweep has {self._count} rows, not {index}")

    def arrays(self) -> Columns:
        """Return every column of all rows."""
        return joined(self.chunks)

    def __repr__(self) -> str:
        """Say how many rows there are."""
        return f"Rows({self._count} rows)"


@record
class SweepResult(Result):
    """Answer of `kvcalc sweep`: the same plan over a grid of its inputs."""

    axes: tuple[SweepAxis, ...]  # as they were given
    count: Count  # rows: all combinations of all values
    answered: Count  # rows with an answer; the others say why in `reason`
    fitting: Count  # rows whose load fits
    best_by: str | None  # what `best` is the best in, with min: or max: before it
    best: Mapping[str, Any] | None  # row of the grid that fits and is best; null without --best
    pareto_by: tuple[str, ...]  # what `pareto` is the front of
    pareto: tuple[Mapping[str, Any], ...]  # rows that fit and that no other one beats in everything
    chart: SweepChart | None  # null without --chart
    columns: tuple[SweepColumn, ...]  # of the rows, in order
    rows: Sequence[Mapping[str, Any]]  # every combination; empty where they were saved

    SCHEMA = "kvcalc.sweep/1"

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON body, with the unit of each column."""
        body = Result.to_dict(self)
        body["units"] |= {f"rows.{item.name}": item.unit for item in self.columns if item.unit}
        return body

    @property
    def known_columns(self) -> tuple[Column, ...]:
        """The columns as lists have them."""
        return tuple(Column(item.name, item.unit, item.share) for item in self.columns)

    def without_rows(self) -> "SweepResult":
        """Return all but the rows."""
        return replace(self, rows=())

    def to_frame(self) -> "pd.DataFrame":
        """Return the rows as a pandas frame, numbers in base units."""
        import pandas as pd

        arrays = self.rows.arrays() if isinstance(self.rows, Rows) else {}
        return pd.DataFrame(
            {
                name: values.tolist() if isinstance(values, Words) else values
                for name, values in arrays.items()
            }
        )
