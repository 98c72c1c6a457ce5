"""M1: host memory copied by one thread and by several, in buffers four times the last-level cache."""

from kvcalc.probe.backends.host import PASSES, HostCopies, buffer_size, multiply
from kvcalc.probe.backends.protocol import PartlyError, UnavailableError
from kvcalc.probe.session import Session
from kvcalc.probe.sweep import Series, Step
from kvcalc.probe.timing import HostTimer

MOST_THREADS = 64
SIDE = 1536
"""Side of the matrices [1]."""


def run(session: Session) -> None:
    """Copy with 1, 2, 4 ... threads, and with all CPUs that this process may use."""
    allowed = min(MOST_THREADS, int(session.environment.cpus_allowed))
    counts = sorted({1, allowed, *(2**step for step in range(7) if 2**step < allowed and not session.quick)})
    size = buffer_size(session.environment.last_level_cache, session.environment.memory_available)
    copies = [(threads, False) for threads in counts]
    copies += [] if session.quick else [(allowed, True)]
    if not session.devices:
        _products(session, 1 / (len(copies) + 1))  # first, as no profile of a CPU is one without its rate
    for done, (threads, huge) in enumerate(copies):
        if done and session.left() <= 0:
            raise PartlyError(f"copies by {threads} threads: the time was used up")
        _copies(session, size, threads, huge, 1 / (len(copies) - done))


def _copies(session: Session, size: int, threads: int, huge: bool, share: float) -> None:
    """Copy between pages as everybody gets them, or between huge ones, to show what asking for them gives."""
    try:
        copies = HostCopies(size, threads, session.options.seed, huge)
    except UnavailableError:
        if huge:
            return
        raise
    series = Series(
        test="M1",
        name=f"host.{'huge_pages' if huge else 'copy'}.{threads}",
        path="host",
        direction="copy",
        counted="read+write",
        mechanism="memcpy, huge pages" if huge else "memcpy",
        in_flight=threads,
        fitted=False,
    )
    step = Step(
        chunk=float(copies.size),
        work=copies.copy(),
        per=PASSES,
        counted=2.0 * copies.size,
        verify=copies.same,
        clear=copies.clear,
    )
    session.measure(series, HostTimer(), [step], share)
    copies.close()


def _products(session: Session, share: float) -> None:
    """Time a product of matrices by numpy: without a GPU, the CPU is what computes."""
    series = Series(
        test="M1",
        name="compute.fp32",
        path="host",
        direction="none",
        counted="none",
        mechanism="matrix product",
        in_flight=int(session.environment.cpus_allowed),
        fitted=False,
    )
    step = Step(0.0, multiply(SIDE, session.options.seed), operations=2.0 * SIDE**3)
    session.measure(series, HostTimer(), [step], share)
