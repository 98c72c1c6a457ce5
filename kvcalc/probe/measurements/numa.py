"""N1: host memory on each NUMA node that has CPUs, copied to and from the device, and by the CPU itself."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from kvcalc.probe.backends.host import PASSES, HostCopies, buffer_size, node_cpus
from kvcalc.probe.backends.protocol import UnavailableError
from kvcalc.probe.session import MIB, Session
from kvcalc.probe.sweep import Series, Step
from kvcalc.probe.timing import DeviceTimer, HostTimer

SIZE = 64 * MIB


def run(session: Session) -> None:
    """Measure from each node; a node of a GPU's own memory is no host memory and is left out."""
    nodes = [node.id for node in session.environment.numa_nodes if not node.is_gpu and node_cpus(node.id)]
    if len(nodes) < 2:
        raise UnavailableError("one NUMA node with CPUs of this process: nothing is remote")
    for done, node in enumerate(nodes):
        session.beat(f"node {node}")
        share = 1 / (len(nodes) - done)
        with on_node(node):
            flags = () if lies_on(node) else ("numa_unbound",)
            if session.devices:
                _device(session, node, flags, share / 2)
            _host(session, nodes[0], node, flags, share)


@contextmanager
def on_node(node: int) -> Iterator[None]:
    """Run on the CPUs of a node, whose memory then takes what is touched first."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, node_cpus(node))
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def lies_on(node: int, maps: Path = Path("/proc/self/numa_maps")) -> bool:
    """Touch fresh memory and tell whether the kernel put it on the node."""
    before = _pages(node, maps)
    touched = bytearray(32 * MIB)
    touched[::4096] = b"\1" * len(touched[::4096])
    return _pages(node, maps) - before >= len(touched) // 4096 // 2


def _pages(node: int, maps: Path) -> int:
    try:
        text = maps.read_text(encoding="ascii", errors="replace")
    except OSError:
        return 0
    total = 0
    for line in text.splitlines():
        size = 4
        for word in line.split():
            if word.startswith("kernelpagesize_kB="):
                size = int(word.partition("=")[2])
        for word in line.split():
            if word.startswith(f"N{node}="):
                total += int(word.partition("=")[2]) * size // 4
    return total


def _device(session: Session, node: int, flags: tuple[str, ...], share: float) -> None:
    device = session.device
    device.release()  # torch would hand out a pinned block again, wherever it lies
    host, memory = device.host(SIZE, pinned=True), device.memory(SIZE)
    timer = DeviceTimer(device.queue())
    for direction, source, target in (("h2d", host, memory), ("d2h", memory, host)):
        step = Step(float(SIZE), partial(device.copy, target, source))
        series = Series(
            test="N1",
            name=f"{direction}.node{node}",
            path="host-device",
            direction=direction,
            counted="one_way",
            mechanism="copy_engine",
            device=device.index,
            pinned=True,
            bound=device.facts().link.bound,
            flags=flags,
            fitted=False,
        )
        session.measure(series, timer, [step], share / 2)


def _host(session: Session, near: int, node: int, flags: tuple[str, ...], share: float) -> None:
    size = buffer_size(session.environment.last_level_cache, session.environment.memory_available)
    copies = HostCopies(size, 1, session.options.seed)
    series = Series(
        test="N1",
        name=f"host.copy.node{node}",
        path="host",
        direction="copy",
        counted="read+write",
        mechanism="memcpy",
        flags=(*flags, *(("numa_remote",) if node != near else ())),
        fitted=False,
    )
    with on_node(near):  # always the same CPUs, with the memory of each node in turn
        step = Step(
            float(copies.size),
            copies.copy(),
            per=PASSES,
            counted=2.0 * copies.size,
            verify=copies.same,
            clear=copies.clear,
        )
        session.measure(series, HostTimer(), [step], share)
    copies.close()
