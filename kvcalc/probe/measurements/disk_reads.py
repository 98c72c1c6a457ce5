"""Z1: random reads past the cache, by size and by how many are under way: t0, B and the IOPS of a disk."""

from dataclasses import replace
from functools import partial
from time import monotonic

from kvcalc.probe.backends.disk import (
    GOOD_FILE,
    WRITE_PIECE,
    DiskReads,
    check_folder,
    facts_of,
    temporary_file,
)
from kvcalc.probe.backends.protocol import PartlyError
from kvcalc.probe.session import KIB, MIB, Session
from kvcalc.probe.sweep import Series, Step
from kvcalc.probe.timing import HostTimer

SIZES = (4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB, MIB, 4 * MIB)
DEPTHS = (1, 4, 16, 32, 64)
QUICK_DEPTHS = (1, 16)
BATCH_BYTES = 16 * MIB
"""Bytes of one batch of reads at most [byte]; they are under way `depth` at a time."""
BATCH_READS = 64
"""Reads of one batch for each request under way, where they are small [1]."""
SHARE, SHARED = 4, 16
"""Least reads of a thread in a batch [1], up to so many threads [1]: a batch waits for its slowest thread."""
MOST_STARTED = 2e5
"""Reads a second [1/second] near which Python's threads may be the limit: from the page cache, where no drive
is asked, they reached 280,000 to 430,000."""
CACHE_RATE = 20e9
"""Rate that no single disk reaches [byte/second]; above it a cache has answered."""


def run(session: Session) -> None:
    """Make one temporary file and read it."""
    options = session.options
    size = options.file_size // WRITE_PIECE * WRITE_PIECE
    check_folder(options.disk, size, options.disk_named)
    session.disk = facts_of(options.disk, size)
    flags = [
        *(["small_file"] if size < GOOD_FILE else []),
        *(["virtual_disk"] if session.disk.virtual else []),
    ]
    depths = QUICK_DEPTHS if session.quick else DEPTHS
    session.beat("writing the file")
    begun = monotonic()
    with temporary_file(options.disk, size, options.seed, session.in_time) as handle:
        session.prepared(monotonic() - begun)
        for done, depth in enumerate(depths):
            if session.left() <= 0:
                rest = ", ".join(str(left) for left in depths[done:])
                raise PartlyError(f"reads {rest} at once: the time was used up")
            _depth(session, handle, size, depth, tuple(flags), 1 / (len(depths) - done))


def _depth(
    session: Session, handle: int, size: int, depth: int, flags: tuple[str, ...], share: float
) -> None:
    seed = session.options.seed
    readers = [DiskReads(handle, size, block, depth, seed) for block in SIZES]
    steps = []
    for reader in readers:
        least = depth * (SHARE if depth <= SHARED else 1)
        count = max(least, min(BATCH_READS * depth, BATCH_BYTES // reader.block) // depth * depth)
        steps.append(
            Step(
                chunk=float(reader.block),
                work=reader.read(count),
                per=count,
                verify=partial(reader.verified, seed),
            )
        )
    series = Series(
        test="Z1",
        name=f"disk.read.depth{depth}",
        path="disk",
        direction="read",
        counted="read",
        mechanism="direct",
        in_flight=depth,
        flags=flags,
        bound=None,
    )
    rows = session.measure(series, HostTimer(), steps, share)
    for reader in readers:
        reader.close()
    for row in rows:
        if row.bandwidth is not None and row.bandwidth > CACHE_RATE:
            at = session.measurements.index(row)
            session.measurements[at] = replace(row, flags=(*row.flags, "cache_hit"))
        elif row.median > 0 and 1 / row.median > MOST_STARTED:
            at = session.measurements.index(row)
            session.measurements[at] = replace(row, flags=(*row.flags, "cpu_bound"))
