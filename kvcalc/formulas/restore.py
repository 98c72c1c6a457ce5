"""How long it takes to bring an offloaded KV prefix back into device memory."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from kvcalc.formulas._domain import not_negative, positive, refuse
from kvcalc.formulas.transfer import burst_time
from kvcalc.quantity import Bytes, BytesPerSecond, Seconds


@dataclass(frozen=True)
class RestoreTime:
    """Where the time of one restore goes; the parts add up to `total`."""

    queue: Seconds  # waiting for the link or the loader to be free
    setup: Seconds  # index lookup and request submission, before any byte moves
    transfer: Seconds  # the bytes themselves
    convert: Seconds  # changing precision, layout or sharding on arrival
    sync: Seconds  # until the scheduler sees that the blocks are there

    @property
    def total(self) -> Seconds:
        """Time from request to usable blocks, when no part overlaps another."""
        return self.queue + self.setup + self.transfer + self.convert + self.sync


@dataclass(frozen=True)
class PathTime:
    """Where the time on a chain of hops goes; the parts add up to `total`."""

    fill: Seconds  # the first chunk crossing every hop but the slowest
    stream: Seconds  # all bytes through the slowest hop

    @property
    def total(self) -> Seconds:
        """Time from the first byte leaving to the last byte arriving."""
        return self.fill + self.stream


def restore_time(
    size: Bytes,
    bandwidth: BytesPerSecond,
    queue: Seconds = 0.0,
    setup: Seconds = 0.0,
    convert: Seconds = 0.0,
    sync: Seconds = 0.0,
) -> RestoreTime:
    r"""How long does it take to bring so many bytes of KV back, part by part?

    .. math:: T_{restore} = T_{queue} + T_{setup} + \frac{D}{B_{eff}} + T_{convert} + T_{sync}

    Parameters
    ----------
    size : D, bytes to restore [byte]
    bandwidth : B_{eff}, rate of the path for pieces of the size it really moves [byte/second]
    queue : T_{queue}, wait for the link or the loader [second]
    setup : T_{setup}, lookup and submission before the first byte moves [second]
    convert : T_{convert}, change of precision, layout or sharding on arrival [second]
    sync : T_{sync}, until the scheduler sees the blocks [second]

    Raises
    ------
    DomainError
        If `bandwidth` is not positive or another argument is negative.

    Notes
    -----
    The serial sum: an upper bound where a runtime overlaps parts.  With a nominal bandwidth and no
    other part it is only the ideal transfer time.

    References
    ----------
    Definition: the sum of the parts, as if each waited for the one before it.

    Examples
    --------
    >>> print(restore_time(1e9, 20e9, queue=2e-3, setup=12e-3).total)
    0.064
    """
    return RestoreTime(
        queue=not_negative(queue, "queue"),
        setup=not_negative(setup, "setup"),
        transfer=burst_time(size, bandwidth),
        convert=not_negative(convert, "convert"),
        sync=not_negative(sync, "sync"),
    )


def path_time(size: Bytes, chunk: Bytes, bandwidth: Sequence[BytesPerSecond]) -> PathTime:
    r"""How long do bytes take over a chain of hops, such as NVMe then PCIe, chunk by chunk?

    .. math:: T = \sum_{i \ne m} \frac{c}{b_i} + \frac{D}{b_m}, \qquad m = \arg\min_i b_i

    Parameters
    ----------
    size : D, bytes to move [byte]
    chunk : c, bytes one hop hands to the next at a time, 0 < c <= D [byte]
    bandwidth : b_i, sustained rate of each hop, in order [byte/second]

    Raises
    ------
    DomainError
        If a bandwidth is not positive, there is no hop, or `chunk` is outside (0, size].

    Notes
    -----
    ``chunk == size`` is store-and-forward: each hop waits for the one before it.  Hops must not share
    a resource; two that cross the same DRAM channel do, and then this is a lower bound.  Exact when
    `chunk` divides `size`.

    References
    ----------
    Derived: once the first chunk has crossed the other hops, the slowest hop delivers one chunk every
    c / b_m.  Checked against a chunk-by-chunk simulation.

    Examples
    --------
    1 GiB from NVMe at 7 GB/s, then PCIe at 50 GB/s, in 16 MiB chunks:

    >>> print(path_time(2**30, 2**24, (7e9, 50e9)).total)
    0.1537
    """
    hops = [positive(b, "bandwidth") for b in bandwidth]
    refuse(float(len(hops)), len(hops) == 0, "a path needs at least one hop")
    c = refuse(chunk, (chunk <= 0) | (chunk > size), "chunk must lie in (0, size]")
    slowest = reduce(np.minimum, hops)
    others = reduce(lambda a, b: a + b, [1 / b for b in hops]) - 1 / slowest
    return PathTime(fill=c * others, stream=size / slowest)
