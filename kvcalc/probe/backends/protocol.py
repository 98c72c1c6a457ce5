"""What a measurement may ask of a device; each back end answers in its own way."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from kvcalc.probe.results import DeviceFacts
from kvcalc.probe.timing import Queue, Work

Buffer = Any
"""Bytes in some memory, as the back end holds them."""


class UnavailableError(Exception):
    """A back end cannot do this on this machine; the text says why, for the user."""


class PartlyError(Exception):
    """A part of a test could not be done on this machine; the rest of it was."""


class Accelerator(Protocol):
    """One device with memory of its own, and a link to the host's."""

    kind: str  # cuda, rocm, xpu, mps or simulated
    index: int
    unverified: bool  # not yet run on a real device of this kind

    def facts(self) -> DeviceFacts:
        """Return what driver and runtime say of it now."""

    def watched(self) -> AbstractContextManager[None]:
        """Look at the link while the body copies over it, for the facts that are read afterwards."""

    def queue(self) -> Queue:
        """Return a queue of its own, never the default one, which serialises."""

    def synchronize(self) -> None:
        """Wait for all queues."""

    def host(self, size: int, pinned: bool) -> Buffer:
        """Return host memory, every page of it written."""

    def memory(self, size: int) -> Buffer:
        """Return device memory."""

    def part(self, buffer: Buffer, offset: int, size: int) -> Buffer:
        """Return a piece of a buffer, without a copy."""

    def copy(self, target: Buffer, source: Buffer) -> None:
        """Put one copy into the current queue; returns before it is done where the memories allow it."""

    def copies(self, pairs: Sequence[tuple[Buffer, Buffer]], mechanism: str) -> Work:
        """Return work that copies all (target, source) pairs, prepared as far as the mechanism allows."""

    def gather(self, pool: Buffer, chunk: int, order: Sequence[int], target: Buffer) -> Work:
        """Return work that collects chunks of device memory into one piece."""

    def scatter(self, source: Buffer, chunk: int, order: Sequence[int], pool: Buffer) -> Work:
        """Return work that spreads one piece over chunks of device memory."""

    def read(self, buffer: Buffer) -> Work:
        """Return work that reads all of a buffer and writes next to nothing."""

    def write(self, buffer: Buffer) -> Work:
        """Return work that writes all of a buffer and reads nothing."""

    def convert(self, conversion: str, elements: int) -> tuple[Work, float]:
        """Return work that converts so many numbers, and the bytes that it reads and writes."""

    def multiply(self, side: int) -> Work:
        """Return work that multiplies two square matrices: compute without traffic."""

    def nothing(self) -> Work:
        """Return work that launches the smallest kernel."""

    def pin(self, size: int, how: str) -> tuple[float, float]:
        """Pin so many bytes and give them back; return the seconds of both."""

    def fill(self, buffer: Buffer, seed: int) -> None:
        """Write a pattern without repeats into a buffer, and wait."""

    def same(self, first: Buffer, second: Buffer) -> bool:
        """Tell whether two buffers, each on either side, hold the same bytes."""

    def release(self) -> None:
        """Give memory back that no buffer uses."""
