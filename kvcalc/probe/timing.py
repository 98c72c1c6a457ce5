"""How one sample is taken: by the device's own clock with launch cost hidden, or by the host's."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from time import perf_counter
from typing import Protocol

from kvcalc.probe.scalars import Seconds
from kvcalc.records import record

Work = Callable[[], None]
"""Queues or does one operation."""

FIRST_STALL = 0.002
"""How long a queue is held while copies are put into it, at first [second]."""
LONGEST_STALL = 0.5
"""Longest hold [second]; drivers give up on kernels that never end."""
STALL_MARGIN = 2.0
"""Hold over the time that queueing took [1], when a hold proved too short."""
TRIES = 5
"""Times that a hold is lengthened [1]."""
HIDDEN = 0.1
"""Share of an operation that queueing it may take without being seen, even where the hold was short [1]."""


@record
class Sample:
    """One sample: the time of one of its operations."""

    seconds: Seconds
    enqueue: Seconds | None = None  # that the CPU took to queue one; None by the host's clock
    launch_bound: bool = False


class Timer(Protocol):
    """Takes a sample of some work."""

    def sample(self, work: Work, repeats: int) -> Sample:
        """Return the time of one operation, from `repeats` of them in a row."""

    def now(self) -> float:
        """Return the host's clock [second]."""


class Queue(Protocol):
    """One stream of a device with events that tell its own time; a context in which work goes to it."""

    def __enter__(self) -> object:
        """Send the work that follows to this queue."""

    def __exit__(self, *_: object) -> None:
        """Send it to where it went before."""

    def now(self) -> float:
        """Return the host's clock [second]."""

    def record(self) -> object:
        """Put an event into the queue."""

    def done(self, event: object) -> bool:
        """Tell whether the device has passed an event, without waiting for it."""

    def between(self, first: object, second: object) -> float:
        """Return the time between two events that have passed [second]."""

    def stall(self, seconds: float) -> bool:
        """Hold the queue for about so long; False where this device cannot."""

    def wait_for(self, event: object) -> None:
        """Hold the queue until an event of another one."""

    def synchronize(self) -> None:
        """Wait until everything in the queue is done."""


class DeviceTimer:
    """Times by events: the queue is held until all operations are in it, so that none waits for the CPU."""

    def __init__(self, queue: Queue) -> None:
        self.queue = queue
        self._stall = FIRST_STALL

    def now(self) -> float:
        """Return the host's clock [second]."""
        return self.queue.now()

    def sample(self, work: Work, repeats: int) -> Sample:
        """Return the time of one operation by the device's clock, and whether the hold sufficed."""
        for _ in range(TRIES):
            found, queued = self._once(work, repeats)
            if not found.launch_bound or self._stall >= LONGEST_STALL:
                break
            self._stall = min(LONGEST_STALL, max(2 * self._stall, STALL_MARGIN * queued))
        return found

    def _once(self, work: Work, repeats: int) -> tuple[Sample, float]:
        queue = self.queue
        with queue:
            queue.synchronize()
            queue.stall(self._stall)
            start = queue.record()
            begun = queue.now()
            for _ in range(repeats):
                work()
            queued = queue.now() - begun
            # Passed already: the device may have waited for the CPU between two operations.
            late = queue.done(start)
            end = queue.record()
            queue.synchronize()
        each, enqueue = queue.between(start, end) / repeats, queued / repeats
        return Sample(each, enqueue, late and enqueue > HIDDEN * each), queued


class HostTimer:
    """Times by the host's clock, with a wait for the device before and after where there is one."""

    def __init__(
        self,
        synchronize: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = perf_counter,
        inside: Callable[[], AbstractContextManager[object]] = nullcontext,
    ) -> None:
        self._synchronize = synchronize
        self._clock = clock
        self._inside = inside

    def now(self) -> float:
        """Return the host's clock [second]."""
        return self._clock()

    def sample(self, work: Work, repeats: int) -> Sample:
        """Return the time of one operation, and how long it took to queue where that is something else."""
        with self._inside():
            self._synchronize()
            begun = self._clock()
            for _ in range(repeats):
                work()
            queued = self._clock()
            self._synchronize()
            ended = self._clock()
        return Sample((ended - begun) / repeats, (queued - begun) / repeats)
