"""Is restoring a prefix faster than computing it again, and from which bandwidth or length on?"""

import numpy as np

from kvcalc.formulas._domain import Words, not_negative, positive, refuse, select, word
from kvcalc.formulas._normal import complementary_error
from kvcalc.formulas.transfer import burst_time
from kvcalc.quantity import (
    Bytes,
    BytesPerSecond,
    BytesPerToken,
    Real,
    Seconds,
    SecondsPerToken,
    SecondsPerTokenSquared,
    Share,
    Tokens,
)

ROUNDING = 1e-12
"""Relative difference [1] below which two times are equal but for the rounding of their sums."""

NO_BANDWIDTH = (
    "no bandwidth makes the serial path win: what remains after the restore, with its overhead, "
    "takes as long as the full prefill or longer"
)
"""Why a break-even bandwidth does not exist."""

NO_LENGTH = (
    "no prefix length is worth restoring at this bandwidth: restoring one more token takes as long as "
    "computing it or longer"
)
"""Why a break-even length does not exist."""


def cached_total(
    size: Bytes, bandwidth: BytesPerSecond, remaining: Seconds, overhead: Seconds = 0.0
) -> Seconds:
    r"""How long until the first token when the prefix is restored, one part after the other?

    .. math:: T_{cached} = \frac{D}{B_{eff}} + T_{remaining} + T_{overhead}

    Parameters
    ----------
    size : D, bytes to restore [byte]
    bandwidth : B_{eff}, rate of the path for pieces of the size it really moves [byte/second]
    remaining : T_{remaining}, prefill of the suffix, which attends to the whole prefix [second]
    overhead : T_{overhead}, every part that no bandwidth removes: queue, setup, convert, sync [second]

    Raises
    ------
    DomainError
        If `bandwidth` is not positive or another argument is negative.

    Notes
    -----
    The serial sum.  Restoring wins when it is below the full prefill.

    References
    ----------
    Definition: the sum of the parts of a hit.

    Examples
    --------
    1 GB at 10 and at 20 GB/s, with 30 ms of suffix and 5 ms of overhead:

    >>> print(cached_total(1e9, np.array([10e9, 20e9]), 0.030, 0.005))
    [0.135 0.085]
    """
    return (
        burst_time(size, bandwidth)
        + not_negative(remaining, "remaining")
        + not_negative(overhead, "overhead")
    )


def speedup(prefill: Seconds, cached: Seconds) -> Share:
    r"""How many times faster is the hit than the full prefill?

    .. math:: S = \frac{T_{prefill}}{T_{cached}}

    Parameters
    ----------
    prefill : T_{prefill}, full recompute of the prompt [second]
    cached : T_{cached}, time with the restore, serial or overlapped [second]

    Raises
    ------
    DomainError
        If `prefill` is negative or `cached` is not positive.

    Notes
    -----
    Below 1 restoring loses.

    References
    ----------
    Definition: time before over time after.

    Examples
    --------
    >>> print(speedup(0.100, 0.085))
    1.1765
    """
    return not_negative(prefill, "prefill") / positive(cached, "cached")


def break_even_bandwidth(
    size: Bytes, prefill: Seconds, remaining: Seconds, overhead: Seconds = 0.0, window: Seconds = 0.0
) -> BytesPerSecond:
    r"""Above which bandwidth is restoring faster than computing the prompt again?

    .. math:: B_{break} = \frac{D}{T_{prefill} - T_{remaining} - T_{overhead} + W}

    Parameters
    ----------
    size : D, bytes to restore [byte]
    prefill : T_{prefill}, full recompute of the prompt [second]
    remaining : T_{remaining}, prefill of the suffix, which attends to the whole prefix [second]
    overhead : T_{overhead}, every part that no bandwidth removes [second]
    window : W, part of the transfer that hides behind other work, 0 for a serial restore [second]

    Raises
    ------
    DomainError
        If the denominator without W is not positive (then no bandwidth helps), or an argument is negative.

    Notes
    -----
    A window helps slower paths, but where the other parts alone take the full prefill, hiding all of
    the transfer gains nothing either.  Arrays over the prefix length give the break-even as a curve;
    `no_break_even` says why an element is NaN.  A higher hit rate does not promise less time: compute
    falls, bytes to restore rise.

    References
    ----------
    `cached_total`, or with a window `overlapped_total`, set equal to the full prefill and solved for the
    bandwidth.

    Examples
    --------
    Serial, and with 60 ms of other work to hide behind:

    >>> print(break_even_bandwidth(1e9, 0.100, 0.030, 0.005) / 1e9)
    15.3846
    >>> print(break_even_bandwidth(1e9, 0.100, 0.030, 0.005, 0.060) / 1e9)
    8.0
    """
    gap = _gap(prefill, remaining, overhead)
    spare = refuse(gap, gap <= ROUNDING * prefill, NO_BANDWIDTH)
    return not_negative(size, "size") / (spare + not_negative(window, "window"))


def no_break_even(prefill: Seconds, remaining: Seconds, overhead: Seconds = 0.0) -> Words:
    r"""Why does this case have no break-even bandwidth?

    .. math:: T_{prefill} - T_{remaining} - T_{overhead} \le 0

    Parameters
    ----------
    prefill : T_{prefill}, full recompute of the prompt [second]
    remaining : T_{remaining}, prefill of the suffix, which attends to the whole prefix [second]
    overhead : T_{overhead}, every part that no bandwidth removes [second]

    Raises
    ------
    DomainError
        If an argument is negative.

    Notes
    -----
    Gives `NO_BANDWIDTH` where none exists, else ``""``.

    References
    ----------
    The denominator of `break_even_bandwidth`.

    Examples
    --------
    >>> no_break_even(0.030, 0.030, 0.005)[:44]
    'no bandwidth makes the serial path win: what'
    """
    return word([_gap(prefill, remaining, overhead) <= ROUNDING * prefill], [NO_BANDWIDTH])


def _gap(prefill: Seconds, remaining: Seconds, overhead: Seconds) -> Seconds:
    """Return the time that a transfer may take before restoring loses."""
    return (
        not_negative(prefill, "prefill")
        - not_negative(remaining, "remaining")
        - not_negative(overhead, "overhead")
    )


def break_even_tokens(
    bytes_per_token: BytesPerToken,
    bandwidth: BytesPerSecond,
    linear: SecondsPerToken,
    quadratic: SecondsPerTokenSquared = 0.0,
    overhead: Seconds = 0.0,
) -> Tokens:
    r"""From which prefix length on is restoring faster than computing, for a polynomial prefill time?

    .. math:: n = \frac{-g + \sqrt{g^2 + 4 \beta T_{overhead}}}{2 \beta},
              \qquad g = \alpha - \frac{\kappa}{B}

    Parameters
    ----------
    bytes_per_token : \kappa, KV bytes of one token, all layers [byte/token]
    bandwidth : B, rate of the path for pieces of the size it really moves [byte/second]
    linear : \alpha, prefill seconds per token without attention [second/token]
    quadratic : \beta, prefill seconds per token squared, from attention [second/token**2]
    overhead : T_{overhead}, every part that no bandwidth removes [second]

    Raises
    ------
    DomainError
        If `bandwidth` or `linear` is not positive, another argument is negative, or no length is worth
        restoring, which happens only without a quadratic term.

    Notes
    -----
    Solves α n + β n² = T_overhead + κ n / B: the time saved is the prefill of the prefix itself.
    With β = 0 it is T_overhead / g.  Windowed or chunked attention is no polynomial; use
    `shortest_worthwhile` there.

    References
    ----------
    Derived: the positive root of the quadratic equation in the notes, written without cancellation.

    Examples
    --------
    128 KiB per token at 48 GB/s, 27 us a token, 12 ms of overhead:

    >>> print(break_even_tokens(131072, 48e9, 27e-6, 2.6e-10, 0.012))
    491.86
    """
    kappa, b = not_negative(bytes_per_token, "bytes_per_token"), positive(bandwidth, "bandwidth")
    beta, fixed = not_negative(quadratic, "quadratic"), not_negative(overhead, "overhead")
    g = positive(linear, "linear") - kappa / b
    root = np.sqrt(g * g + 4 * beta * fixed)
    reach = root + np.abs(g)
    # Of the two equal forms of the root each is exact where the other cancels or divides by zero.
    gaining = 2 * fixed / select(reach > 0, reach, np.nan)
    losing = reach / (2 * select(beta > 0, beta, np.nan))
    return refuse(select(g > 0, gaining, losing), (g <= 0) & (beta <= 0), NO_LENGTH)


def shortest_worthwhile(tokens: Tokens, gain: Seconds) -> Tokens:
    r"""Which is the shortest prefix on a grid that is worth restoring, for any prefill time?

    .. math:: n = \min \{ n_i : G_i > 0 \}

    Parameters
    ----------
    tokens : n_i, prefix lengths, such as the multiples of a block [token]
    gain : G_i, time saved at each length: full prefill less `cached_total` [second]

    Raises
    ------
    DomainError
        If no length on the grid gains.

    Notes
    -----
    The answer is exact on the grid.  As restores come in whole blocks, a grid of block multiples is
    the exact answer.  NaN gains never count.

    References
    ----------
    Definition: an exhaustive search over the grid.

    Examples
    --------
    >>> grid = np.array([16.0, 32.0, 48.0])
    >>> print(shortest_worthwhile(grid, np.array([-0.002, 0.001, 0.004])))
    32.0
    """
    worthwhile = np.ravel(np.asarray(tokens, dtype=float) * np.where(np.asarray(gain) > 0, 1.0, np.nan))
    found = worthwhile[~np.isnan(worthwhile)]
    refuse(1.0, found.size == 0, "no prefix length on the grid is worth restoring")
    return float(found.min())


def verdict(gain_low: Seconds, gain_high: Seconds) -> Words:
    r"""Restore, recompute, or too close to call?

    .. math:: G = T_{recompute} - T_{cached} \in [G_{low}, G_{high}]

    Parameters
    ----------
    gain_low : G_{low}, least time that restoring may save, negative if it loses [second]
    gain_high : G_{high}, most time that restoring may save [second]

    Raises
    ------
    DomainError
        If `gain_low` is above `gain_high`.

    Notes
    -----
    ``"restore"`` if the whole interval is above zero, ``"recompute"`` if it is below, ``"too_close"``
    if it contains zero, which is the break-even; ``""`` for NaN.

    References
    ----------
    Definition.  Published bandwidths and efficiencies of one setup spread by tens of percent, so an
    interval is the honest input.

    Examples
    --------
    >>> verdict(0.005, 0.025), verdict(-0.004, 0.009)
    ('restore', 'too_close')
    """
    low = _ordered(gain_low, gain_high)
    return word([low > 0, gain_high < 0, low <= gain_high], ["restore", "recompute", "too_close"])


def confidence(gain_low: Seconds, gain_high: Seconds) -> Share:
    r"""How clearly is the question settled, from 0 (a coin toss) to 1 (certain)?

    .. math:: p = 2 \Phi\left(z
              \frac{|G_{low} + G_{high}|}{G_{high} - G_{low}}\right) - 1, \qquad z = 1.645

    Parameters
    ----------
    gain_low : G_{low}, least time that restoring may save, negative if it loses [second]
    gain_high : G_{high}, most time that restoring may save [second]

    Raises
    ------
    DomainError
        If `gain_low` is above `gain_high`.

    Notes
    -----
    How much likelier the verdict is than its opposite, if the gain is normally distributed and lies in
    the interval nine times out of ten.  So it is 0.9 exactly where the interval touches the break-even
    and above it when the verdict is decided; 1 without uncertainty; 0 for an interval centred on the
    break-even, or for an exact tie.

    References
    ----------
    P(G > 0) - P(G < 0) of a normal distribution whose central 90 % is the interval, Phi its cumulative
    function.  The error function behind it by M. Abramowitz, I. Stegun, Handbook of Mathematical
    Functions (1964), 7.1.26, within 1.5e-7.

    Examples
    --------
    >>> print(confidence(0.0, 0.020), confidence(0.015, 0.015))
    0.9 1.0
    """
    low = _ordered(gain_low, gain_high)
    margin, width = np.abs(low + gain_high), gain_high - low
    certain = width == 0
    # Without a width only the sign is left: a margin of any size is certain, none is an exact tie.
    scaled = select(certain, np.sign(margin) * _CERTAIN, margin / select(certain, 1.0, width))
    return 1 - complementary_error(NINETY_PERCENT / np.sqrt(2) * scaled)


NINETY_PERCENT = 1.6448536269514722
"""Half width of the central 90 % of a normal distribution, in standard deviations [1]."""

_CERTAIN = 10.0  # margin over width at which the error function is 1 to the last digit


def _ordered(low: Real, high: Real) -> Real:
    """Return `low` where the two are the ends of an interval."""
    return refuse(low, low > high, "gain_low must not be above gain_high")
