"""What each of many small copies costs on a machine, for engines that make one call for each piece of KV."""

from collections.abc import Sequence

from kvcalc.probe.profile_entries import Entry, around, time_text
from kvcalc.probe.results import Measurement
from kvcalc.probe.session import usable
from kvcalc.profiles import PROBE

EACH_BY_A_CALL = "scattered.percall_c.random"
"""Series, after its direction, in which each scattered piece is one call of the runtime, as in engines."""


def piece_entry(rows: Sequence[Measurement], direction: str, bandwidth: float | None) -> Entry | None:
    """Return the time of one copy beside that of its bytes, at the smallest size that was measured.

    `bandwidth` is that of the link [byte/second], whose time for the bytes is taken off.

    None where no such copies were measured, or where their bytes take all of the time.
    """
    found = [
        row
        for row in rows
        if row.series == f"{direction}.{EACH_BY_A_CALL}" and usable(row) and row.n_chunks > 1
    ]
    if not found or bandwidth is None:
        return None
    row = min(found, key=lambda one: one.chunk_bytes)
    moving = float(row.chunk_bytes) / bandwidth
    cost = float(row.median) / float(row.n_chunks) - moving
    if cost <= 0:
        return None
    entry: Entry = {
        "value": time_text(cost),
        "kind": "measured",
        "from": PROBE,
        "note": f"each of {row.n_chunks:.0f} scattered copies of {row.chunk_bytes:.0f} B, less its bytes",
    }
    if row.median_range is not None:
        ends = [max(0.0, float(end) / float(row.n_chunks) - moving) for end in row.median_range]
        entry["range"] = around(cost, ends, time_text)
    return entry
