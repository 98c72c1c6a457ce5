"""The blocks of a replay's page that say what hits do for a model on a machine."""

from kvcalc.output.fields import text
from kvcalc.output.format import human
from kvcalc.output.page import Cell, Grid, grid
from kvcalc.replay.results import ReplayResult, ReplayRow
from kvcalc.replay.serving_results import Serving

Rows = list[tuple[Cell | str, ...]]
FULL = 1.0
"""Use of the GPUs or of a path from which a trace asks for more than they can do [1]."""


def serving_blocks(result: ReplayResult) -> tuple[Grid, ...]:
    """Return times, GPU time and money, and the paths of tiers; nothing where no machine was named."""
    found = [(row, row.serving) for row in result.rows if row.serving is not None]
    if not found:
        return ()
    rows: Rows = [_served(row, item) for row, item in found]
    header = ("policy", "capacity", "mean TTFT", "P90", "P99", "prefill busy", "prefill saved", "worth")
    first = found[0][1]
    notes = (
        f"Mean TTFT without any hit: {text(first, 'ttft_mean_without')}. Times are those of each request by "
        "itself; more than 100 % busy is more than one replica can do.",
    )
    times = grid("What hits do for the model on the machine", header, "llrrrrrr", rows, notes)
    return times, *_paths(found)


def _served(row: ReplayRow, item: Serving) -> tuple[Cell | str, ...]:
    busy = text(item, "prefill_utilization")
    over = item.prefill_utilization is not None and item.prefill_utilization > FULL
    names = ("ttft_mean", "ttft_p90", "ttft_p99")
    return (
        row.policy + (", tiers" if row.tiers else ""),
        _capacity(row),
        *(text(item, name) for name in names),
        Cell(busy, "warn") if over else busy,
        text(item, "recompute_avoided"),
        text(item, "money_saved"),
    )


def _capacity(row: ReplayRow) -> str:
    return "no end" if row.capacity_bytes is None else human(row.capacity_bytes, "byte")


def _paths(found: list[tuple[ReplayRow, Serving]]) -> tuple[Grid, ...]:
    rows: Rows = [
        (
            path.tier,
            _capacity(row),
            text(path, "restored_bytes"),
            text(path, "mean_rate"),
            text(path, "bandwidth"),
            text(path, "utilization"),
        )
        for row, item in found
        for path in item.paths
    ]
    if not rows:
        return ()
    header = ("tier", "capacity", "restored into a GPU", "on average", "of its path's", "busy")
    return (grid("Restores into one GPU", header, "llrrrr", rows),)
