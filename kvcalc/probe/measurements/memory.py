"""D1: device memory read, written and copied, in buffers that no cache holds."""

from functools import partial

from kvcalc.probe.session import GIB, MIB, Session
from kvcalc.probe.sweep import Series, Step
from kvcalc.probe.timing import DeviceTimer, Work

CACHE_MULTIPLE = 4
"""Buffer over the device's cache [1]; figures above the data sheet have come from smaller ones."""
LEAST = GIB
SIDE, SMALL_SIDE = 8192, 256
"""Side of the matrices [1]; the second where no device computes."""
FREE_SHARE = 8
"""Part of the free device memory that one buffer may take: one over this [1]."""


def run(session: Session) -> None:
    """Time a sum, a fill and a copy."""
    device = session.device
    facts = device.facts()
    size = max(LEAST, CACHE_MULTIPLE * int(facts.cache or 0))
    if facts.memory_free is not None:
        size = min(size, int(facts.memory_free) // FREE_SHARE)
    else:
        size = session.host_memory(min(size, 256 * MIB))
    size = 1 << (size.bit_length() - 1)
    source, target = device.memory(size), device.memory(size)
    device.fill(source, session.options.seed)
    timer = DeviceTimer(device.queue())
    kinds: tuple[tuple[str, str, Work, int], ...] = (
        ("read", "read", device.read(source), 1),
        ("write", "write", device.write(target), 1),
        ("copy", "read+write", partial(device.copy, target, source), 2),
    )
    for done, (direction, counted, work, passes) in enumerate(kinds):
        is_copy = direction == "copy"
        step = Step(
            chunk=float(size),
            work=work,
            counted=float(size) * passes,
            verify=partial(device.same, source, target) if is_copy else None,
            clear=partial(device.fill, target, 0) if is_copy else None,
        )
        series = Series(
            test="D1",
            name=f"memory.{direction}",
            path="device",
            direction=direction,
            counted=counted,
            mechanism={"read": "sum", "write": "fill", "copy": "copy"}[direction],
            device=device.index,
            bound=facts.memory_bound,
            fitted=False,
        )
        session.measure(series, timer, [step], 1 / (len(kinds) + 1 - done))
    _products(session, timer, enough=facts.memory_free is not None)
    device.release()


def _products(session: Session, timer: DeviceTimer, enough: bool) -> None:
    """Time a product of large matrices: the rate that a device without a profile is known by."""
    side = SIDE if enough else SMALL_SIDE
    series = Series(
        test="D1",
        name="compute.bf16",
        path="device",
        direction="none",
        counted="none",
        mechanism="matrix product",
        device=session.device.index,
        fitted=False,
    )
    step = Step(0.0, session.device.multiply(side), operations=2.0 * side**3)
    session.measure(series, timer, [step])
