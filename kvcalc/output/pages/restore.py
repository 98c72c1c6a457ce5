"""The page of `kvcalc restore`: where the time goes, and from which bandwidth on it pays."""

from dataclasses import replace

from kvcalc.output.crossing import crossing
from kvcalc.output.fields import text
from kvcalc.output.page import Block, Cell, Grid, Lines, Page, grid
from kvcalc.output.pages.footer import footer
from kvcalc.output.pages.offload import offload_grid, reasons
from kvcalc.output.pages.ranges import tornado
from kvcalc.results import RestoreResult


def page(result: RestoreResult) -> Page:
    """Return the parts of each restore, the break-even and the reasons."""
    sizes = {text(row, "bytes") for row in result.rows}
    size = f" of {sizes.pop()}" if len(sizes) == 1 else ""
    rows = [replace(row, tier="") if row.tier == text(row, "bandwidth") else row for row in result.rows]
    blocks: tuple[Block, ...] = (
        offload_grid("", rows),
        Lines("", (_break_even(result),)),
        *reasons(rows, break_even=False),
        *tornado(result.tornado),
        *((crossing(result.break_even_curve),) if result.break_even_curve else _curve(result)),
        *footer(result),
    )
    return Page(f"Restore{size} against recompute", blocks)


def _break_even(result: RestoreResult) -> Cell:
    if result.break_even_bandwidth is None:
        return Cell(f"Break-even: none. {_sentence(result.reason or '')}".rstrip(), "bold")
    rate = text(result, "break_even_bandwidth")
    overlap = " with that overlap" if result.rows[0].overlapped_total is not None else ""
    return Cell(
        f"Break-even: {rate}{overlap}. Above it restoring is faster, below it recomputing is.", "bold"
    )


def _curve(result: RestoreResult) -> tuple[Grid, ...]:
    """Return the break-even over the prefix length: it falls as attention makes prefixes dear."""
    if not result.curve:
        return ()
    names = ("cached", "bytes", "recompute", "remaining", "break_even_bandwidth")
    rows: list[tuple[Cell | str, ...]] = [
        tuple(text(point, name) for name in names) for point in result.curve
    ]
    title = "Break-even bandwidth by length of the prefix, with the same suffix after it"
    return (grid(title, ("prefix", "KV", "recompute", "after a hit", "break-even"), "rrrrr", rows),)


def _sentence(reason: str) -> str:
    return reason[:1].upper() + reason[1:]
