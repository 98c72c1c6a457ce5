"""The page of `kvcalc compare`: verdicts with what decides them, inputs that differ, numbers side by side."""

from kvcalc.comparing.results import CompareResult, CompareRow
from kvcalc.output.fields import shown
from kvcalc.output.format import significant
from kvcalc.output.page import Block, Cell, Grid, Lines, Page, grid
from kvcalc.output.pages.footer import remarks
from kvcalc.tables import Column

SHARES = ("capacity.utilization", "bandwidth.utilization", "offload.confidence", "hit", "hit_rate")
"""Numbers without dimension that people read as percentages."""


def page(result: CompareResult) -> Page:
    """Return the page."""
    changed = [row for row in result.of_kind("verdict") if row.changed]
    apart = [row for row in result.of_kind("number") if _differs(row)]
    blocks: list[Block] = [
        Lines("", (f"A: {result.a}", f"B: {result.b}", _headline(result))),
        *_why(changed),
        _verdicts(result),
        _side_by_side("Inputs that differ", result.of_kind("input")),
        _side_by_side("Numbers", apart),
    ]
    same = len(result.of_kind("number")) - len(apart)
    if same:
        said = f"{same} more numbers are the same to half a percent; --format json has them."
        blocks.append(Lines("", (Cell(said, "dim"),)))
    return Page("Two plans side by side", (*blocks, *remarks(result)))


SAME = 0.005
"""Relative difference [1] below which two numbers are left out of the page."""


def _differs(row: CompareRow) -> bool:
    return row.changed and (row.ratio is None or abs(float(row.ratio) - 1) > SAME)


def _headline(result: CompareResult) -> Cell:
    count, whole = int(result.verdicts_changed), len(result.of_kind("verdict"))
    if not count:
        return Cell(f"None of the {whole} verdicts changes.", "good")
    return Cell(f"{count} of {whole} verdicts {'changes' if count == 1 else 'change'}.", "bold")


def _why(changed: list[CompareRow]) -> tuple[Lines, ...]:
    if not changed:
        return ()
    lines = [f"{row.key}: {row.a} in A, {row.b} in B. {_decided(row)} {row.why}." for row in changed]
    return (Lines("What changes, and why", tuple(lines), bullet=True),)


def _decided(row: CompareRow) -> str:
    if not row.decided_by:
        return "No input turns it by itself, several do together."
    names = list(row.decided_by)
    joined = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
    return f"Turned by {joined} alone." if len(names) == 1 else f"Turned by each of {joined} alone."


def _verdicts(result: CompareResult) -> Grid:
    rows: list[tuple[Cell | str, ...]] = [
        (
            row.key,
            str(row.a),
            Cell(str(row.b), "warn" if row.changed else ""),
            "changes" if row.changed else "",
        )
        for row in result.of_kind("verdict")
    ]
    return grid("Verdicts", ("", "A", "B", " "), "llll", rows)


def _side_by_side(title: str, rows: "tuple[CompareRow, ...] | list[CompareRow]") -> Grid:
    cells: list[tuple[Cell | str, ...]] = [
        (row.key, _text(row, row.a), _text(row, row.b), _times(row)) for row in rows
    ]
    return grid(title, ("", "A", "B", "B / A"), "lrrr", cells)


def _times(row: CompareRow) -> str:
    return "" if row.ratio is None else f"x {significant(float(row.ratio))}"


def _text(row: CompareRow, value: object) -> str:
    share = row.key in SHARES or row.key.endswith("_efficiency")
    return shown(Column(row.key, row.unit, share=share), value)
