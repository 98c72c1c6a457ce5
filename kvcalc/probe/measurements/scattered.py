"""S1: KV blocks scattered over device memory and host memory; this decides the speed of offloading."""

import random
from collections.abc import Iterator, Sequence
from functools import partial

from kvcalc.probe.backends.protocol import Accelerator, Buffer, PartlyError, UnavailableError
from kvcalc.probe.session import KIB, MIB, Session
from kvcalc.probe.sweep import Series, Step
from kvcalc.probe.timing import HostTimer, Work
from kvcalc.records import record

CHUNKS = (512, 4 * KIB, 32 * KIB, 256 * KIB, 2 * MIB)
"""Sizes of a piece that engines move [byte]: a row of MLA to a block over all layers."""
RUN = 16
"""Blocks that lie side by side in the order `runs` [1]."""
MOST_CHUNKS = 8192
MOST_BYTES = 256 * MIB
CHECKED = 64
"""Chunks whose content is compared [1]."""

MECHANISMS = ("percall_python", "percall_c", "merged", "gather_stage", "batch")
_FULL_ONLY = frozenset({"batch"})  # needs CUDA 12.8, and a call that no test has run on a device yet


@record
class Blocks:
    """Which chunk of the source goes to which place of the target."""

    chunk: int
    sources: tuple[int, ...]
    targets: tuple[int, ...]

    def merged(self) -> Iterator[tuple[int, int, int]]:
        """Yield (source, target, chunks) with neighbours on both sides joined."""
        at = 0
        while at < len(self.sources):
            length = 1
            while (
                at + length < len(self.sources)
                and self.sources[at + length] == self.sources[at] + length
                and self.targets[at + length] == self.targets[at] + length
            ):
                length += 1
            yield self.sources[at], self.targets[at], length
            at += length


def blocks_of(chunk: int, count: int, order: str, seed: int) -> Blocks:
    """Return an assignment of chunks, always the same for its seed."""
    if order == "sequential":
        return Blocks(chunk, tuple(range(count)), tuple(range(count)))
    width = RUN if order == "runs" else 1
    sources, targets = (_shuffled(count, width, seed + side) for side in (0, 1))
    return Blocks(chunk, sources, targets)


def _shuffled(count: int, width: int, seed: int) -> tuple[int, ...]:
    starts = list(range(0, count - count % width, width))
    random.Random(seed).shuffle(starts)
    found = [start + step for start in starts for step in range(width)]
    return tuple(found + list(range(len(found), count)))


def run(session: Session) -> None:
    """Measure every mechanism on every chunk size, order and direction that the level asks for."""
    device = session.device
    queue = device.queue()
    timer = HostTimer(device.synchronize, queue.now, lambda: queue)
    cases = list(_cases(session))
    missing: dict[str, str] = {}
    for done, (direction, order, mechanism) in enumerate(cases):
        steps: list[Step] = []
        for chunk in _chunks(session):
            try:
                steps.append(_step(session, device, chunk, direction, order, mechanism))
            except UnavailableError as error:
                missing[mechanism] = str(error)
                break
        if steps and mechanism not in missing:
            series = Series(
                test="S1",
                name=f"{direction}.scattered.{mechanism}.{order}",
                path="host-device",
                direction=direction,
                counted="one_way",
                mechanism=mechanism,
                device=device.index,
                pinned=True,
                order=order,
                bound=device.facts().link.bound,
                fitted=False,
            )
            session.measure(series, timer, steps, 1 / (len(cases) - done))
        steps.clear()
        device.release()
    if missing:
        raise PartlyError("; ".join(f"{name}: {why}" for name, why in missing.items()))


def _chunks(session: Session) -> list[int]:
    """Return the sizes of the grid, and those of the chosen model; direct copies take multiples of 8."""
    own = {max(8, int(size) // 8 * 8) for size in session.options.pieces.values()}
    return sorted({*CHUNKS, *own})


def _cases(session: Session) -> Iterator[tuple[str, str, str]]:
    for direction in ("h2d", "d2h"):
        for mechanism in MECHANISMS:
            if mechanism in _FULL_ONLY and not session.full:
                continue
            orders: tuple[str, ...] = ("runs",) if mechanism == "merged" else ("random",)
            if session.full and mechanism != "merged":
                orders = ("sequential", "random", "runs")
            for order in orders:
                yield direction, order, mechanism


def _step(
    session: Session, device: Accelerator, chunk: int, direction: str, order: str, mechanism: str
) -> Step:
    most = min(MOST_BYTES if session.full else MOST_BYTES // 4, session.host_memory(MOST_BYTES))
    count = max(2, min(MOST_CHUNKS // (8 if session.quick else 1), most // chunk))
    blocks = blocks_of(chunk, count, order, session.options.seed)
    size = chunk * count
    host, memory = device.host(size, pinned=True), device.memory(size)
    source, target = (host, memory) if direction == "h2d" else (memory, host)
    device.fill(source, session.options.seed)
    work = _work(device, source, target, blocks, direction, mechanism)
    return Step(
        chunk=float(chunk),
        work=work,
        chunks=count,
        verify=partial(_same, device, source, target, blocks),
        clear=partial(device.fill, target, 0),
        most_repeats=4,
    )


def _work(
    device: Accelerator, source: Buffer, target: Buffer, blocks: Blocks, direction: str, mechanism: str
) -> Work:
    if mechanism == "gather_stage":
        return _staged(device, source, target, blocks, direction)
    if mechanism == "merged":
        return device.copies(_pairs(device, source, target, blocks.chunk, blocks.merged()), "percall_python")
    each = ((a, b, 1) for a, b in zip(blocks.sources, blocks.targets, strict=True))
    return device.copies(_pairs(device, source, target, blocks.chunk, each), mechanism)


def _pairs(
    device: Accelerator, source: Buffer, target: Buffer, chunk: int, moves: Iterator[tuple[int, int, int]]
) -> list[tuple[Buffer, Buffer]]:
    return [
        (device.part(target, b * chunk, length * chunk), device.part(source, a * chunk, length * chunk))
        for a, b, length in moves
    ]


def _staged(device: Accelerator, source: Buffer, target: Buffer, blocks: Blocks, direction: str) -> Work:
    """Return work that collects or spreads on the device and copies one piece; the host side is contiguous.

    On the host the chunks lie in the order of the target's places, as a store that writes whole files
    keeps them.
    """
    stage = device.memory(blocks.chunk * len(blocks.sources))
    by_place = _inverse(blocks)
    if direction == "d2h":
        collect = device.gather(source, blocks.chunk, by_place, stage)

        def store() -> None:
            collect()
            device.copy(target, stage)

        return store
    spread = device.scatter(stage, blocks.chunk, _targets(blocks), target)

    def load() -> None:
        device.copy(stage, source)
        spread()

    return load


def _inverse(blocks: Blocks) -> list[int]:
    """Return the source of each place of the target."""
    found = [0] * len(blocks.sources)
    for source, target in zip(blocks.sources, blocks.targets, strict=True):
        found[target] = source
    return found


def _targets(blocks: Blocks) -> list[int]:
    """Return the place of each chunk of the source."""
    found = [0] * len(blocks.sources)
    for source, target in zip(blocks.sources, blocks.targets, strict=True):
        found[source] = target
    return found


def _same(device: Accelerator, source: Buffer, target: Buffer, blocks: Blocks) -> bool:
    chosen: Sequence[int] = range(0, len(blocks.sources), max(1, len(blocks.sources) // CHECKED))
    chunk = blocks.chunk
    return all(
        device.same(
            device.part(source, blocks.sources[at] * chunk, chunk),
            device.part(target, blocks.targets[at] * chunk, chunk),
        )
        for at in chosen
    )
