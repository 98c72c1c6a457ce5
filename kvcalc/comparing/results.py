"""What `kvcalc compare` answers: inputs, verdicts and numbers of two plans in one list."""

from typing import Annotated

from kvcalc.quantity import Count
from kvcalc.records import record
from kvcalc.results import Result

RowKind = Annotated[str, ("input", "verdict", "number")]
Scalar = float | str | None


@record
class CompareRow:
    """One input, verdict or number of both plans."""

    kind: RowKind  # what it is; of the inputs those that differ, of the others all
    key: str  # its dotted key in a plan's JSON, or of the input
    unit: str  # of both values; empty for words
    a: Scalar  # in the first plan
    b: Scalar  # in the second plan
    changed: bool  # whether the two differ
    ratio: Count | None  # b over a; null for words, and where a is 0
    why: str  # what stands behind a verdict, in both plans
    decided_by: tuple[str, ...]  # inputs each of which, changed alone in the first plan, gives b


@record
class CompareResult(Result):
    """Answer of `kvcalc compare`: two plans side by side."""

    a: str  # the first plan, in words
    b: str  # the second plan, in words
    verdicts_changed: Count  # how many of the verdicts differ
    rows: tuple[CompareRow, ...]  # inputs that differ, then verdicts, then numbers

    SCHEMA = "kvcalc.compare/1"

    def of_kind(self, kind: str) -> tuple[CompareRow, ...]:
        """Return the rows of one kind."""
        return tuple(row for row in self.rows if row.kind == kind)
