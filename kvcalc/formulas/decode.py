"""How long one decode step takes, what bounds it, and what bandwidth a target throughput needs."""

from dataclasses import dataclass

import numpy as np

from kvcalc.formulas._domain import Words, not_negative, positive, refuse, share, word
from kvcalc.quantity import (
    Bytes,
    BytesPerSecond,
    Count,
    Flop,
    FlopPerSecond,
    Seconds,
    Share,
    Tokens,
    TokensPerSecond,
)

NEVER_COMPUTE_BOUND = (
    "no batch makes decode compute-bound: reading one sequence's KV takes as long as its operations or longer"
)
"""Why a critical batch does not exist."""


@dataclass(frozen=True)
class DecodeStep:
    """The two times of a decode step that run side by side; the longer one is `total`."""

    memory: Seconds  # reading weights and resident KV
    compute: Seconds  # the operations of all sequences

    @property
    def total(self) -> Seconds:
        """Time of the step."""
        return np.maximum(self.memory, self.compute)

    @property
    def bound(self) -> Words:
        """What the step waits for: ``"memory"`` or ``"compute"``."""
        return word([self.memory >= self.compute, self.memory < self.compute], ["memory", "compute"])


def decode_step_time(
    weights: Bytes,
    kv: Bytes,
    flops: Flop,
    bandwidth: BytesPerSecond,
    peak: FlopPerSecond,
    bandwidth_efficiency: Share = 1.0,
    efficiency: Share = 1.0,
) -> DecodeStep:
    r"""How long does one decode step take for the whole batch?

    .. math:: T = \max\left(\frac{W + K}{\eta_B B}, \frac{F}{\eta F_{peak}}\right)

    Parameters
    ----------
    weights : W, bytes of weights that the step reads [byte]
    kv : K, resident KV bytes of the batch, all read in every step [byte]
    flops : F, operations of the step, all sequences together [flop]
    bandwidth : B, device memory bandwidth [byte/second]
    peak : F_{peak}, dense peak rate in the dtype used [flop/second]
    bandwidth_efficiency : \eta_B, share of the bandwidth that the kernels reach [1]
    efficiency : \eta, share of the peak that the kernels reach [1]

    Raises
    ------
    DomainError
        If a byte or operation count is negative, a rate is not positive, or an efficiency is outside
        (0, 1].

    Notes
    -----
    Bytes and rates are of the same GPUs: one of them, or all of them.  Communication between GPUs is
    not counted.

    References
    ----------
    Roofline: S. Williams, A. Waterman, D. Patterson, Communications of the ACM 52 (2009) 65,
    https://doi.org/10.1145/1498765.1498785

    Examples
    --------
    >>> step = decode_step_time(16e9, 4e9, 5e11, 3.35e12, 989e12, 0.8, 0.5)
    >>> print(step.total, step.bound)
    0.007463 memory
    """
    read = not_negative(weights, "weights") + not_negative(kv, "kv")
    sustained = share(bandwidth_efficiency, "bandwidth_efficiency") * positive(bandwidth, "bandwidth")
    rate = share(efficiency, "efficiency") * positive(peak, "peak")
    return DecodeStep(memory=read / sustained, compute=not_negative(flops, "flops") / rate)


def tokens_per_second(batch: Tokens, step: Seconds) -> TokensPerSecond:
    r"""How many tokens per second does the batch generate?

    .. math:: R = \frac{b}{T}

    Parameters
    ----------
    batch : b, tokens the batch gains per step, one per sequence without speculation [token]
    step : T, time of one step [second]

    Raises
    ------
    DomainError
        If `batch` is negative or `step` is not positive.

    Notes
    -----
    With speculative decoding a sequence gains the accepted tokens plus one.

    References
    ----------
    Definition: tokens of a step over its time.

    Examples
    --------
    >>> print(tokens_per_second(32, 0.016))
    2000.0
    """
    return not_negative(batch, "batch") / positive(step, "step")


def decode_bandwidth_need(weights: Bytes, kv: Bytes, rate: TokensPerSecond, batch: Tokens) -> BytesPerSecond:
    r"""Which memory bandwidth does a target decode throughput need?

    .. math:: B_w = (W + K) \frac{R}{b}

    Parameters
    ----------
    weights : W, bytes of weights that a step reads [byte]
    kv : K, resident KV bytes of the batch, all read in every step [byte]
    rate : R, tokens per second that the whole batch must generate [token/second]
    batch : b, tokens the batch gains per step, one per sequence without speculation [token]

    Raises
    ------
    DomainError
        If an argument is negative or `batch` is not positive.

    Notes
    -----
    R / b is steps per second, and each step reads everything once: one byte of capacity costs that
    many bytes per second.

    References
    ----------
    Definition: bytes of one step times steps per second.

    Examples
    --------
    >>> print(decode_bandwidth_need(16e9, 24e9, 800.0, 32) / 1e9)
    1000.0
    """
    read = not_negative(weights, "weights") + not_negative(kv, "kv")
    return read * not_negative(rate, "rate") / positive(batch, "batch")


def critical_batch(
    weights: Bytes, kv: Bytes, flops: Flop, bandwidth: BytesPerSecond, compute: FlopPerSecond
) -> Count:
    r"""At which batch does decode turn from memory-bound to compute-bound?

    .. math:: b = \frac{W / B}{f / C - k / B}

    Parameters
    ----------
    weights : W, bytes of weights that a step reads, whatever the batch [byte]
    kv : k, resident KV bytes of one sequence [byte]
    flops : f, operations of one sequence in a step [flop]
    bandwidth : B, memory bandwidth as sustained [byte/second]
    compute : C, operation rate as sustained [flop/second]

    Raises
    ------
    DomainError
        If a byte count is negative, a rate or `flops` is not positive, or no batch is compute-bound.

    Notes
    -----
    Long contexts never get there: each further sequence brings more bytes to read than operations to
    hide them behind.

    References
    ----------
    `decode_step_time` with W + b k bytes and b f operations, both sides set equal.

    Examples
    --------
    >>> print(critical_batch(16e9, 0.0, 16e9, 3e12, 600e12))
    200.0
    """
    b = positive(bandwidth, "bandwidth")
    gap = positive(flops, "flops") / positive(compute, "compute") - not_negative(kv, "kv") / b
    return not_negative(weights, "weights") / b / refuse(gap, gap <= 0, NEVER_COMPUTE_BOUND)


def expert_coverage(tokens: Count, experts: Count, active: Count) -> Share:
    r"""What share of a layer's experts does a batch of tokens visit?

    .. math:: x = 1 - \left(1 - \frac{k}{E}\right)^b

    Parameters
    ----------
    tokens : b, tokens of the step, one per sequence without speculation [1]
    experts : E, routed experts of one layer [1]
    active : k, routed experts that one token visits [1]

    Raises
    ------
    DomainError
        If `tokens` is negative, `experts` is not positive, or `active` is outside (0, experts].

    Notes
    -----
    Assumes that tokens choose independently and evenly; real routing is skewed, which lowers it.

    References
    ----------
    The expected share of distinct experts: each one is missed by a token with probability 1 - k / E.

    Examples
    --------
    >>> print(expert_coverage(np.array([1.0, 2.0]), 8, 2))
    [0.25   0.4375]
    """
    count = positive(experts, "experts")
    k = refuse(active, (active <= 0) | (active > count), "active must lie in (0, experts]")
    missed: Share = (1 - k / count) ** not_negative(tokens, "tokens")
    return 1 - missed


def weights_read(always: Bytes, experts: Bytes, coverage: Share) -> Bytes:
    r"""How many bytes of weights does one step of a mixture of experts read?

    .. math:: W = W_0 + x W_E

    Parameters
    ----------
    always : W_0, weights that every step reads: attention, shared experts, dense layers, head [byte]
    experts : W_E, weights of all routed experts [byte]
    coverage : x, share of the routed experts that the batch visits [1]

    Raises
    ------
    DomainError
        If an argument is negative or `coverage` is above 1.

    Notes
    -----
    Small batches read few experts, so a mixture decodes a single sequence fast and a batch slowly.

    References
    ----------
    Definition, with `expert_coverage`.

    Examples
    --------
    >>> print(weights_read(4e9, 90e9, 0.25))
    26500000000.0
    """
    x = refuse(coverage, (coverage < 0) | (coverage > 1), "coverage must lie in [0, 1]")
    return not_negative(always, "always") + x * not_negative(experts, "experts")
