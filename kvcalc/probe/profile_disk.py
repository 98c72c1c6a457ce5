"""Which reads of a disk a profile's rate, latency and requests per second are taken from."""

from collections.abc import Sequence

from kvcalc.probe.results import Measurement
from kvcalc.probe.session import usable
from kvcalc.records import record

LARGE_READ = 128 * 2**10
"""Smallest read whose rate is that of large reads [byte]: chosen; below, requests limit the rate."""
SMALL_READ = 16 * 2**10
"""Largest read whose time alone is taken for a latency [byte]: chosen; beyond, moving its bytes shows."""


@record
class DiskReads:
    """One measurement for each value of a profile's storage; None where none can stand for it."""

    large: Measurement | None  # fastest at the largest size
    alone: Measurement | None  # smallest read, one at a time
    small: Measurement | None  # fastest at the smallest size


def disk_reads(rows: Sequence[Measurement]) -> DiskReads:
    """Return the reads that stand for a disk.

    The time of one of many reads under way is no latency: it is the reciprocal of their number per second.
    """
    reads = [
        row for row in rows if row.test == "Z1" and row.direction == "read" and row.bandwidth and usable(row)
    ]
    large = [row for row in reads if row.chunk_bytes >= LARGE_READ]
    small = [row for row in reads if row.chunk_bytes <= SMALL_READ]
    alone = [row for row in small if row.in_flight == 1]
    largest = max((row.chunk_bytes for row in large), default=0)
    smallest = min((row.chunk_bytes for row in small), default=0)
    return DiskReads(
        large=max((row for row in large if row.chunk_bytes == largest), key=_rate, default=None),
        alone=min(alone, key=lambda row: row.chunk_bytes, default=None),
        small=max((row for row in small if row.chunk_bytes == smallest), key=_rate, default=None),
    )


def _rate(row: Measurement) -> float:
    return float(row.bandwidth or 0)
