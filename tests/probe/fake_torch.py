"""What `kvcalc.probe` calls of torch, on numpy: a device whose copies are done when the queue is waited for.

It stands in where torch is not installed, as in CI, and for the calls of torch.cuda that torch has not on
a CPU.  Content is real, so that verification verifies; addresses are real, so that a copy by address is one.
"""

from contextlib import contextmanager
from time import perf_counter, sleep
from types import SimpleNamespace

import numpy as np

uint8, int8, int64, float32 = np.uint8, np.int8, np.int64, np.float32
bfloat16, float8_e4m3fn = np.float16, np.dtype("V1")
__version__ = "2.9.0+fake"
version = SimpleNamespace(cuda="12.8", hip=None)
backends = SimpleNamespace(mps=SimpleNamespace(is_available=lambda: False))
PIN_FAILS = []  # a test puts an error here


class Tensor:
    """An array with a place."""

    def __init__(self, array, place="cpu", pinned=False):
        self.array, self.device, self.pinned = array, place, pinned

    def _like(self, array):
        return Tensor(array, self.device, self.pinned)

    def __len__(self):
        return len(self.array)

    def __getitem__(self, key):
        return self._like(self.array[key])

    def numel(self):
        return self.array.size

    def data_ptr(self):
        return self.array.ctypes.data

    def is_pinned(self):
        return self.pinned

    def view(self, *shape):
        if len(shape) == 1 and not isinstance(shape[0], int):
            return self._like(self.array.view(shape[0]))
        return self._like(self.array.reshape(shape))

    def fill_(self, value):
        self.array[...] = value
        return self

    def copy_(self, source, non_blocking=False):
        if self.array.dtype.kind == "V" or source.array.dtype.kind == "V":
            self.array.view(uint8)[...] = 0
        else:
            self.array[...] = source.array
        return self

    def add_(self, value):
        self.array += np.asarray(value).astype(self.array.dtype)
        return self

    def mul_(self, value):
        self.array *= value
        return self

    def to(self, target):
        if isinstance(target, (str, Device)):
            return Tensor(self.array.copy(), str(target))
        if target is float8_e4m3fn:
            return self._like(np.zeros(self.array.shape, dtype=uint8).view(float8_e4m3fn))
        return self._like(self.array.astype(target))

    def index_copy_(self, axis, index, source):
        assert axis == 0
        self.array[index.array] = source.array


class Device(str):
    """A place."""


def device(kind, index=0):
    return Device(kind if kind == "cpu" else f"{kind}:{index}")


def empty(size, dtype=float32, device="cpu", pin_memory=False):
    if pin_memory and PIN_FAILS:
        raise PIN_FAILS[0]
    return Tensor(np.empty(size, dtype=dtype), device, pin_memory)


def zeros(size, dtype=float32, device="cpu"):
    return Tensor(np.zeros(size, dtype=dtype), device)


def ones(size, dtype=float32, device="cpu"):
    return Tensor(np.ones(size, dtype=dtype), device)


def full(size, value, dtype=float32, device="cpu"):
    return Tensor(np.full(size, value, dtype=dtype), device)


def randn(size, dtype=float32, device="cpu"):
    return Tensor(np.random.default_rng(0).random(size, dtype=float32).astype(dtype), device)


def arange(start, stop, dtype=int64, device="cpu"):
    return Tensor(np.arange(start, stop, dtype=dtype), device)


def tensor(values, dtype=int64, device="cpu"):
    return Tensor(np.array(values, dtype=dtype), device)


def empty_like(other):
    return other._like(np.empty_like(other.array))


def equal(first, second):
    return bool(np.array_equal(first.array, second.array))


def index_select(source, axis, index, out):
    assert axis == 0
    out.array[...] = source.array[index.array]


def sum(source, dim, out):
    out.array[...] = source.array.view(np.int32).sum(axis=dim)


def mul(first, second, out):
    out.array[...] = first.array * second.array


def matmul(first, second, out):
    out.array[...] = first.array @ second.array


def mm(first, second):
    return first._like(first.array @ second.array)


class Event:
    """A moment that the device has not passed before somebody waits for it."""

    def __init__(self, enable_timing=False):
        assert enable_timing
        self.at, self.passed = None, False

    def record(self, stream):
        self.at = perf_counter()
        stream.events.append(self)

    def query(self):
        return self.passed

    def elapsed_time(self, other):
        assert self.passed, "not waited for"
        assert other.passed, "not waited for"
        return (other.at - self.at) * 1e3


class Stream:
    """A queue."""

    def __init__(self, device=0):
        self.events, self.device, self.cuda_stream = [], device, 7

    def synchronize(self):
        for event in self.events:
            event.passed = True
        self.events = []

    def wait_event(self, event):
        assert event.at is not None, "never recorded"


class Cuda:
    """torch.cuda with so many devices."""

    Event, Stream = Event, Stream

    def __init__(self, count=1, name="NVIDIA H200", capability=(9, 0), integrated=0):
        self.count, self.name, self.capability, self.integrated = count, name, capability, integrated
        self.current = []

    def is_available(self):
        return self.count > 0

    def device_count(self):
        return self.count

    def init(self):
        raise RuntimeError("Found no NVIDIA driver on your system.")

    def get_device_properties(self, index):
        return SimpleNamespace(
            name=self.name,
            total_memory=150_110_994_432,
            L2_cache_size=60 * 2**20,
            is_integrated=self.integrated,
            pci_bus_id=0x1B,
            pci_device_id=0,
            pci_domain_id=0,
        )

    def get_device_capability(self, index):
        return self.capability

    def mem_get_info(self, index):
        return 2**28, 150_110_994_432  # little is free, so that buffers stay small

    def empty_cache(self):
        pass

    def synchronize(self, index):
        assert index < self.count

    def current_stream(self, index):
        return self.current[-1] if self.current else Stream()

    @contextmanager
    def stream(self, stream):
        self.current.append(stream)
        try:
            yield
        finally:
            self.current.pop()

    def _sleep(self, cycles):
        sleep(min(1e-3, cycles / 2e9))


def machine(**behaviour):
    """Return this module as a torch with a torch.cuda of its own."""
    own = {name: value for name, value in globals().items() if not name.startswith("__")}
    return SimpleNamespace(**own, __version__=__version__, cuda=Cuda(**behaviour))
