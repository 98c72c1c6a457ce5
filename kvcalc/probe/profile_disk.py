"""Which reads of a disk a profile's rate, latency and requests per second are taken from."""

from collections.abc import Sequence

from kvcalc.probe.results import Measurement
from kvcalc.probe.session import usable
from kvcalc.records import record

LARGE_READ = 128 * 2**10
"""Smallest read whose rate is that of large reads [byte]: chosen; below, requests limit the rate."""
SMALL_READ = 16 * 2**10
"""Largest read whose time alone is taken for a latency [byte]: chosen; beyond, moving its bytes shows."""
RANDOM, SEQUENTIAL = "random", "sequential"
"""Orders of the reads of other tools; those of the probe, which leave it out, are random."""
BESIDE = "beside_others"
"""End of a mechanism whose reads shared the disk with other ones."""


@record
class DiskReads:
    """One measurement for each value of a profile's storage; None where none can stand for it."""

    large: Measurement | None  # fastest at the largest size
    alone: Measurement | None  # smallest read, one at a time
    small: Measurement | None  # fastest at the smallest size


def disk_reads(rows: Sequence[Measurement]) -> DiskReads:
    """Return the reads that stand for a disk.

    The time of one of many reads under way is no latency: it is the reciprocal of their number per second.
    Small reads in sequence are answered from what the disk has read ahead, and those beside other jobs wait
    for theirs: neither tells a latency or a number per second.
    """
    reads = [row for row in _reads(rows) if usable(row)]
    large = [row for row in reads if row.chunk_bytes >= LARGE_READ]
    small = [row for row in reads if row.chunk_bytes <= SMALL_READ and _is_lone_random(row)]
    alone = [row for row in small if row.in_flight == 1]
    largest = max((row.chunk_bytes for row in large), default=0)
    smallest = min((row.chunk_bytes for row in small), default=0)
    return DiskReads(
        large=max((row for row in large if row.chunk_bytes == largest), key=_rate, default=None),
        alone=min(alone, key=lambda row: row.chunk_bytes, default=None),
        small=max((row for row in small if row.chunk_bytes == smallest), key=_rate, default=None),
    )


def why_no_disk(rows: Sequence[Measurement]) -> str | None:
    """Return why no read tells the rate of a disk; None where one does, or where none was looked for."""
    of_disk = [row for row in rows if row.test == "Z1"]
    reads = _reads(rows)
    if not of_disk or disk_reads(rows).large is not None:
        return None
    if not reads:
        return "only writes were measured, and a plan needs reads"
    flags = {name for row in reads for name in row.flags}
    if any(usable(row) for row in reads):
        more = "; larger ones were buffered, no direct I/O" if "buffered" in flags else ""
        return f"reads of less than {LARGE_READ // 2**10} KiB do not tell its bandwidth{more}"
    if "buffered" in flags:
        return "no direct I/O: a cache answers buffered reads; fio's direct=1 passes it over"
    if "cache_hit" in flags:
        return f"{max(map(_rate, reads)) / 1e9:.4g} GB/s is faster than any single disk: a cache has answered"
    return "none of its reads may be used"


def large_note(row: Measurement) -> str:
    """Return what the rate of a disk was measured with."""
    order = f"{SEQUENTIAL} " if row.order == SEQUENTIAL else ""
    others = ", beside other jobs" if row.mechanism.endswith(BESIDE) else ""
    return f"direct {order}reads of {row.chunk_bytes:.0f} B, {row.in_flight:g} at once{others}"


def _reads(rows: Sequence[Measurement]) -> list[Measurement]:
    return [row for row in rows if row.test == "Z1" and row.direction == "read" and row.bandwidth]


def _is_lone_random(row: Measurement) -> bool:
    return row.order != SEQUENTIAL and not row.mechanism.endswith(BESIDE)


def _rate(row: Measurement) -> float:
    return float(row.bandwidth or 0)
