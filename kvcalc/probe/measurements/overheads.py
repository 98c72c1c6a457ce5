"""O1: what the CPU pays for a launch, an event, a wait and a small copy; no bytes to speak of move."""

from kvcalc.probe.session import KIB, Session
from kvcalc.probe.sweep import Series, Step
from kvcalc.probe.timing import HostTimer, Work

SMALL = 4 * KIB


def run(session: Session) -> None:
    """Time each call by the host's clock, many in a row."""
    device = session.device
    queue = device.queue()
    host, memory = device.host(SMALL, pinned=True), device.memory(SMALL)
    timer = HostTimer(device.synchronize, queue.now, lambda: queue)
    calls: dict[str, Work] = {
        "launch": device.nothing(),
        "event": lambda: _drop(queue.record()),
        "wait": queue.synchronize,
        "copy_call": lambda: device.copy(memory, host),
    }
    for done, (name, work) in enumerate(calls.items()):
        series = Series(
            test="O1",
            name=f"overhead.{name}",
            path="device",
            direction="none",
            counted="none",
            mechanism=name,
            device=device.index,
            fitted=False,
        )
        session.measure(series, timer, [Step(0.0, work)], 1 / (len(calls) - done))


def _drop(_: object) -> None:
    return None
