"""A device that torch drives: CUDA, ROCm, Intel XPU, Apple MPS; in tests the CPU stands in."""

import ctypes
import mmap
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from kvcalc.probe.backends import torch_facts
from kvcalc.probe.backends.cuda_runtime import CudaRuntime
from kvcalc.probe.backends.nvml import Look, Nvml, watched
from kvcalc.probe.backends.protocol import UnavailableError
from kvcalc.probe.backends.torch_queue import HostQueue, MpsQueue, StreamQueue, Torch
from kvcalc.probe.options import VERIFIED
from kvcalc.probe.results import DeviceFacts
from kvcalc.probe.timing import Queue, Work

PIECE = 64 * 2**20
"""Bytes that are filled or compared at once [byte], so that neither needs a second large buffer."""
ODD = (
    -7046029254386353131
)  # 2**64 over the golden ratio, as a signed number: a counter times it never repeats
FP8_FROM = 8.9
"""Compute capability from which a GPU converts fp8 in hardware [1]."""
PAGE = mmap.PAGESIZE


class TorchDevice:
    """An `Accelerator` by torch."""

    def __init__(self, torch: Torch, kind: str, index: int = 0) -> None:
        self.torch = torch
        self.kind = kind
        self.index = index
        self.unverified = kind not in VERIFIED
        name = {"rocm": "cuda"}.get(kind, kind)
        self._module = getattr(torch, name, None)
        self.device = torch.device(name, index) if kind != "cpu" else torch.device("cpu")
        self.address = torch_facts.address_of(self._module, index) if kind in ("cuda", "rocm") else None
        self.nvml = Nvml.open(self.address, index) if kind == "cuda" else None
        self.replays_before = self.nvml.replays() if self.nvml is not None else None
        self.seen: list[Look] = []

    # facts

    def facts(self) -> DeviceFacts:
        """Return what driver and runtime say of it now."""
        return torch_facts.facts_of(self)

    @property
    def module(self) -> Any:  # noqa: ANN401 - torch.cuda, torch.xpu or torch.mps
        """The part of torch that drives this kind of device."""
        return self._module

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Look at the link while the body copies over it."""
        with watched(lambda: torch_facts.look_of(self), self.seen):
            yield

    # queues

    def queue(self) -> Queue:
        """Return a queue of its own."""
        if self.kind == "cpu":
            return HostQueue()
        if self.kind == "mps":
            return MpsQueue(self._module)
        one = self.torch.ones((2048, 2048), device=self.device)
        return StreamQueue(self._module, self.index, lambda: self.torch.mm(one, one))

    def synchronize(self) -> None:
        """Wait for all queues."""
        if self.kind == "mps":
            self.module.synchronize()
        elif self._module is not None and self.kind != "cpu":
            self.module.synchronize(self.index)

    # memory

    def host(self, size: int, pinned: bool) -> Any:  # noqa: ANN401
        """Return host memory, every page of it written."""
        pins = pinned and self.kind in ("cuda", "rocm", "xpu")
        buffer = self._allocated(size, pin_memory=pins) if pins else self._allocated(size)
        if pins and not buffer.is_pinned():
            raise UnavailableError("torch did not pin the memory that it was asked to pin")
        buffer.fill_(1)
        return buffer

    def memory(self, size: int) -> Any:  # noqa: ANN401
        """Return device memory."""
        buffer = self._allocated(size, device=self.device)
        buffer.fill_(1)
        return buffer

    def _allocated(self, size: int, **where: Any) -> Any:  # noqa: ANN401
        try:
            return self.torch.empty(size, dtype=self.torch.uint8, **where)
        except RuntimeError as error:  # out of memory, or a limit on pinning
            self.release()
            raise UnavailableError(_first_line(error)) from None

    def part(self, buffer: Any, offset: int, size: int) -> Any:  # noqa: ANN401
        """Return a piece of a buffer, without a copy."""
        return buffer[offset : offset + size]

    def release(self) -> None:
        """Give memory back that no buffer uses."""
        empty = getattr(self._module, "empty_cache", None)
        if empty is not None and self.kind != "cpu":
            empty()
        # torch hands pinned blocks out again wherever they lie; a fresh one lies where it is asked for.
        forget = getattr(getattr(self.torch, "_C", None), "_host_emptyCache", None)
        if forget is not None and self.kind == "cuda":
            forget()

    # copies

    def copy(self, target: Any, source: Any) -> None:  # noqa: ANN401
        """Put one copy into the current queue."""
        target.copy_(source, non_blocking=True)

    def copies(self, pairs: Sequence[tuple[Any, Any]], mechanism: str) -> Work:
        """Return work that copies all pairs by one mechanism.

        Raises
        ------
        UnavailableError
            If this device or runtime has no such mechanism.
        """
        if mechanism == "percall_python":

            def work() -> None:
                for target, source in pairs:
                    target.copy_(source, non_blocking=True)

            return work
        if self.kind != "cuda":
            raise UnavailableError(f"{mechanism} is known for CUDA only")
        runtime = CudaRuntime.loaded()
        addresses = [(target.data_ptr(), source.data_ptr(), target.numel()) for target, source in pairs]
        if mechanism == "percall_c":
            return runtime.each(addresses, self._stream)
        if mechanism == "batch":
            return runtime.batch(addresses, self._stream)
        raise UnavailableError(f"no mechanism {mechanism}")

    def _stream(self) -> int:
        return int(self.module.current_stream(self.index).cuda_stream)

    def _rows(self, buffer: Any, chunk: int) -> Any:  # noqa: ANN401
        return buffer.view(self.torch.int64).view(-1, chunk // 8)

    def gather(self, pool: Any, chunk: int, order: Sequence[int], target: Any) -> Work:  # noqa: ANN401
        """Return work that collects chunks of device memory into one piece."""
        torch = self.torch
        index = torch.tensor(list(order), dtype=torch.int64, device=self.device)
        rows, into = self._rows(pool, chunk), self._rows(target, chunk)

        def work() -> None:
            torch.index_select(rows, 0, index, out=into)

        return work

    def scatter(self, source: Any, chunk: int, order: Sequence[int], pool: Any) -> Work:  # noqa: ANN401
        """Return work that spreads one piece over chunks of device memory."""
        torch = self.torch
        index = torch.tensor(list(order), dtype=torch.int64, device=self.device)
        rows, into = self._rows(source, chunk), self._rows(pool, chunk)

        def work() -> None:
            into.index_copy_(0, index, rows)

        return work

    # kernels

    def read(self, buffer: Any) -> Work:  # noqa: ANN401
        """Return work that reads all of a buffer: a sum in fp32, which writes one number."""
        torch = self.torch
        view, out = buffer.view(torch.float32), torch.empty((), dtype=torch.float32, device=self.device)

        def work() -> None:
            torch.sum(view, dim=0, out=out)

        return work

    def write(self, buffer: Any) -> Work:  # noqa: ANN401
        """Return work that writes all of a buffer."""
        view = buffer.view(self.torch.int64)

        def work() -> None:
            view.fill_(ODD)

        return work

    def convert(self, conversion: str, elements: int) -> tuple[Work, float]:
        """Return work that converts so many numbers, and the bytes that it reads and writes."""
        torch = self.torch
        if "fp8" in conversion:
            self._check_fp8()
        wide = torch.randn(elements, dtype=torch.bfloat16, device=self.device)
        if conversion == "fp8_to_bf16":
            narrow = wide.to(torch.float8_e4m3fn)
            return (lambda: wide.copy_(narrow)), 3.0 * elements
        if conversion == "bf16_to_fp8":
            target = torch.empty(elements, dtype=torch.float8_e4m3fn, device=self.device)
            return (lambda: target.copy_(wide)), 3.0 * elements
        if conversion == "int8_scaled_to_bf16":
            whole = torch.ones(elements, dtype=torch.int8, device=self.device)
            scale = torch.full((), 0.5, dtype=torch.bfloat16, device=self.device)
            return (lambda: torch.mul(whole, scale, out=wide)), 3.0 * elements
        raise UnavailableError(f"no conversion {conversion}")

    def _check_fp8(self) -> None:
        if not hasattr(self.torch, "float8_e4m3fn"):
            raise UnavailableError("this torch has no fp8 format")
        capability = torch_facts.capability_of(self)
        if capability is not None and self.kind == "cuda" and capability < FP8_FROM:
            raise UnavailableError(f"compute capability {capability} emulates fp8")

    def multiply(self, side: int) -> Work:
        """Return work that multiplies two square matrices in bf16."""
        torch = self.torch
        first = torch.randn((side, side), dtype=torch.bfloat16, device=self.device)
        out = torch.empty_like(first)

        def work() -> None:
            torch.matmul(first, first, out=out)

        return work

    def nothing(self) -> Work:
        """Return work that launches the smallest kernel."""
        one = self.torch.zeros(1, device=self.device)

        def work() -> None:
            one.add_(1)

        return work

    def pin(self, size: int, how: str) -> tuple[float, float]:
        """Pin so many bytes and give them back: `alloc` by the runtime, or `register` of touched memory."""
        if self.kind != "cuda":
            raise UnavailableError(f"pinning is timed on CUDA only, not on {self.kind}")
        runtime = CudaRuntime.loaded()
        if how == "alloc":
            return runtime.pin(size)
        with mmap.mmap(-1, size) as area:
            for offset in range(0, size, PAGE):
                area[offset] = 1
            first = ctypes.c_char.from_buffer(area)
            try:
                return runtime.register(ctypes.addressof(first), size)
            finally:
                del first

    # content

    def fill(self, buffer: Any, seed: int) -> None:  # noqa: ANN401
        """Write a counter times an odd number, which has no repeats, and wait."""
        torch, words = self.torch, buffer.view(self.torch.int64)
        for start in range(0, len(words), PIECE // 8):
            stop = min(len(words), start + PIECE // 8)
            counter = torch.arange(start, stop, dtype=torch.int64, device=buffer.device)
            words[start:stop].copy_(counter.mul_(ODD).add_(seed))
        self.synchronize()

    def same(self, first: Any, second: Any) -> bool:  # noqa: ANN401
        """Compare two buffers piece by piece, on the device."""
        self.synchronize()
        for start in range(0, first.numel(), PIECE):
            one, other = (part[start : start + PIECE].to(self.device) for part in (first, second))
            if not self.torch.equal(one, other):
                return False
        return True

    @property
    def own_process(self) -> int:
        """Number of this process, to tell others from it."""
        return os.getpid()


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0][:200] if str(error).strip() else type(error).__name__
