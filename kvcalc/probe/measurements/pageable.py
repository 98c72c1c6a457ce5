"""H2: the same copies from memory that is not pinned, by the host's clock, since they block it."""

from functools import partial

from kvcalc.probe.session import KIB, MIB, Session
from kvcalc.probe.sweep import Series, Step
from kvcalc.probe.timing import HostTimer

SIZES = (64 * KIB, MIB, 16 * MIB, 64 * MIB, 256 * MIB)


def run(session: Session) -> None:
    """Sweep both directions."""
    device = session.device
    most = session.host_memory(SIZES[-2] if session.quick else SIZES[-1])
    host, memory = device.host(most, pinned=False), device.memory(most)
    bound, timer = device.facts().link.bound, HostTimer(device.synchronize, device.queue().now)
    for share, direction, source, target in ((0.5, "h2d", host, memory), (1.0, "d2h", memory, host)):
        device.fill(source, session.options.seed)
        steps = []
        for size in (size for size in SIZES if size <= most):
            a, b = device.part(target, 0, size), device.part(source, 0, size)
            work, same = partial(device.copy, a, b), partial(device.same, a, b)
            steps.append(Step(size, work, verify=same, clear=partial(device.fill, a, 0)))
        series = Series(
            test="H2",
            name=f"{direction}.pageable",
            path="host-device",
            direction=direction,
            counted="one_way",
            mechanism="copy_engine",
            device=device.index,
            pinned=False,
            bound=bound,
            fitted=False,
        )
        session.measure(series, timer, steps, share)
    device.release()
