"""What evicting a sequence costs, and when evictions eat the throughput they should free."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kvcalc.formulas._domain import not_negative, positive, refuse
from kvcalc.formulas.transfer import burst_time
from kvcalc.quantity import (
    Bytes,
    BytesPerSecond,
    Count,
    PerSecond,
    Seconds,
    SecondsPerToken,
    Share,
    Tokens,
    TokensPerSecond,
)

THRASH_EVICTIONS = 5.0
"""Evictions per second [1/second] above which admission should stop: the operating rule that
practitioners state together with `THRASH_SHARE`; both are arguments of `is_thrashing`."""

THRASH_SHARE = 0.20
"""Share of recomputed tokens [1] above which admission should stop; see `THRASH_EVICTIONS`."""


@dataclass(frozen=True)
class SwapTime:
    """Where the time of a swap goes; the parts add up to `total`."""

    out: Seconds  # device to host, which may overlap compute
    back: Seconds  # host to device, for which the resumed sequence waits

    @property
    def total(self) -> Seconds:
        """Link time of the round trip."""
        return self.out + self.back


def recompute_time(tokens: Tokens, time_per_token: SecondsPerToken, kept: Tokens = 0.0) -> Seconds:
    r"""How long does it take to compute again what an evicted sequence lost?

    .. math:: C_r = (n - k) t

    Parameters
    ----------
    tokens : n, tokens of the sequence: prompt and what was generated so far [token]
    time_per_token : t, prefill time per token [second/token]
    kept : k, tokens at the front whose KV stays, 0 where all of it is dropped [token]

    Raises
    ------
    DomainError
        If an argument is negative or `kept` is more than `tokens`.

    Notes
    -----
    Linear, so too low for long contexts, where attention grows with the square; then use
    `prefill_time` with `new` = n - k and `cached` = k.  Beside other work these are GPU-seconds rather
    than latency.

    References
    ----------
    vLLM V1 preempts by dropping the computed state: https://docs.vllm.ai/en/latest/configuration/optimization/

    Examples
    --------
    >>> print(recompute_time(32_000, 0.08e-3), recompute_time(32_000, 0.08e-3, kept=30_000))
    2.56 0.16
    """
    stays = refuse(not_negative(kept, "kept"), kept > tokens, "kept must not be more than tokens")
    dropped = not_negative(tokens, "tokens") - stays
    return dropped * not_negative(time_per_token, "time_per_token")


def price_ratio(tokens_done: Tokens, tokens_remaining: Tokens) -> Share:
    r"""What does evicting this sequence cost against what keeping it still costs?

    .. math:: r = \frac{n_{done}}{n_{remaining}}

    Parameters
    ----------
    tokens_done : n_{done}, tokens whose KV would have to be computed again [token]
    tokens_remaining : n_{remaining}, tokens still to generate [token]

    Raises
    ------
    DomainError
        If `tokens_done` is negative or `tokens_remaining` is not positive.

    Notes
    -----
    The lowest ratio goes first.  A sequence with nothing left to generate is finished: it is freed,
    not ranked.

    References
    ----------
    Cost over benefit, as in greedy knapsack: recompute cost grows with the tokens done, the memory
    that eviction makes available with the tokens the victim would still have held it for.

    Examples
    --------
    >>> print(price_ratio(np.array([30_000, 2_000, 26_000]), np.array([8_000, 1_000, 200])))
    [  3.75   2.   130.  ]
    """
    left = refuse(
        tokens_remaining,
        tokens_remaining <= 0,
        "tokens_remaining must be positive: a sequence with nothing left to generate is finished",
    )
    return not_negative(tokens_done, "tokens_done") / left


def recomputed_share(recomputed: Tokens, new: Tokens) -> Share:
    r"""What share of all computed tokens had been computed before?

    .. math:: θ = \frac{n_r}{n_r + n}

    Parameters
    ----------
    recomputed : n_r, tokens computed again after an eviction [token]
    new : n, tokens computed for the first time in the same period [token]

    Raises
    ------
    DomainError
        If an argument is negative, or both are zero.

    Notes
    -----
    The thrash index; `is_thrashing` puts a limit to it.

    References
    ----------
    Definition: recomputed tokens over all tokens.

    Examples
    --------
    >>> print(recomputed_share(20_000, 80_000))
    0.2
    """
    total = not_negative(recomputed, "recomputed") + not_negative(new, "new")
    return recomputed / refuse(total, total == 0, "no token was computed")


def is_thrashing(
    evictions: PerSecond,
    recomputed: Share,
    most_evictions: PerSecond = THRASH_EVICTIONS,
    most_recomputed: Share = THRASH_SHARE,
) -> bool | NDArray[np.bool_]:
    r"""Do evictions cost so much that admission should stop?

    .. math:: e > e_{max} \; or \; θ > θ_{max}

    Parameters
    ----------
    evictions : e, evictions per second [1/second]
    recomputed : θ, share of recomputed tokens among all tokens [1]
    most_evictions : e_{max}, rate above which it thrashes [1/second]
    most_recomputed : θ_{max}, share above which it thrashes [1]

    Raises
    ------
    DomainError
        If an argument is negative.

    Notes
    -----
    Eviction leads to recompute, recompute to a longer queue, and the queue to more pressure.  NaN
    never counts as thrashing.

    References
    ----------
    The operating rule stated at `THRASH_EVICTIONS`.

    Examples
    --------
    >>> print(is_thrashing(6.0, 0.05), is_thrashing(5.0, 0.20))
    True False
    """
    often = not_negative(evictions, "evictions") > not_negative(most_evictions, "most_evictions")
    much = not_negative(recomputed, "recomputed") > not_negative(most_recomputed, "most_recomputed")
    thrashing: bool | NDArray[np.bool_] = often | much
    return thrashing


def swap_time(size: Bytes, out: BytesPerSecond, back: BytesPerSecond) -> SwapTime:
    r"""How long does swapping a sequence out and back in use the link?

    .. math:: C_s = \frac{D}{B_{out}} + \frac{D}{B_{back}}

    Parameters
    ----------
    size : D, bytes of the sequence that leave the device [byte]
    out : B_{out}, rate from device to host [byte/second]
    back : B_{back}, rate from host to device [byte/second]

    Raises
    ------
    DomainError
        If `size` is negative or a bandwidth is not positive.

    Notes
    -----
    Swapping beats recomputing when `back` is above the break-even bandwidth and the host has room.
    The way out may overlap compute, the way back delays the sequence.

    References
    ----------
    Definition: bytes over bandwidth, each way.

    Examples
    --------
    >>> print(swap_time(4e9, 50e9, 40e9).total)
    0.18
    """
    return SwapTime(out=burst_time(size, out), back=burst_time(size, back))


def eviction_loss(cost: Seconds, evictions: PerSecond, gpus: Count = 1.0) -> Share:
    r"""What share of the GPUs' time goes into computing evicted sequences again?

    .. math:: x = \frac{C_r e}{G}

    Parameters
    ----------
    cost : C_r, GPU time to compute one victim again [second]
    evictions : e, evictions per second [1/second]
    gpus : G, GPUs that do this work side by side [1]

    Raises
    ------
    DomainError
        If `cost` or `evictions` is negative or `gpus` is not positive.

    Notes
    -----
    The most a better eviction policy can win.  Where it is small, plain LRU is enough.

    References
    ----------
    Definition: cost of one event times events per second.

    Examples
    --------
    >>> print(eviction_loss(2.56, 0.1))
    0.256
    """
    load = not_negative(cost, "cost") * not_negative(evictions, "evictions")
    return load / positive(gpus, "gpus")


def thrash_evictions(
    rate: TokensPerSecond,
    recomputed: Tokens,
    most_evictions: PerSecond = THRASH_EVICTIONS,
    most_recomputed: Share = THRASH_SHARE,
) -> PerSecond:
    r"""From how many evictions per second on does the thrash rule close admission?

    .. math:: e = \min\left(e_{max}, \frac{s_{max}}{1 - s_{max}} \cdot \frac{R}{n}\right)

    Parameters
    ----------
    rate : R, tokens computed for the first time per second, of prompts and generated [token/second]
    recomputed : n, tokens that one eviction makes to be computed again [token]
    most_evictions : e_{max}, evictions above which admission stops [1/second]
    most_recomputed : s_{max}, share of recomputed tokens above which it stops, below 1 [1]

    Raises
    ------
    DomainError
        If `rate` or `most_evictions` is negative, `recomputed` is not positive, or `most_recomputed` is
        outside [0, 1).

    Notes
    -----
    The share rule counts recomputed tokens against all tokens: e n = s (R + e n), solved for e.  Long
    sequences meet it long before five evictions a second.

    References
    ----------
    `is_thrashing` solved for the eviction rate.

    Examples
    --------
    >>> print(thrash_evictions(2000.0, 4096.0))
    0.12207
    """
    bad = (most_recomputed < 0) | (most_recomputed >= 1)
    s = refuse(most_recomputed, bad, "most_recomputed must lie in [0, 1)")
    by_share = s / (1 - s) * not_negative(rate, "rate") / positive(recomputed, "recomputed")
    return np.minimum(not_negative(most_evictions, "most_evictions"), by_share)


def finished_requests(rate: TokensPerSecond, generated: Tokens, arrivals: PerSecond = np.inf) -> PerSecond:
    r"""How many requests per second does decode finish?

    .. math:: \lambda = \min\left(a, \frac{R}{g}\right)

    Parameters
    ----------
    rate : R, generated over all sequences [token/second]
    generated : g, of one request [token]
    arrivals : a, requests that come; infinite where they wait in line [1/second]

    Raises
    ------
    DomainError
        If `rate` or `arrivals` is negative, or `generated` is not positive.

    Notes
    -----
    More requests than decode finishes pile up; fewer leave it idle.

    References
    ----------
    Conservation: each request takes its tokens from decode.

    Examples
    --------
    >>> print(finished_requests(2000.0, 256.0), finished_requests(2000.0, 256.0, 5.0))
    7.8125 5.0
    """
    by_decode = not_negative(rate, "rate") / positive(generated, "generated")
    return np.minimum(by_decode, not_negative(arrivals, "arrivals"))


def first_computed(
    requests: PerSecond, prompt: Tokens, generated: Tokens, cached: Tokens = 0.0, hit_rate: Share = 1.0
) -> TokensPerSecond:
    r"""How many tokens per second are computed for the first time?

    .. math:: R = \lambda (p - h c + g)

    Parameters
    ----------
    requests : \lambda, requests that run [1/second]
    prompt : p, of one request [token]
    generated : g, of one request [token]
    cached : c, of the prompt of a request that hits [token]
    hit_rate : h, share of the requests that hit [1]

    Raises
    ------
    DomainError
        If an argument is negative.

    Notes
    -----
    The rate against which `thrash_evictions` holds what is computed again.

    References
    ----------
    Definition: what is neither restored nor computed before.

    Examples
    --------
    Two requests a second of 4,096 + 256 tokens, half of which hit 2,048 tokens:

    >>> print(first_computed(2.0, 4096.0, 256.0, 2048.0, 0.5))
    6656.0
    """
    hit = not_negative(hit_rate, "hit_rate") * not_negative(cached, "cached")
    return not_negative(requests, "requests") * (
        not_negative(prompt, "prompt") - hit + not_negative(generated, "generated")
    )
