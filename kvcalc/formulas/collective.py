"""How long ranks that share a layer need to add up their partial results."""

from kvcalc.formulas._domain import at_least_one, not_negative, positive
from kvcalc.quantity import Bytes, BytesPerSecond, Count, Seconds


def all_reduce_time(
    size: Bytes, ranks: Count, bandwidth: BytesPerSecond, latency: Seconds = 0.0, count: Count = 1.0
) -> Seconds:
    r"""How long do so many all-reduces take, one after the other?

    .. math:: T = n \left( t_0 + \frac{2 (t - 1)}{t} \frac{S}{B} \right)

    Parameters
    ----------
    size : S, bytes that each rank contributes to one all-reduce [byte]
    ranks : t, ranks that take part [1]
    bandwidth : B, what one rank sends to the others in one direction [byte/second]
    latency : t_0, launch and synchronization of one all-reduce, whatever its size [second]
    count : n, all-reduces: two in a layer of attention and MLP [1]

    Raises
    ------
    DomainError
        If `size`, `latency` or `count` is negative, `bandwidth` is not positive, or `ranks` is below 1.

    Notes
    -----
    The bytes are those of a ring; switches that add on the way move fewer.  A decode step sends
    kilobytes, so its all-reduces cost their latency; a long prefill sends megabytes and is bound by the
    links.  A single rank has nothing to add up: leave the all-reduces out there.

    References
    ----------
    Ring all-reduce: P. Patarasuk, X. Yuan, Bandwidth optimal all-reduce algorithms for clusters of
    workstations, Journal of Parallel and Distributed Computing 69 (2009) 117,
    https://doi.org/10.1016/j.jpdc.2008.09.002

    Examples
    --------
    64 sequences of 8,192 two-byte elements over eight GPUs with 450 GB/s and 10 us each, twice in each
    of 80 layers, in milliseconds:

    >>> print(1e3 * all_reduce_time(64 * 8192 * 2, 8, 450e9, 10e-6, count=160))
    2.25
    """
    t = at_least_one(ranks, "ranks")
    moved = 2 * (t - 1) / t * not_negative(size, "size") / positive(bandwidth, "bandwidth")
    return not_negative(count, "count") * (not_negative(latency, "latency") + moved)
