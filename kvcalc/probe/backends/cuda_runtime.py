"""Calls of the CUDA runtime that torch does not offer, on the library that torch has loaded.

Descriptors are prepared before anything is timed; what remains of Python is one call of ctypes for each copy,
about a microsecond, which C++ engines do not pay.
"""

import ctypes
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter

from kvcalc.probe.backends.protocol import UnavailableError
from kvcalc.probe.timing import Work

DEFAULT_KIND = 4  # cudaMemcpyDefault: the direction follows from the addresses
BATCHES_FROM, NO_FAIL_INDEX_FROM = 12_080, 13_000  # runtime versions as cudaRuntimeGetVersion tells them
_STREAM_ORDER = 1  # cudaMemcpySrcAccessOrderStream


class CudaRuntime:
    """The loaded libcudart."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library
        version = ctypes.c_int()
        library.cudaRuntimeGetVersion(ctypes.byref(version))
        self.version = version.value

    @classmethod
    def loaded(cls, maps: Path = Path("/proc/self/maps")) -> "CudaRuntime":
        """Return the library that this process has loaded.

        Raises
        ------
        UnavailableError
            If none is loaded, as with torch built for ROCm or the CPU.
        """
        try:
            lines = maps.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            lines = []
        files = sorted({line.split()[-1] for line in lines if "libcudart.so" in line})
        if not files:
            raise UnavailableError("libcudart is not loaded in this process")
        return cls(ctypes.CDLL(files[0]))

    def _check(self, code: int, name: str) -> None:
        if code:
            self._library.cudaGetLastError()  # clears an error that would show in the next call
            raise UnavailableError(f"{name} failed with CUDA error {code}")

    def each(self, pairs: Sequence[tuple[int, int, int]], stream: Callable[[], int]) -> Work:
        """Return work that calls cudaMemcpyAsync for each (target, source, bytes)."""
        call = self._library.cudaMemcpyAsync
        call.restype = ctypes.c_int
        void, size = ctypes.c_void_p, ctypes.c_size_t
        prepared = [(void(target), void(source), size(count)) for target, source, count in pairs]
        kind = ctypes.c_int(DEFAULT_KIND)

        def work() -> None:
            where = void(stream())
            code = 0
            for target, source, count in prepared:
                code |= call(target, source, count, kind, where)
            self._check(code, "cudaMemcpyAsync")

        return work

    def batch(self, pairs: Sequence[tuple[int, int, int]], stream: Callable[[], int]) -> Work:
        """Return work that calls cudaMemcpyBatchAsync once for all pairs.

        Raises
        ------
        UnavailableError
            If the runtime is older than 12.8.
        """
        if self.version < BATCHES_FROM:
            raise UnavailableError("cudaMemcpyBatchAsync needs CUDA 12.8 or newer")
        call, count = self._library.cudaMemcpyBatchAsync, len(pairs)
        call.restype = ctypes.c_int
        targets = (ctypes.c_void_p * count)(*(pair[0] for pair in pairs))
        sources = (ctypes.c_void_p * count)(*(pair[1] for pair in pairs))
        sizes = (ctypes.c_size_t * count)(*(pair[2] for pair in pairs))
        attributes, first = _Attributes(srcAccessOrder=_STREAM_ORDER), (ctypes.c_size_t * 1)(0)
        failed = ctypes.c_size_t()

        def work() -> None:
            arguments = [targets, sources, sizes, ctypes.c_size_t(count), ctypes.byref(attributes), first]
            arguments.append(ctypes.c_size_t(1))
            if self.version < NO_FAIL_INDEX_FROM:
                arguments.append(ctypes.byref(failed))
            self._check(call(*arguments, ctypes.c_void_p(stream())), "cudaMemcpyBatchAsync")

        return work

    def pin(self, size: int) -> tuple[float, float]:
        """Allocate pinned memory without rounding, and free it; return the seconds of both."""
        pointer = ctypes.c_void_p()
        begun = perf_counter()
        code = self._library.cudaHostAlloc(ctypes.byref(pointer), ctypes.c_size_t(size), ctypes.c_uint(0))
        self._check(code, "cudaHostAlloc")
        pinned = perf_counter()
        self._check(self._library.cudaFreeHost(pointer), "cudaFreeHost")
        return pinned - begun, perf_counter() - pinned

    def register(self, address: int, size: int) -> tuple[float, float]:
        """Pin memory that is there and touched, and unpin it; return the seconds of both."""
        place, begun = ctypes.c_void_p(address), perf_counter()
        code = self._library.cudaHostRegister(place, ctypes.c_size_t(size), ctypes.c_uint(0))
        self._check(code, "cudaHostRegister")
        pinned = perf_counter()
        self._check(self._library.cudaHostUnregister(place), "cudaHostUnregister")
        return pinned - begun, perf_counter() - pinned


class _Location(ctypes.Structure):
    _fields_ = (("type", ctypes.c_int), ("id", ctypes.c_int))


class _Attributes(ctypes.Structure):
    """CUDA's cudaMemcpyAttributes."""

    _fields_ = (
        ("srcAccessOrder", ctypes.c_int),
        ("srcLocHint", _Location),
        ("dstLocHint", _Location),
        ("flags", ctypes.c_uint),
    )
