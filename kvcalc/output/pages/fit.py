"""The page of `kvcalc plan --fit`: the divisions that meet the target, and why smaller ones do not."""

from kvcalc.fit_results import FitResult, FitRow
from kvcalc.output.fields import text
from kvcalc.output.page import Cell, Grid, Lines, Page, grid
from kvcalc.output.pages.footer import remarks

SHOWN = 10
"""Rows of either table on the page; JSON and CSV have all of them."""


def page(result: FitResult) -> Page:
    """Return the best division, those behind it, and the ones that fail with their reasons."""
    good = [row for row in result.rows if row.fits]
    bad = [row for row in result.rows if not row.fits]
    blocks: list[Grid | Lines] = [Lines("", (_headline(result), _asked(result)))]
    if good:
        blocks.append(_ranked(good))
    if bad:
        blocks.append(_failed(bad, result.best))
    return Page(f"{result.model} on {result.hardware}: divisions over GPUs", (*blocks, *remarks(result)))


def _headline(result: FitResult) -> Cell:
    best = result.best
    if best is None:
        return Cell(f"No division of up to {text(result, 'max_gpus')} GPUs meets the target.", "bad")
    gpus = "1 GPU" if best.gpus == 1 else f"{text(best, 'gpus')} GPUs"
    return Cell(
        f"{gpus} meet the target: {_division(best)}, {text(best, 'tokens_per_second')} in all.", "good"
    )


def _division(row: FitRow) -> str:
    parts = [f"{name.upper()} {text(row, name)}" for name in ("tp", "pp", "dp", "ep")]
    return ", ".join(parts if row.ep > 1 else parts[:3])


def _asked(result: FitResult) -> str:
    said, count = result.inputs, sum(row.fits for row in result.rows)
    number, tokens = said["concurrency"], said["prompt"] + said["generate"]
    asked = f"Asked: {number:,} sequence{'s' if number > 1 else ''} of {tokens:,} tokens at once"
    if result.target_pace is not None:
        asked += f", {text(result, 'target_pace')} for each"
    if result.target_requests is not None:
        asked += f", {result.target_requests:g} requests per second"
    return f"{asked}. {count} of {len(result.rows)} divisions meet it."


def _ranked(good: list[FitRow]) -> Grid:
    header = (
        "GPUs",
        "TP",
        "PP",
        "DP",
        "EP",
        "token/s",
        "each",
        "busy",
        "prefill",
        "room for",
        "per M tokens",
    )
    rows: list[tuple[Cell | str, ...]] = [
        (
            *_numbers(row),
            text(row, "tokens_per_second").removesuffix(" token/s"),
            text(row, "pace").removesuffix(" token/s"),
            text(row, "busy"),
            text(row, "prefill"),
            text(row, "sessions"),
            text(row, "cost_per_million_tokens"),
        )
        for row in good[:SHOWN]
    ]
    return grid(
        "Best first: fewest GPUs, then most tokens per second", header, "rrrrrrrrrrr", rows, _rest(good)
    )


def _failed(bad: list[FitRow], best: FitRow | None) -> Grid:
    """Return what fails with no more GPUs than the best: of each count the nearest miss, then others."""
    smaller = [row for row in bad if best is None or row.gpus <= best.gpus]
    nearest = {float(row.gpus): row for row in reversed(smaller)}
    # Rows come by GPUs, the nearest miss first; the largest counts come closest to the target.
    shown = sorted(nearest.values(), key=lambda row: float(row.gpus))[-SHOWN:]
    others = [row for row in reversed(smaller) if row not in shown]
    shown = [row for row in smaller if row in shown or row in others[: SHOWN - len(shown)]] or bad[:SHOWN]
    rows: list[tuple[Cell | str, ...]] = [(*_numbers(row), row.reason) for row in shown]
    header = ("GPUs", "TP", "PP", "DP", "EP", "reason")
    return grid("What fails, and why", header, "rrrrrl", rows, _rest(bad, shown))


def _numbers(row: FitRow) -> tuple[str, ...]:
    return tuple(text(row, name) for name in ("gpus", "tp", "pp", "dp", "ep"))


def _rest(rows: list[FitRow], shown: list[FitRow] | None = None) -> tuple[str, ...]:
    left = len(rows) - len(rows[:SHOWN] if shown is None else shown)
    return (f"{left} more with --format json or csv.",) if left else ()
