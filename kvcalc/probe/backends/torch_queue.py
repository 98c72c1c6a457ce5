"""Queues of torch: CUDA and ROCm, Intel XPU and Apple MPS offer the same calls under different names."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from time import perf_counter
from typing import Any

Torch = Any
"""The torch module, or what stands for it in a test."""

CALIBRATION_CYCLES = 2_000_000
"""Length of the first hold, by which its unit is found [cycle]: about a millisecond."""


class StreamQueue:
    """A stream with timed events, as torch.cuda and torch.xpu have them."""

    def __init__(self, module: Any, index: int, dummy: Callable[[], None]) -> None:  # noqa: ANN401
        self._module = module
        self._stream = module.Stream(device=index)
        self._dummy = dummy
        self._entered: list[AbstractContextManager[object]] = []
        self._unit = 0.0  # seconds of one cycle of a hold, or of one dummy operation

    def __enter__(self) -> "StreamQueue":
        context = self._module.stream(self._stream)
        context.__enter__()
        self._entered.append(context)
        return self

    def __exit__(self, *error: object) -> None:
        self._entered.pop().__exit__(*error)  # type: ignore[arg-type]

    def now(self) -> float:
        """Return the host's clock [second]."""
        return perf_counter()

    def record(self) -> Any:  # noqa: ANN401 - an event of torch
        """Put an event into the stream."""
        event = self._module.Event(enable_timing=True)
        event.record(self._stream)
        return event

    def done(self, event: Any) -> bool:  # noqa: ANN401
        """Tell whether the device has passed an event."""
        return bool(event.query())

    def between(self, first: Any, second: Any) -> float:  # noqa: ANN401
        """Return the time between two events [second]; torch tells milliseconds."""
        return float(first.elapsed_time(second)) / 1e3

    def stall(self, seconds: float) -> bool:
        """Hold the stream: by torch's private _sleep where it is, else by work that nothing needs."""
        sleep = getattr(self._module, "_sleep", None)
        with self:
            if not self._unit:
                self._unit = self._calibrated(sleep)
            if sleep is not None:
                sleep(max(1, int(seconds / self._unit)))
            else:
                for _ in range(max(1, int(seconds / self._unit))):
                    self._dummy()
        return True

    def _calibrated(self, sleep: Callable[[int], None] | None) -> float:
        for _ in range(2):  # the first may load the kernel
            first = self.record()
            if sleep is not None:
                sleep(CALIBRATION_CYCLES)
            else:
                self._dummy()
            second = self.record()
            self.synchronize()
        return max(1e-12, self.between(first, second) / (CALIBRATION_CYCLES if sleep is not None else 1))

    def wait_for(self, event: Any) -> None:  # noqa: ANN401
        """Hold the stream until an event of another one."""
        self._stream.wait_event(event)

    def synchronize(self) -> None:
        """Wait until everything in the stream is done."""
        self._stream.synchronize()

    @property
    def handle(self) -> int:
        """The runtime's own handle of the stream."""
        return int(getattr(self._stream, "cuda_stream", 0))


class HostQueue:
    """The queue of a device that does its work before it returns, as torch's CPU does."""

    def __enter__(self) -> "HostQueue":
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def now(self) -> float:
        """Return the host's clock [second]."""
        return perf_counter()

    def record(self) -> float:
        """Return this moment."""
        return perf_counter()

    def done(self, event: object) -> bool:
        """Return False: nothing ever waits in this queue, so no sample can be launch-bound."""
        return False

    def between(self, first: Any, second: Any) -> float:  # noqa: ANN401
        """Return the time between two moments [second]."""
        return float(second - first)

    def stall(self, seconds: float) -> bool:
        """Return False: there is nothing to hold."""
        return False

    def wait_for(self, event: object) -> None:
        """Do nothing: all is done."""

    def synchronize(self) -> None:
        """Do nothing: all is done."""


class MpsQueue(HostQueue):
    """Apple's one queue, with events of its own."""

    def __init__(self, module: Any) -> None:  # noqa: ANN401
        self._module = module

    def record(self) -> Any:  # noqa: ANN401
        """Put an event into the queue."""
        event = self._module.event.Event(enable_timing=True)
        event.record()
        return event

    def done(self, event: Any) -> bool:  # noqa: ANN401
        """Tell whether the device has passed an event."""
        return bool(event.query())

    def between(self, first: Any, second: Any) -> float:  # noqa: ANN401
        """Return the time between two events [second]."""
        return float(first.elapsed_time(second)) / 1e3

    def synchronize(self) -> None:
        """Wait until everything is done."""
        self._module.synchronize()
