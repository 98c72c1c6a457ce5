"""H3: equal bytes both ways at once, on two queues of which the second waits for the first to begin."""

from kvcalc.probe.backends.protocol import Accelerator, Buffer
from kvcalc.probe.session import MIB, Session
from kvcalc.probe.sweep import Series, Step, Taken
from kvcalc.probe.timing import Queue, Sample

SIZE = 64 * MIB
COPIES = 4
"""Copies each way in one sample [1]."""
STALL = 0.002
"""How long both queues are held while they are filled [second]."""

_SIDES = (("h2d", "one_way"), ("d2h", "one_way"), ("both", "both_ways"))


def run(session: Session) -> None:
    """Take samples of both directions together, each by its own end and both by the last."""
    device, size = session.device, session.host_memory(SIZE)
    up = device.memory(size), device.host(size, pinned=True)
    down = device.host(size, pinned=True), device.memory(size)
    first, second = device.queue(), device.queue()
    device.fill(up[1], session.options.seed)
    device.fill(down[1], session.options.seed + 1)
    session.beat("both directions")
    rounds = [_round(device, first, second, up, down) for _ in range(session.options.samples + 2)][2:]
    verified = device.same(*up) and device.same(*down)
    bound = device.facts().link.bound
    for at, (direction, counted) in enumerate(_SIDES):
        step = Step(float(size), lambda: None, counted=float(size) * (2 if direction == "both" else 1))
        taken = Taken(step, COPIES, tuple(Sample(one[at]) for one in rounds), verified)
        series = Series(
            test="H3",
            name=f"duplex.{direction}",
            path="host-device",
            direction=direction,
            counted=counted,
            mechanism="copy_engine",
            device=device.index,
            pinned=True,
            in_flight=2,
            bound=bound * (2 if direction == "both" else 1) if bound else None,
            fitted=False,
        )
        session.keep(series, [taken])
    device.release()


def _round(
    device: Accelerator, first: Queue, second: Queue, up: tuple[Buffer, Buffer], down: tuple[Buffer, Buffer]
) -> tuple[float, float, float]:
    """Return the time of one copy up, one down, and one of both, from one overlapped run."""
    device.synchronize()
    first.stall(STALL)
    start = first.record()
    second.wait_for(start)
    for _ in range(COPIES):
        with first:
            device.copy(*up)
        with second:
            device.copy(*down)
    ends = first.record(), second.record()
    first.synchronize()
    second.synchronize()
    times = [first.between(start, end) / COPIES for end in ends]
    return times[0], times[1], max(times)
