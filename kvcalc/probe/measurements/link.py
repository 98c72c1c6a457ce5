"""H1: copies between pinned host memory and the device, each direction by size: t0 and B."""

from functools import partial

from kvcalc.probe.session import GIB, KIB, MIB, Session
from kvcalc.probe.sweep import Series, Step
from kvcalc.probe.timing import DeviceTimer

SIZES = (*(4 * KIB * 4**step for step in range(10)), 128 * KIB, 512 * KIB)
"""4 KiB to 1 GiB in steps of 4, and of 2 where most links have their knee [byte]."""
QUICK_MOST = 256 * MIB


def run(session: Session) -> None:
    """Sweep both directions over one pair of buffers."""
    device = session.device
    most = session.host_memory(QUICK_MOST if session.quick else GIB)
    sizes = sorted(size for size in SIZES if size <= most)
    host, memory = device.host(sizes[-1], pinned=True), device.memory(sizes[-1])
    bound = device.facts().link.bound
    timer = DeviceTimer(device.queue())
    with device.watched():
        for share, direction, source, target in ((0.5, "h2d", host, memory), (1.0, "d2h", memory, host)):
            device.fill(source, session.options.seed)
            steps = []
            for size in sizes:
                a, b = device.part(target, 0, size), device.part(source, 0, size)
                steps.append(
                    Step(
                        chunk=size,
                        work=partial(device.copy, a, b),
                        verify=partial(device.same, a, b),
                        clear=partial(device.fill, a, 0),
                    )
                )
            series = Series(
                test="H1",
                name=f"{direction}.pinned",
                path="host-device",
                direction=direction,
                counted="one_way",
                mechanism="copy_engine",
                device=device.index,
                pinned=True,
                bound=bound,
            )
            session.measure(series, timer, steps, share)
    device.release()
