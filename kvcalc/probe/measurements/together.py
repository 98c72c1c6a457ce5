"""G1: all devices at once, and pairs: what the host and shared switches leave for each."""

from collections.abc import Sequence
from functools import partial
from itertools import combinations

from kvcalc.probe.backends.protocol import Accelerator
from kvcalc.probe.session import MIB, Session
from kvcalc.probe.sweep import Series, Step
from kvcalc.probe.timing import HostTimer, Work

SIZE = 64 * MIB
COPIES = 4
"""Copies of each device in one operation [1], so that starting them one by one does not show."""
MOST_PAIRS = 12


def run(session: Session) -> None:
    """Measure each device alone, all together, and with the full level pairs."""
    devices = session.devices
    groups: list[tuple[Accelerator, ...]] = [(device,) for device in devices]
    groups.append(tuple(devices))
    if session.full and len(devices) > 2:
        groups += list(combinations(devices, 2))[:MOST_PAIRS]
    cases = [(group, direction) for group in groups for direction in ("h2d", "d2h")]
    for done, (group, direction) in enumerate(cases):
        _group(session, group, direction, 1 / (len(cases) - done))


def _group(session: Session, group: Sequence[Accelerator], direction: str, share: float) -> None:
    works: list[Work] = []
    for device in group:
        host, memory = device.host(SIZE, pinned=True), device.memory(SIZE)
        pair = (memory, host) if direction == "h2d" else (host, memory)
        works.append(partial(device.copy, *pair))

    def all_of_them() -> None:
        for _ in range(COPIES):
            for work in works:
                work()

    def wait() -> None:
        for device in group:
            device.synchronize()

    names = "+".join(str(device.index) for device in group)
    total = float(SIZE) * COPIES * len(group)
    series = Series(
        test="G1",
        name=f"{direction}.together.{names}",
        path="host-device",
        direction=direction,
        counted="one_way",
        mechanism="copy_engine",
        pinned=True,
        in_flight=len(group),
        fitted=False,
    )
    step = Step(float(SIZE), all_of_them, chunks=COPIES * len(group), counted=total, most_repeats=4)
    session.measure(series, HostTimer(wait), [step], share)
