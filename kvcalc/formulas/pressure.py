"""How full growing sequences keep a KV pool, and when evicting them feeds on itself."""

import numpy as np

from kvcalc.formulas._domain import not_negative, positive, refuse, share
from kvcalc.formulas._normal import upper_tail
from kvcalc.quantity import (
    Bytes,
    Count,
    PerSecond,
    Seconds,
    SecondsPerByte,
    Share,
    Tokens,
    TokensPerSecond,
)

ONE_IN_A_HUNDRED = 2.3263
"""Standard deviations above the mean that a normal variable exceeds once in a hundred times [1]; the
0.99 quantile as tables print it, for example M. Abramowitz, I. Stegun, Handbook of Mathematical
Functions (1964), table 26.5."""

NO_SPARE = "no time is left for decode: prefill, growth of the step and recompute take all of it"
"""Why a number of running sequences does not exist."""


def victim_price(cost: Seconds, freed: Bytes) -> SecondsPerByte:
    r"""What does one freed byte cost when this victim goes?

    .. math:: q = \frac{C}{D}

    Parameters
    ----------
    cost : C, time to bring the victim back: computed again, or swapped out and in [second]
    freed : D, bytes that its going really frees, without blocks that others share [byte]

    Raises
    ------
    DomainError
        If `cost` is negative or `freed` is not positive.

    Notes
    -----
    The cheapest byte goes first.  Bytes beyond those that are needed are worth nothing, so D is at most
    what is still missing.

    References
    ----------
    Reclaimable bytes over recompute tokens, as a score: https://github.com/vllm-project/vllm/pull/56897

    Examples
    --------
    >>> print(victim_price(2.56, 2e9) * 1e9)
    1.28
    """
    return not_negative(cost, "cost") / positive(freed, "freed")


def expected_running(rate: PerSecond, generate: Count, step: Seconds, spare: Share) -> Count:
    r"""How many sequences run at once on average?

    .. math:: N = \frac{\lambda g s}{φ}

    Parameters
    ----------
    rate : \lambda, requests per second [1/second]
    generate : g, decode steps of one request, one for each generated token [1]
    step : s, part of a decode step that does not grow with the sequences in it [second]
    spare : φ, share of the time that prefill, growth of the step and recompute leave [1]

    Raises
    ------
    DomainError
        If an argument is negative, or `spare` is zero or above 1.

    Notes
    -----
    A step takes s + b N, and prefill takes part of the time; b N and prefill are in φ, which is 1 less
    the request rate times the GPU time that each request adds.

    References
    ----------
    J. Little, Operations Research 9 (1961) 383, https://doi.org/10.1287/opre.9.3.383, with the
    residence g (s + b N) stretched by the time that prefill takes, solved for N.

    Examples
    --------
    >>> print(expected_running(4.0, 300, 0.01, 0.6))
    20.0
    """
    left = share(refuse(spare, spare <= 0, NO_SPARE), "spare")
    steps = not_negative(rate, "rate") * not_negative(generate, "generate")
    return steps * not_negative(step, "step") / left


def expected_occupancy(running: Count, held: Tokens, pool: Tokens) -> Share:
    r"""What share of the pool do running sequences fill on average?

    .. math:: u = \frac{N h}{P}

    Parameters
    ----------
    running : N, sequences at once [1]
    held : h, tokens that one of them holds on average over its life [token]
    pool : P, tokens that the pool holds [token]

    Raises
    ------
    DomainError
        If `running` or `held` is negative or `pool` is not positive.

    Notes
    -----
    Above 1 the pool cannot hold the load: requests wait, or sequences are evicted.

    References
    ----------
    Definition: tokens held over tokens that there is room for.

    Examples
    --------
    >>> print(expected_occupancy(20, 2150, 86_000))
    0.5
    """
    return not_negative(running, "running") * not_negative(held, "held") / positive(pool, "pool")


def overrun_probability(running: Count, held: Tokens, deviation: Tokens, pool: Tokens) -> Share:
    r"""How likely is it that growing sequences want more than the pool holds?

    .. math:: p = 1 - Φ\left(\frac{P - N h}{σ \sqrt{N}}\right)

    Parameters
    ----------
    running : N, sequences at once [1]
    held : h, tokens that one of them holds on average over its life [token]
    deviation : σ, standard deviation of the tokens that one of them holds [token]
    pool : P, tokens that the pool holds [token]

    Raises
    ------
    DomainError
        If `running`, `deviation` or `pool` is not positive or `held` is negative.

    Notes
    -----
    Φ is the normal distribution.  The sum of many independent lengths is nearly normal; of few long ones
    its tail is longer, so that this is too low.

    References
    ----------
    Central limit theorem; Φ by M. Abramowitz, I. Stegun, Handbook of Mathematical Functions (1964),
    7.1.26, to 1.5e-7.

    Examples
    --------
    >>> print(overrun_probability(20, 2150, 2000.0, 50_000))
    0.21692
    """
    return upper_tail(_room(running, held, deviation, pool))


def overrun_slope(running: Count, held: Tokens, deviation: Tokens, pool: Tokens) -> Share:
    r"""How much more likely does one more sequence make it that the pool overruns?

    .. math:: p' = \frac{P + N h}{2 N σ \sqrt{N}} \cdot φ\left(\frac{P - N h}{σ \sqrt{N}}\right)

    Parameters
    ----------
    running : N, sequences at once [1]
    held : h, tokens that one of them holds on average over its life [token]
    deviation : σ, standard deviation of the tokens that one of them holds [token]
    pool : P, tokens that the pool holds [token]

    Raises
    ------
    DomainError
        If `running`, `deviation` or `pool` is not positive or `held` is negative.

    Notes
    -----
    φ is the normal density.  Small in an empty pool and in one that is always full; largest where the
    load just fills it.

    References
    ----------
    `overrun_probability` differentiated by the number of sequences.

    Examples
    --------
    >>> print(overrun_slope(20, 2150, 2000.0, 50_000))
    0.076346
    """
    room, n = _room(running, held, deviation, pool), positive(running, "running")
    steepness = (pool + n * held) / (2 * n * deviation * np.sqrt(n))
    density: Share = np.exp(-room * room / 2) / np.sqrt(2 * np.pi)
    return steepness * density


def safe_concurrency(
    held: Tokens, deviation: Tokens, pool: Tokens, quantile: Count = ONE_IN_A_HUNDRED
) -> Count:
    r"""How many sequences may run at once so that growing hardly ever overruns the pool?

    .. math:: N = \left\lfloor \left(\frac{\sqrt{z^2 σ^2 + 4 h P} - z σ}{2 h}\right)^2
              \right\rfloor

    Parameters
    ----------
    held : h, tokens that one of them holds on average over its life [token]
    deviation : σ, standard deviation of the tokens that one of them holds [token]
    pool : P, tokens that the pool holds [token]
    quantile : z, standard deviations kept free: 2.33 overruns once in a hundred times [1]

    Raises
    ------
    DomainError
        If `held` or `pool` is not positive, or `deviation` or `quantile` is negative.

    Notes
    -----
    A cap for an engine's running sequences, such as vLLM's --max-num-seqs.

    References
    ----------
    N h + z σ sqrt(N) = P, the normal quantile of the tokens held, solved for N.

    Examples
    --------
    >>> print(safe_concurrency(2150, 2000.0, 50_000))
    14.0
    """
    h, spread = positive(held, "held"), not_negative(deviation, "deviation")
    margin = not_negative(quantile, "quantile") * spread
    root = (np.sqrt(margin * margin + 4 * h * positive(pool, "pool")) - margin) / (2 * h)
    return root * root // 1


def growth_evictions(overrun: Share, growth: TokensPerSecond, freed: Tokens) -> PerSecond:
    r"""How often must a sequence go because others grow?

    .. math:: e = \frac{p R}{f}

    Parameters
    ----------
    overrun : p, share of the time that the pool is full [1]
    growth : R, tokens per second by which all running sequences grow [token/second]
    freed : f, tokens that one eviction frees [token]

    Raises
    ------
    DomainError
        If an argument is negative or `freed` is not positive.

    Notes
    -----
    While the pool is full, each generated token needs room that an eviction has to make.

    References
    ----------
    Balance of tokens in a full pool: growth equals what evictions free.

    Examples
    --------
    >>> print(growth_evictions(0.5, 1200.0, 2400))
    0.25
    """
    tokens = not_negative(overrun, "overrun") * not_negative(growth, "growth")
    return tokens / positive(freed, "freed")


def loop_gain(
    cost: Seconds,
    growth: TokensPerSecond,
    freed: Tokens,
    slope: Share,
    running: Count,
    spare: Share,
) -> Share:
    r"""How many further evictions does the recompute of one eviction cause?

    .. math:: G = C \frac{R}{f} p' \frac{N}{φ}

    Parameters
    ----------
    cost : C, GPU time to compute one victim again [second]
    growth : R, tokens per second by which all running sequences grow [token/second]
    freed : f, tokens that one eviction frees [token]
    slope : p', how much one more sequence raises the overrun probability [1]
    running : N, sequences at once [1]
    spare : φ, share of the time that prefill, growth of the step and recompute leave [1]

    Raises
    ------
    DomainError
        If an argument is negative, or `freed` or `spare` is not positive.

    Notes
    -----
    Recompute takes time from decode, so that sequences stay longer and more run at once (N / φ); more
    sequences overrun the pool more often (p'); each overrun costs evictions (R / f), and each eviction
    recompute (C).  Above 1 the loop feeds itself: load does not fall back after a burst.

    References
    ----------
    Derived: the chain rule over `growth_evictions`, `overrun_probability` and `expected_running`; a loop
    grows when the product of its gains exceeds 1 (K. Åström, R. Murray, Feedback Systems, 2008, chapter 9).

    Examples
    --------
    >>> print(loop_gain(0.25, 1200.0, 2400, 0.08, 20, 0.5))
    0.4
    """
    evictions = not_negative(growth, "growth") / positive(freed, "freed")
    crowding = not_negative(running, "running") / positive(spare, "spare")
    return not_negative(cost, "cost") * evictions * not_negative(slope, "slope") * crowding


def _room(running: Count, held: Tokens, deviation: Tokens, pool: Tokens) -> Count:
    """Return how many standard deviations the mean of the tokens held lies below the pool."""
    n = positive(running, "running")
    spread = positive(deviation, "deviation") * np.sqrt(n)
    return (positive(pool, "pool") - n * not_negative(held, "held")) / spread
