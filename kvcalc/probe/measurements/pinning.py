"""P1: what pinning costs by byte, allocated pinned or pinned after it was touched; never more than 4 GiB."""

from kvcalc.probe.backends.protocol import UnavailableError
from kvcalc.probe.session import GIB, MIB, Session
from kvcalc.probe.sweep import Series, Step, Taken
from kvcalc.probe.timing import Sample

SIZES = (64 * MIB, GIB, 4 * GIB)
"""Sizes [byte]; a longer pin holds locks of the driver that stall every process that uses it."""
TIMES = 3
CGROUP_SHARE = 4
"""Part of a cgroup's memory that is pinned at most: one over this [1]."""


def run(session: Session) -> None:
    """Pin and release each size, up to the first that fails."""
    device, failed = session.device, ""
    limit = session.environment.cgroup_memory
    most = min(session.host_memory(SIZES[-1]), int(limit) // CGROUP_SHARE if limit else SIZES[-1])
    for how in ("alloc", "register"):
        taken: list[Taken] = []
        for size in (size for size in SIZES if size <= most):
            if session.left() < 0 or (session.quick and size > GIB):
                break
            session.beat(f"pin.{how} {size // MIB} MiB")
            try:
                samples = tuple(Sample(device.pin(size, how)[0]) for _ in range(TIMES))
            except UnavailableError as error:
                failed = f"{how} of {size // MIB} MiB: {error}"
                break
            taken.append(Taken(Step(float(size), lambda: None), 1, samples))
        series = Series(
            test="P1",
            name=f"pin.{how}",
            path="host",
            direction="none",
            counted="one_way",
            mechanism=how,
            device=device.index,
            pinned=True,
            fitted=False,
        )
        session.keep(series, taken)
    if failed:
        raise UnavailableError(failed)
