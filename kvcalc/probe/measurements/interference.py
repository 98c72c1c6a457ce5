"""K1: copies while the device computes: matrix products, and a kernel that reads as decode does."""

from functools import partial

from kvcalc.probe.backends.protocol import Accelerator
from kvcalc.probe.session import GIB, MIB, Session
from kvcalc.probe.sweep import Series, Step, Taken
from kvcalc.probe.timing import DeviceTimer, Queue, Sample, Work

COPY = 64 * MIB
SIDE = 4096
"""Side of the matrices [1]: large enough to fill every multiprocessor."""
WINDOW = 0.02
"""How long each side runs in one sample [second]."""
STALL = 0.004
MOST = 500


def run(session: Session) -> None:
    """Time both sides alone and together."""
    device, size = session.device, session.host_memory(COPY)
    host, memory = device.host(size, pinned=True), device.memory(size)
    enough = device.facts().memory_free is not None
    compute: dict[str, tuple[Work, float]] = {
        "gemm": (device.multiply(SIDE if enough else 256), 0.0),
        "read": (device.read(buffer := device.memory(GIB if enough else MIB)), float(GIB if enough else MIB)),
    }
    queues = device.queue(), device.queue()
    copy = partial(device.copy, memory, host)
    for name, (work, traffic) in compute.items():
        session.beat(f"copy beside {name}")
        counts = [_count(queues[0], copy), _count(queues[1], work)]
        for beside in (False, True):
            rounds = [
                _round(device, queues, (copy, work), counts, beside) for _ in range(session.options.samples)
            ]
            suffix = f"beside_{name}" if beside else f"alone_{name}"
            _keep(session, f"copy.{suffix}", float(size), counts[0], [one[0] for one in rounds])
            _keep(session, f"{name}.{suffix}", traffic, counts[1], [one[1] for one in rounds])
    del buffer
    device.release()


def _count(queue: Queue, work: Work) -> int:
    timer = DeviceTimer(queue)
    timer.sample(work, 1)
    once = timer.sample(work, 2).seconds
    return max(1, min(MOST, round(WINDOW / once))) if once > 0 else MOST


def _round(
    device: Accelerator,
    queues: tuple[Queue, Queue],
    works: tuple[Work, Work],
    counts: list[int],
    beside: bool,
) -> tuple[float, float]:
    """Return the time of one copy and of one operation, from one run of both, together or in turn."""
    first, second = queues
    device.synchronize()
    first.stall(STALL)
    starts = [first.record()]
    if beside:
        second.wait_for(starts[0])
        starts.append(second.record())
    with first:
        for _ in range(counts[0]):
            works[0]()
    ends = [first.record()]
    if not beside:
        first.synchronize()
        second.stall(STALL)
        starts.append(second.record())
    with second:
        for _ in range(counts[1]):
            works[1]()
    ends.append(second.record())
    device.synchronize()
    first.synchronize()
    second.synchronize()
    each = [queue.between(a, b) / n for queue, a, b, n in zip(queues, starts, ends, counts, strict=True)]
    return each[0], each[1]


def _keep(session: Session, name: str, counted: float, repeats: int, times: list[float]) -> None:
    is_copy = name.startswith("copy.")
    series = Series(
        test="K1",
        name=name,
        path="host-device" if is_copy else "device",
        direction="h2d" if is_copy else "read" if counted else "none",
        counted="one_way" if is_copy else "read" if counted else "none",
        mechanism="copy_engine" if is_copy else name.split(".")[0],
        device=session.device.index,
        pinned=True if is_copy else None,
        in_flight=2 if "beside" in name else 1,
        fitted=False,
    )
    step = Step(counted, lambda: None)
    session.keep(series, [Taken(step, repeats, tuple(Sample(one) for one in times))])
