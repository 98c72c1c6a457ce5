"""What NVIDIA's management library says of a device; each question may be one that it does not answer.

Nothing is ever set: no clock, no persistence, no mode.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any

from kvcalc.records import record

POLL_SECONDS = 0.02
"""Time between two looks at a link that copies [second]."""

_THROTTLES = {
    0x4: "power cap",
    0x8: "hardware slowdown",
    0x20: "thermal, by software",
    0x40: "thermal, by hardware",
    0x80: "power brake",
    0x2: "clocks set by an application",
}
"""Bits of the clocks event reasons (nvmlClocksEventReason*) that hold a clock down."""


@record
class Look:
    """The link and the clocks at one moment."""

    generation: int | None
    width: int | None
    reasons: tuple[str, ...]


class Nvml:
    """One device of the library; every answer is None where it is not supported."""

    def __init__(self, library: Any, handle: Any) -> None:  # noqa: ANN401 - pynvml has no types
        self._library = library
        self._handle = handle

    @classmethod
    def open(cls, address: str | None, index: int) -> "Nvml | None":
        """Return the device at a PCI address or of a number; None without library or driver."""
        try:
            import pynvml

            pynvml.nvmlInit()
            if address is not None:
                return cls(pynvml, pynvml.nvmlDeviceGetHandleByPciBusId(address.encode()))
            return cls(pynvml, pynvml.nvmlDeviceGetHandleByIndex(index))
        except Exception:
            # Any failure means the same: the facts come from the runtime and the kernel alone.
            return None

    def ask(self, name: str, *arguments: Any) -> Any:  # noqa: ANN401 - whatever the call returns
        """Return the answer of one call on the device; None where it has none."""
        try:
            return getattr(self._library, name)(self._handle, *arguments)
        except Exception:
            # "Not supported" is a normal answer, and comes as one of several classes.
            return None

    def driver(self) -> str | None:
        """Return the version of the driver."""
        try:
            version = self._library.nvmlSystemGetDriverVersion()
        except Exception:
            return None
        return version.decode() if isinstance(version, bytes) else str(version)

    def look(self) -> Look:
        """Return the link and what holds the clocks down, now."""
        bits = self.ask("nvmlDeviceGetCurrentClocksEventReasons")
        if bits is None:
            bits = self.ask("nvmlDeviceGetCurrentClocksThrottleReasons")
        return Look(
            generation=_positive(self.ask("nvmlDeviceGetCurrPcieLinkGeneration")),
            width=_positive(self.ask("nvmlDeviceGetCurrPcieLinkWidth")),
            reasons=tuple(name for bit, name in _THROTTLES.items() if int(bits or 0) & bit),
        )

    def generation_max(self) -> int | None:
        """Return the newest generation that device and slot both can."""
        return _positive(self.ask("nvmlDeviceGetMaxPcieLinkGeneration"))

    def width_max(self) -> int | None:
        """Return the most lanes that device and slot both have."""
        return _positive(self.ask("nvmlDeviceGetMaxPcieLinkWidth"))

    def replays(self) -> int | None:
        """Return how many packets the link has repeated since it was started."""
        count = self.ask("nvmlDeviceGetPcieReplayCounter")
        return None if count is None else int(count)

    def memory(self) -> float | None:
        """Return all memory that the driver reports [byte]."""
        version = getattr(self._library, "nvmlMemory_v2", None)
        found = self.ask("nvmlDeviceGetMemoryInfo", version) if version is not None else None
        found = found or self.ask("nvmlDeviceGetMemoryInfo")
        return None if found is None else float(found.total)

    def memory_bound(self) -> float | None:
        """Return what the memory's bus carries by its width and highest clock [byte/second].

        The clock is that of a double data rate bus, as for the HBM and GDDR5 that this formula is known
        to hold for; later GDDR sends more bits in a clock, so that this is no bound there.
        """
        width = self.ask("nvmlDeviceGetMemoryBusWidth")
        clock = self.ask("nvmlDeviceGetMaxClockInfo", getattr(self._library, "NVML_CLOCK_MEM", 2))
        if not width or not clock or int(width) < HBM_WIDTH:
            return None
        return float(2.0 * clock * 1e6 * width / 8)

    def flag(self, name: str) -> bool | None:
        """Return a mode that is on or off; calls return the current one, or current and pending."""
        found = self.ask(name)
        if found is None:
            return None
        return bool(found[0] if isinstance(found, (list, tuple)) else found)

    def virtualization(self) -> str | None:
        """Return how the device is virtualized."""
        mode = self.ask("nvmlDeviceGetVirtualizationMode")
        names = {0: "none", 1: "passthrough", 2: "vgpu", 3: "host vgpu", 4: "host vsga"}
        return None if mode is None else names.get(int(mode), "unknown")

    def addressing(self) -> str | None:
        """Return how the device reaches host memory: none, HMM or ATS."""
        mode = self.ask("nvmlDeviceGetAddressingMode")
        value = getattr(mode, "value", mode)
        return None if value is None else {0: "none", 1: "HMM", 2: "ATS"}.get(int(value))

    def c2c(self) -> bool | None:
        """Tell whether the link to the host is NVLink-C2C."""
        mode = self.ask("nvmlDeviceGetC2cModeInfoV")
        return None if mode is None else bool(getattr(mode, "isC2cEnabled", 0))

    def other_processes(self, own: int) -> int | None:
        """Return how many other processes compute on the device."""
        found = self.ask("nvmlDeviceGetComputeRunningProcesses")
        return None if found is None else sum(1 for entry in found if getattr(entry, "pid", own) != own)

    def numa_node(self) -> int | None:
        """Return the NUMA node of the device's own memory or of its host side."""
        node = self.ask("nvmlDeviceGetNumaNodeId")
        return None if node is None or int(node) < 0 else int(node)


HBM_WIDTH = 1024
"""Least width of a bus of HBM [bit]."""


def _positive(value: Any) -> int | None:  # noqa: ANN401
    return int(value) if value is not None and int(value) > 0 else None


@contextmanager
def watched(look: Callable[[], Look], seen: list[Look]) -> Iterator[None]:
    """Look at the link again and again while the body runs; at rest many links slow down."""
    stop = Event()

    def poll() -> None:
        while not stop.wait(POLL_SECONDS):
            seen.append(look())

    thread = Thread(target=poll, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
