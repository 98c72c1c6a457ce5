"""A device that exists only as a formula and a clock: what a measurement finds can be held against it.

A copy takes ``t0 + s / bandwidth``, as noisy and as badly behaved as asked; a virtual clock advances, so that
a minute of measuring takes a moment.  Content is a mark that travels with each copy, so that verification
verifies.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

import numpy as np

from kvcalc.probe.backends.protocol import UnavailableError
from kvcalc.probe.results import DeviceFacts, Link
from kvcalc.probe.timing import Work

MEMORY = 80e9  # of the simulated device [byte]
_QUERY = 2e-7  # that a look at the clock or an event costs the host [second]


@dataclass(frozen=True)
class Behaviour:
    """How the simulated link behaves; times in seconds, rates in bytes per second."""

    t0: float = 3e-6
    bandwidth: float = 50e9
    noise: float = 0.01  # relative standard deviation of one sample's time
    launch: float = 2e-6  # that the CPU takes to queue one operation
    seed: int = 0
    bound: float | None = None  # what the link carries physically; None tells nothing
    knee: float | None = None  # from this size on, copies take the second path
    second_t0: float = 30e-6
    second_bandwidth: float = 25e9
    cap: float | None = None  # no copy is faster than this, however large
    drift: float = 0.0  # relative slowdown over `drift_seconds` of device time
    drift_seconds: float = 1.0
    slow_share: float = 0.0  # share of samples in a second mode
    slow_factor: float = 1.3
    duplex: float = 0.8  # rate of each direction while the other one is busy
    pageable: float = 0.25  # rate of memory that is not pinned
    stalls: bool = True  # whether the queue can be held
    corrupt: bool = False  # whether a copy loses its content
    memory_bandwidth: float = 3e12
    pin_rate: float = 5e9


@dataclass
class SimulatedBuffer:
    """A size, a place, and a mark in place of content."""

    size: int
    place: str  # device, pinned or pageable
    mark: list[int] = field(default_factory=lambda: [0])
    offset: int = 0


@dataclass(frozen=True)
class SimulatedEvent:
    """A moment of the device."""

    at: float


class SimulatedQueue:
    """A queue in virtual time."""

    def __init__(self, device: "SimulatedDevice") -> None:
        self.device = device
        self.free = 0.0  # when the device is done with all that is in it

    def __enter__(self) -> "SimulatedQueue":
        self.device.current.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        self.device.current.pop()

    def now(self) -> float:
        """Return the host's virtual clock."""
        self.device.clock += _QUERY
        return self.device.clock

    def record(self) -> SimulatedEvent:
        """Put an event into the queue."""
        self.device.new_mode()
        self.free = max(self.free, self.device.clock)
        return SimulatedEvent(self.free)

    def done(self, event: object) -> bool:
        """Tell whether the virtual clock has passed the event."""
        assert isinstance(event, SimulatedEvent)
        return event.at <= self.now()

    def between(self, first: object, second: object) -> float:
        """Return the time between two events."""
        assert isinstance(first, SimulatedEvent)
        assert isinstance(second, SimulatedEvent)
        return second.at - first.at

    def stall(self, seconds: float) -> bool:
        """Hold the queue."""
        if self.device.behaviour.stalls:
            self.free = max(self.free, self.device.clock) + seconds
        return self.device.behaviour.stalls

    def wait_for(self, event: object) -> None:
        """Hold the queue until an event of another one."""
        assert isinstance(event, SimulatedEvent)
        self.free = max(self.free, event.at)

    def synchronize(self) -> None:
        """Let the host wait for the queue."""
        self.device.clock = max(self.device.clock, self.free) + _QUERY

    def run(self, seconds: float) -> None:
        """Queue an operation that keeps the device busy for so long."""
        self.device.clock += self.device.behaviour.launch
        self.free = max(self.free, self.device.clock) + seconds


class SimulatedDevice:
    """An `Accelerator` whose link behaves as told."""

    kind = "simulated"
    unverified = False

    def __init__(self, behaviour: Behaviour | None = None, index: int = 0) -> None:
        self.behaviour = behaviour or Behaviour()
        self.index = index
        self.clock = 0.0
        self.queues: list[SimulatedQueue] = []
        self.current: list[SimulatedQueue] = []
        self._default = SimulatedQueue(self)
        self._random = np.random.default_rng(self.behaviour.seed)
        self._factor = 1.0

    def new_mode(self) -> None:
        """Draw how this sample scatters; all of its copies do so alike."""
        mode = self.behaviour.slow_factor if self._random.random() < self.behaviour.slow_share else 1.0
        self._factor = mode * max(0.05, 1 + self.behaviour.noise * self._random.standard_normal())

    def copy_seconds(self, size: float, pinned: bool = True) -> float:
        """Return how long one copy takes now, without noise."""
        told = self.behaviour
        if told.knee is not None and size >= told.knee:
            seconds = told.second_t0 + size / told.second_bandwidth
        else:
            seconds = told.t0 + size / told.bandwidth
        if told.cap is not None:
            seconds = max(seconds, size / told.cap)
        if told.drift:
            seconds *= 1 + told.drift * min(1.0, self.clock / told.drift_seconds)
        return seconds if pinned else told.t0 * 3 + size / (told.bandwidth * told.pageable)

    def _queue(self) -> SimulatedQueue:
        return self.current[-1] if self.current else self._default

    def _run(self, seconds: float) -> None:
        self._queue().run(seconds * self._factor)

    def facts(self) -> DeviceFacts:
        """Return a plain device without anything wrong."""
        link = Link("simulated", None, None, None, None, None, self.behaviour.bound, (), 0)  # no hops
        return DeviceFacts(
            index=self.index,
            backend=self.kind,
            name="simulated device",
            memory=MEMORY,
            memory_runtime=MEMORY,
            memory_free=MEMORY,
            memory_bound=None,
            cache=5e7,
            compute_capability=None,
            ecc=None,
            mig=None,
            mps=None,
            integrated=None,
            virtualization=None,
            confidential=None,
            addressing=None,
            numa_node=None,
            other_processes=None,
            throttle_reasons=(),
            link=link,
            flags=(),
        )

    def watched(self) -> AbstractContextManager[None]:
        """Look at nothing."""
        return nullcontext()

    def queue(self) -> SimulatedQueue:
        """Return a new queue."""
        self.queues.append(SimulatedQueue(self))
        return self.queues[-1]

    def synchronize(self) -> None:
        """Let the host wait for all queues."""
        self.clock = max([self.clock, self._default.free, *(queue.free for queue in self.queues)])

    def host(self, size: int, pinned: bool) -> SimulatedBuffer:
        """Return host memory."""
        return SimulatedBuffer(size, "pinned" if pinned else "pageable")

    def memory(self, size: int) -> SimulatedBuffer:
        """Return device memory."""
        if size > MEMORY:
            raise UnavailableError("out of memory")
        return SimulatedBuffer(size, "device")

    def part(self, buffer: SimulatedBuffer, offset: int, size: int) -> SimulatedBuffer:
        """Return a piece of a buffer."""
        return SimulatedBuffer(size, buffer.place, buffer.mark, buffer.offset + offset)

    def copy(self, target: SimulatedBuffer, source: SimulatedBuffer) -> None:
        """Queue one copy."""
        if target.place == source.place == "device":
            seconds = 2 * source.size / self.behaviour.memory_bandwidth
        else:
            seconds = self.copy_seconds(source.size, "pageable" not in (target.place, source.place))
            seconds /= self._both_ways()
        self._run(seconds)
        target.mark[0] = source.mark[0] + (1 if self.behaviour.corrupt else 0)

    def _both_ways(self) -> float:
        own = self._queue()
        busy = any(other is not own and other.free > max(own.free, self.clock) for other in self.queues)
        return self.behaviour.duplex if busy else 1.0

    def copies(self, pairs: Sequence[tuple[SimulatedBuffer, SimulatedBuffer]], mechanism: str) -> Work:
        """Return work that copies each pair; a batch costs one launch and half of each fixed time."""
        if mechanism == "kernel":
            raise UnavailableError("the simulated device has no kernels")

        def work() -> None:
            for target, source in pairs:
                self.copy(target, source)

        return work

    def gather(
        self, pool: SimulatedBuffer, chunk: int, order: Sequence[int], target: SimulatedBuffer
    ) -> Work:
        """Return work that collects chunks."""
        return self._moved(2.0 * chunk * len(order), target, pool)

    def scatter(
        self, source: SimulatedBuffer, chunk: int, order: Sequence[int], pool: SimulatedBuffer
    ) -> Work:
        """Return work that spreads chunks."""
        return self._moved(2.0 * chunk * len(order), pool, source)

    def _moved(self, traffic: float, target: SimulatedBuffer, source: SimulatedBuffer) -> Work:
        def work() -> None:
            self._run(traffic / self.behaviour.memory_bandwidth)
            target.mark[0] = source.mark[0]

        return work

    def _passes(self, traffic: float) -> Callable[[], None]:
        return lambda: self._run(traffic / self.behaviour.memory_bandwidth)

    def read(self, buffer: SimulatedBuffer) -> Work:
        """Return work that reads a buffer."""
        return self._passes(buffer.size)

    def write(self, buffer: SimulatedBuffer) -> Work:
        """Return work that writes a buffer."""
        return self._passes(buffer.size)

    def convert(self, conversion: str, elements: int) -> tuple[Work, float]:
        """Return work that converts numbers from one byte to two, or back."""
        return self._passes(3.0 * elements), 3.0 * elements

    def multiply(self, side: int) -> Work:
        """Return work of 2 n^3 operations at 500 TFLOP/s."""
        return lambda: self._run(2.0 * side**3 / 5e14)

    def nothing(self) -> Work:
        """Return an empty kernel."""
        return lambda: self._run(1e-6)

    def pin(self, size: int, how: str) -> tuple[float, float]:
        """Return what pinning and giving back take."""
        return size / self.behaviour.pin_rate, size / self.behaviour.pin_rate / 3

    def fill(self, buffer: SimulatedBuffer, seed: int) -> None:
        """Write a mark."""
        buffer.mark[0] = seed

    def same(self, first: SimulatedBuffer, second: SimulatedBuffer) -> bool:
        """Compare the marks."""
        return first.mark == second.mark

    def release(self) -> None:
        """Do nothing."""
