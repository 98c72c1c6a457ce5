"""Computing one part of a prefix while the other part is loaded."""

import numpy as np

from kvcalc.formulas._domain import not_negative, positive
from kvcalc.quantity import (
    BytesPerSecond,
    BytesPerToken,
    Count,
    Seconds,
    SecondsPerToken,
    SecondsPerTokenSquared,
    Share,
    Tokens,
)


def partial_split(
    tokens: Tokens,
    bytes_per_token: BytesPerToken,
    bandwidth: BytesPerSecond,
    linear: SecondsPerToken,
    quadratic: SecondsPerTokenSquared = 0.0,
    overhead: Seconds = 0.0,
) -> Tokens:
    r"""How many tokens to compute from the front, so that loading the rest ends at the same time?

    .. math:: r = \frac{2 e}{g + \sqrt{g^2 + 4 \beta e}}, \qquad g = \alpha + \frac{\kappa}{B},
              \quad e = T_{overhead} + \frac{\kappa n}{B}

    Parameters
    ----------
    tokens : n, tokens of the prefix [token]
    bytes_per_token : \kappa, KV bytes of one token, all layers [byte/token]
    bandwidth : B, rate of the path for pieces of the size it really moves [byte/second]
    linear : \alpha, prefill seconds per token without attention [second/token]
    quadratic : \beta, prefill seconds per token squared, from attention [second/token**2]
    overhead : T_{overhead}, fixed time before the first byte arrives [second]

    Raises
    ------
    DomainError
        If `bandwidth` or `linear` is not positive or another argument is negative.

    Notes
    -----
    At most `tokens`: then everything is computed before the first byte could arrive.  The front is
    computed because under causal attention early tokens are the cheap ones.  Loading takes nothing
    from the GPU here; a shared GPU raises `linear` and `quadratic`.

    References
    ----------
    Cake: https://arxiv.org/abs/2410.03065.  The positive root of
    α r + β r² = T_overhead + κ (n - r) / B, written without cancellation.

    Examples
    --------
    A path as fast as recomputing halves the work:

    >>> print(partial_split(10_000, 1e5, 2e9, 5e-5))
    5000.0
    """
    kappa, b = not_negative(bytes_per_token, "bytes_per_token"), positive(bandwidth, "bandwidth")
    n, beta = not_negative(tokens, "tokens"), not_negative(quadratic, "quadratic")
    g = positive(linear, "linear") + kappa / b
    end = not_negative(overhead, "overhead") + kappa * n / b
    return np.minimum(2 * end / (g + np.sqrt(g * g + 4 * beta * end)), n)


def polynomial_prefill(
    tokens: Tokens, linear: SecondsPerToken, quadratic: SecondsPerTokenSquared = 0.0
) -> Seconds:
    r"""How long does a prefill take by a fitted linear and quadratic term?

    .. math:: T = \alpha n + \beta n^2

    Parameters
    ----------
    tokens : n, tokens to compute [token]
    linear : \alpha, seconds per token without attention [second/token]
    quadratic : \beta, seconds per token squared, from attention [second/token**2]

    Raises
    ------
    DomainError
        If an argument is negative.

    Notes
    -----
    With α = 2 P / (η F_peak) and β = 2 L h d / (η F_peak) this is `prefill_time` of full attention, but
    for the diagonal.

    References
    ----------
    The leading terms of `prefill_flops`; a form that two measured times suffice to fit.

    Examples
    --------
    >>> print(polynomial_prefill(10_000, 27e-6, 2.6e-10))
    0.296
    """
    n = not_negative(tokens, "tokens")
    return n * not_negative(linear, "linear") + n * n * not_negative(quadratic, "quadratic")


def activation_share(hidden: Count, kv: Count) -> Share:
    r"""How large is a token's hidden state, of which KV could be computed on arrival, against its KV?

    .. math:: x = \frac{d_{model}}{e_{kv}}

    Parameters
    ----------
    hidden : d_{model}, elements of the hidden state of one token [1]
    kv : e_{kv}, elements of KV of one token in one layer [1]

    Raises
    ------
    DomainError
        If an argument is not positive.

    Notes
    -----
    Sending hidden states instead of KV saves bytes only below 1.  With as many KV heads as query heads
    it is one half; grouped KV heads bring it above 1.  Both are taken to be stored in one precision.

    References
    ----------
    KVPR: https://arxiv.org/abs/2411.17089

    Examples
    --------
    Llama 2 7B has 32 KV heads of 128, Llama 3.1 8B has 8:

    >>> print(activation_share(4096, 2 * 32 * 128), activation_share(4096, 2 * 8 * 128))
    0.5 2.0
    """
    return positive(hidden, "hidden") / positive(kv, "kv")
