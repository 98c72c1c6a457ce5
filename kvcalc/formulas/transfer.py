"""How fast bytes really move: pieces, operations per second, shared and two-way links."""

import numpy as np

from kvcalc.formulas._domain import ceil_div, not_negative, positive, refuse
from kvcalc.quantity import Bytes, BytesPerSecond, Count, PerSecond, Seconds


def effective_bandwidth(
    piece: Bytes, bandwidth: BytesPerSecond, overhead: Seconds = 0.0, streams: Count = 1.0
) -> BytesPerSecond:
    r"""How fast is a link when the bytes come in pieces of this size?

    .. math:: B_{eff} = \min\left(B, \frac{q s}{t_0 + s / B}\right)

    Parameters
    ----------
    piece : s, bytes of one contiguous piece, one operation each [byte]
    bandwidth : B, rate of the link for endless pieces [byte/second]
    overhead : t_0, fixed cost of one operation [second]
    streams : q, operations in flight that hide each other's fixed cost [1]

    Raises
    ------
    DomainError
        If `piece`, `bandwidth` or `streams` is not positive, or `overhead` is negative.

    Notes
    -----
    Half the bandwidth is left at s = t_0 B.  A copy engine has q near 1 per direction; NVMe, RDMA
    and object stores have many.

    References
    ----------
    The linear latency-bandwidth model of a message: R. Hockney, Parallel Computing 20 (1994) 389,
    https://doi.org/10.1016/S0167-8191(06)80021-9

    Examples
    --------
    16 KiB pieces with 3.5 us each on a 52.5 GB/s link:

    >>> print(effective_bandwidth(16384, 52.5e9, 3.5e-6) / 1e9)
    4.2979
    """
    s, b = positive(piece, "piece"), positive(bandwidth, "bandwidth")
    q = positive(streams, "streams")
    return np.minimum(b, q * s / (not_negative(overhead, "overhead") + s / b))


def half_bandwidth_piece(bandwidth: BytesPerSecond, overhead: Seconds) -> Bytes:
    r"""How large must a piece be for half of the link's bandwidth?

    .. math:: s_{1/2} = t_0 B

    Parameters
    ----------
    bandwidth : B, rate of the link for endless pieces [byte/second]
    overhead : t_0, fixed cost of one operation [second]

    Raises
    ------
    DomainError
        If `bandwidth` is not positive or `overhead` is negative.

    Notes
    -----
    Below it the fixed cost decides, above it the link.

    References
    ----------
    `effective_bandwidth` set to B / 2; the half-performance length of Hockney, cited there.

    Examples
    --------
    >>> print(half_bandwidth_piece(52.5e9, 3.5e-6) / 1024)
    179.44
    """
    return positive(bandwidth, "bandwidth") * not_negative(overhead, "overhead")


def piece_for_bandwidth(
    target: BytesPerSecond, bandwidth: BytesPerSecond, overhead: Seconds, streams: Count = 1.0
) -> Bytes:
    r"""How large must a piece be for a link to reach this rate?

    .. math:: s = \frac{t_0 B_{t}}{q - B_{t} / B}

    Parameters
    ----------
    target : B_{t}, rate to reach [byte/second]
    bandwidth : B, rate of the link for endless pieces [byte/second]
    overhead : t_0, fixed cost of one operation [second]
    streams : q, operations in flight that hide each other's fixed cost [1]

    Raises
    ------
    DomainError
        If `target` is at or above what endless pieces reach, `target`, `bandwidth` or `streams` is not
        positive, or `overhead` is negative.

    Notes
    -----
    With the break-even bandwidth as the target it is the smallest piece with which restoring wins.

    References
    ----------
    `effective_bandwidth` solved for the piece.

    Examples
    --------
    Three quarters of a 52.5 GB/s link with 3.5 us an operation:

    >>> print(piece_for_bandwidth(39.375e9, 52.5e9, 3.5e-6) / 1024)
    538.33
    """
    b, q = positive(bandwidth, "bandwidth"), positive(streams, "streams")
    wanted = positive(target, "target")
    out_of_reach = "no piece is large enough: the target is at or above the bandwidth of endless pieces"
    wanted = refuse(wanted, wanted >= np.minimum(1.0, q) * b, out_of_reach)
    return not_negative(overhead, "overhead") * wanted / (q - wanted / b)


def iops_bandwidth(
    operations: PerSecond, piece: Bytes, bandwidth: BytesPerSecond = float("inf")
) -> BytesPerSecond:
    r"""How fast is a device that allows only so many operations per second?

    .. math:: B_{io} = \min(X s, B)

    Parameters
    ----------
    operations : X, operations the device completes per second [1/second]
    piece : s, bytes of one operation [byte]
    bandwidth : B, rate of the device for large operations [byte/second]

    Raises
    ------
    DomainError
        If an argument is not positive.

    Notes
    -----
    The tighter of operations and bandwidth binds.

    References
    ----------
    Throughput is completions per second times bytes per completion.

    Examples
    --------
    >>> print(iops_bandwidth(1e6, 4096))
    4096000000.0
    """
    rate = positive(operations, "operations") * positive(piece, "piece")
    return np.minimum(rate, positive(bandwidth, "bandwidth"))


def queue_depth(bandwidth: BytesPerSecond, latency: Seconds, piece: Bytes) -> Count:
    r"""How many operations must be in flight to keep the device busy?

    .. math:: Q = \frac{B t_l}{s}

    Parameters
    ----------
    bandwidth : B, rate to sustain [byte/second]
    latency : t_l, time from submitting one operation to its completion [second]
    piece : s, bytes of one operation [byte]

    Raises
    ------
    DomainError
        If `bandwidth` or `piece` is not positive, or `latency` is negative.

    Notes
    -----
    With fewer in flight the rate falls in proportion.

    References
    ----------
    Little's law: J. Little, Operations Research 9 (1961) 383, https://doi.org/10.1287/opre.9.3.383

    Examples
    --------
    7 GB/s with 80 us and 128 KiB operations:

    >>> print(queue_depth(7e9, 80e-6, 131072))
    4.2725
    """
    return positive(bandwidth, "bandwidth") * not_negative(latency, "latency") / positive(piece, "piece")


def transfer_time(size: Bytes, piece: Bytes, bandwidth: BytesPerSecond, overhead: Seconds = 0.0) -> Seconds:
    r"""How long do so many bytes take in pieces of this size, one after another?

    .. math:: T = \left\lceil \frac{D}{s} \right\rceil t_0 + \frac{D}{B}

    Parameters
    ----------
    size : D, bytes to move [byte]
    piece : s, bytes of one contiguous piece, one operation each [byte]
    bandwidth : B, rate of the link for endless pieces [byte/second]
    overhead : t_0, fixed cost of one operation [second]

    Raises
    ------
    DomainError
        If `piece` or `bandwidth` is not positive, or `size` or `overhead` is negative.

    Notes
    -----
    The last, shorter piece pays the full fixed cost.  For whole pieces this is
    D / `effective_bandwidth` with one stream.

    References
    ----------
    The sum over all pieces of the linear latency-bandwidth model; see `effective_bandwidth`.

    Examples
    --------
    >>> print(transfer_time(1e9, 2e6, 50e9, 4e-6))
    0.022
    """
    pieces = ceil_div(not_negative(size, "size"), positive(piece, "piece"))
    return pieces * not_negative(overhead, "overhead") + size / positive(bandwidth, "bandwidth")


def average_bandwidth(rate: PerSecond, size: Bytes) -> BytesPerSecond:
    r"""How many bytes per second do repeated fetches need on average?

    .. math:: B_{avg} = \lambda D

    Parameters
    ----------
    rate : \lambda, fetches per second [1/second]
    size : D, bytes of one fetch [byte]

    Raises
    ------
    DomainError
        If an argument is negative.

    Notes
    -----
    Average is not burst: one fetch still takes D over the link's full rate, see `burst_time`.

    References
    ----------
    Definition: events per second times bytes per event.

    Examples
    --------
    >>> print(average_bandwidth(10, 100e6))
    1000000000.0
    """
    return not_negative(rate, "rate") * not_negative(size, "size")


def burst_time(size: Bytes, bandwidth: BytesPerSecond) -> Seconds:
    r"""How long does one fetch take when it has the link for itself?

    .. math:: T = \frac{D}{B}

    Parameters
    ----------
    size : D, bytes of one fetch [byte]
    bandwidth : B, sustained rate of the link [byte/second]

    Raises
    ------
    DomainError
        If `size` is negative or `bandwidth` is not positive.

    Notes
    -----
    With the nominal rate of a link this is only the ideal transfer part of a restore.

    References
    ----------
    Definition: bytes over bytes per second.

    Examples
    --------
    >>> print(burst_time(100e6, 20e9))
    0.005
    """
    return not_negative(size, "size") / positive(bandwidth, "bandwidth")


def duplex_bandwidth(
    one_way: BytesPerSecond, both_ways: BytesPerSecond, opposite: BytesPerSecond
) -> BytesPerSecond:
    r"""How fast is one direction while the other carries traffic?

    .. math:: B = \min(B_1, B_2 - w)

    Parameters
    ----------
    one_way : B_1, rate of this direction alone [byte/second]
    both_ways : B_2, sum of both directions when both are busy [byte/second]
    opposite : w, traffic in the other direction [byte/second]

    Raises
    ------
    DomainError
        If `one_way` is not positive, `opposite` is negative, or `opposite` leaves nothing of `both_ways`.

    Notes
    -----
    Stores during restores cost bandwidth even on a full-duplex link: an H100 moves 83 GB/s both ways
    at once, not 2 x 55.

    References
    ----------
    Measured: https://github.com/NVIDIA/nvbandwidth, bidirectional copies.

    Examples
    --------
    >>> print(duplex_bandwidth(55e9, 83e9, 40e9))
    43000000000.0
    """
    left = both_ways - not_negative(opposite, "opposite")
    left = refuse(left, left <= 0, "the opposite direction already takes all of the link")
    return np.minimum(positive(one_way, "one_way"), left)


def shared_bandwidth(link: BytesPerSecond, uplink: BytesPerSecond, sharers: Count = 1.0) -> BytesPerSecond:
    r"""How fast is each of several links that share one uplink?

    .. math:: B = \min\left(B_l, \frac{B_u}{k}\right)

    Parameters
    ----------
    link : B_l, rate of one link alone [byte/second]
    uplink : B_u, rate of what they share: a switch, a socket's DRAM, a network card [byte/second]
    sharers : k, links that are busy at the same time [1]

    Raises
    ------
    DomainError
        If an argument is not positive.

    Notes
    -----
    An even share; a restore over several GPUs waits for the slowest of them.

    References
    ----------
    Max-min fairness between equal flows: D. Bertsekas, R. Gallager, Data Networks, 2nd ed. (1992).

    Examples
    --------
    Eight 55 GB/s links on 307 GB/s of DRAM:

    >>> print(shared_bandwidth(55e9, 307e9, 8) / 1e9)
    38.375
    """
    even = positive(uplink, "uplink") / positive(sharers, "sharers")
    return np.minimum(positive(link, "link"), even)
