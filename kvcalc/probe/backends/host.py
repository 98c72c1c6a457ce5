"""Host memory: copies by numpy, on one thread or several, each with pages of its own node."""

import ctypes
import mmap
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from kvcalc.probe.backends.protocol import UnavailableError
from kvcalc.probe.timing import Work

LEAST_BUFFER = 64 * 2**20
"""Smallest buffer of a copy [byte]: caches of a socket that are not told are smaller than a quarter of it."""
CACHE_MULTIPLE = 4
"""Buffer over last-level cache [1], as STREAM asks."""
MOST_OF_FREE = 0.25
"""Share of the available memory that buffers may take together [1]."""


PASSES = 4
"""Copies that each thread makes before they wait for one another [1]: a pool's waiting takes up to 0.3 ms, a
tenth of a copy where memory is fast."""
STAGGER = 61 * 64
"""Bytes by which the target begins later in its page than the source, as with STREAM's OFFSET [byte]: where
both begin at the same place of a page, loads wait for stores that they are mistaken for (17 for 25 GB/s)."""


def memory(size: int, huge: bool = False, offset: int = 0) -> NDArray[np.int64]:
    """Return fresh memory in the pages that this system gives to everybody, or in huge ones.

    numpy asks for huge pages where an array is large; engines, torch and C programs do not, and a copy
    between small pages is slower.

    Raises
    ------
    UnavailableError
        If the system knows no huge pages that can be asked for.
    """
    if not hasattr(mmap, "MAP_PRIVATE"):
        return np.empty(size // 8, dtype=np.int64)
    pages = mmap.mmap(-1, size + offset, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if huge:
        if not hasattr(mmap, "MADV_HUGEPAGE"):
            raise UnavailableError("this system knows no transparent huge pages")
        pages.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(pages, dtype=np.int64, offset=offset)


class HostCopies:
    """Two buffers and the threads that copy one to the other."""

    def __init__(self, size: int, threads: int, seed: int = 1, huge: bool = False) -> None:
        self.threads = threads
        self.size = size // (8 * threads) * 8 * threads
        self._pool = ThreadPoolExecutor(threads) if threads > 1 else None
        try:
            self.source, self.target = memory(self.size, huge), memory(self.size, huge, STAGGER)
        except (MemoryError, OSError):
            raise UnavailableError(f"no memory for two buffers of {size / 1e9:.3g} GB") from None
        # Each thread touches its own part first, which puts the pages on that thread's node.
        self._all(lambda at: self._fill(at, seed))

    def _slice(self, at: int) -> slice:
        part = len(self.source) // self.threads
        return slice(at * part, (at + 1) * part)

    def _fill(self, at: int, seed: int) -> None:
        part = self._slice(at)
        self.source[part] = np.arange(part.start, part.stop, dtype=np.int64)
        self.source[part] *= -7046029254386353131  # an odd number: a counter times it never repeats
        self.source[part] += seed
        self.target[part] = 0

    def _all(self, job: Callable[[int], None]) -> None:
        if self._pool is None:
            job(0)
        else:
            list(self._pool.map(job, range(self.threads)))

    def copy(self) -> Work:
        """Return work that copies all of one buffer to the other, `PASSES` times, by C's memmove."""
        target, source = self.target.ctypes.data, self.source.ctypes.data
        size = self.size // self.threads

        def one(at: int) -> None:
            for _ in range(PASSES):
                ctypes.memmove(target + at * size, source + at * size, size)

        return lambda: self._all(one)

    def clear(self) -> None:
        """Spoil the target."""
        self.target.fill(0)

    def same(self) -> bool:
        """Compare both buffers."""
        return bool(np.array_equal(self.source, self.target))

    def close(self) -> None:
        """Let the threads go."""
        if self._pool is not None:
            self._pool.shutdown()


def buffer_size(cache: float | None, available: float) -> int:
    """Return how large a copy's buffers must be to leave the caches behind [byte].

    Raises
    ------
    UnavailableError
        If the memory does not allow it.
    """
    wanted = max(LEAST_BUFFER, CACHE_MULTIPLE * int(cache or 0))
    wanted = 1 << (wanted - 1).bit_length()
    if 2 * wanted > MOST_OF_FREE * available:
        raise UnavailableError(
            f"two buffers of {wanted / 1e9:.3g} GB are more than a quarter of the free memory"
        )
    return wanted


def node_cpus(node: int) -> set[int]:
    """Return the CPUs of a NUMA node that this process may use."""
    try:
        with open(f"/sys/devices/system/node/node{node}/cpulist", encoding="ascii") as file:
            listed = cpu_list(file.read())
    except OSError:
        return set()
    return listed & os.sched_getaffinity(0)


def cpu_list(text: str) -> set[int]:
    """Read a list of CPUs as the kernel writes it.

    >>> sorted(cpu_list("0-2,8"))
    [0, 1, 2, 8]
    """
    found: set[int] = set()
    for part in text.strip().split(","):
        first, dash, last = part.partition("-")
        if first.isdigit():
            found |= set(range(int(first), int(last if dash else first) + 1))
    return found


def multiply(side: int, seed: int) -> Work:
    """Return work that multiplies two square matrices in fp32, by all threads of numpy's own library."""
    first: NDArray[np.float32] = np.random.default_rng(seed).random((side, side), dtype=np.float32)
    out = np.empty_like(first)

    def work() -> None:
        np.matmul(first, first, out=out)

    return work
