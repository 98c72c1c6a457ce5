"""How much a prefill computes, and how long that takes.

The count is exact and causal: a token at position p attends to itself and to what its attention kind
still sees of the tokens before it.  One function an attention kind counts these entries;
`attention_flops` turns them into operations.
"""

import numpy as np

from kvcalc.formulas._domain import not_negative, positive, share
from kvcalc.quantity import (
    Bytes,
    BytesPerSecond,
    Count,
    Flop,
    FlopPerSecond,
    FlopPerToken,
    Seconds,
    Share,
    Tokens,
)

FLOP_PER_MULTIPLY_ADD = 2.0
"""Floating point operations [flop] of one multiply-add, by the convention of vendors' peak figures."""


def full_entries(new: Tokens, cached: Tokens = 0.0) -> Count:
    r"""How many entries do new tokens attend to under full causal attention?

    .. math:: E = m c + \frac{m (m + 1)}{2}

    Parameters
    ----------
    new : m, tokens to compute [token]
    cached : c, tokens before them whose KV is there [token]

    Raises
    ------
    DomainError
        If an argument is negative.

    Notes
    -----
    Summed over the new tokens; each attends to itself too.  The count is additive: the entries of a
    whole prompt are those of its prefix plus those of its suffix on that prefix.

    References
    ----------
    The sum of c + i over i = 1 ... m.

    Examples
    --------
    >>> print(full_entries(3, 10))
    36.0
    """
    m = not_negative(new, "new")
    return m * not_negative(cached, "cached") + m * (m + 1) / 2


def capped_entries(new: Tokens, cap: Tokens, cached: Tokens = 0.0) -> Count:
    r"""How many entries do new tokens attend to when each sees at most so many?

    .. math:: E = F(c + m) - F(c), \qquad F(n) = \frac{k (k + 1)}{2} + (n - k) w, \quad k = \min(n, w)

    Parameters
    ----------
    new : m, tokens to compute [token]
    cap : w, most entries one token attends to: a sliding window, or the top k of sparse attention [token]
    cached : c, tokens before them whose KV is there [token]

    Raises
    ------
    DomainError
        If `new` or `cached` is negative or `cap` is not positive.

    Notes
    -----
    A token at position p attends to min(p, w) entries, itself among them.  Sparse attention also
    scores all entries with its indexer, which is `full_entries` with the indexer's own dimensions.

    References
    ----------
    The sum of min(p, w) over the positions p = c + 1 ... c + m.

    Examples
    --------
    >>> print(capped_entries(4, 3))
    9.0
    """
    c, w = not_negative(cached, "cached"), positive(cap, "cap")
    return _capped(c + not_negative(new, "new"), w) - _capped(c, w)


def _capped(n: Tokens, w: Tokens) -> Count:
    k: Tokens = np.minimum(n, w)
    # Where n > k, min(n, w) is w; elsewhere it keeps 0 x w a zero for an infinite w.
    return k * (k + 1) / 2 + (n - k) * np.minimum(n, w)


def chunked_entries(new: Tokens, chunk: Tokens, cached: Tokens = 0.0) -> Count:
    r"""How many entries do new tokens attend to when attention starts afresh at every chunk?

    .. math:: E = F(c + m) - F(c), \qquad F(n) = q \frac{C (C + 1)}{2} + \frac{r (r + 1)}{2},
              \quad n = q C + r

    Parameters
    ----------
    new : m, tokens to compute [token]
    chunk : C, tokens of one attention chunk [token]
    cached : c, tokens before them whose KV is there [token]

    Raises
    ------
    DomainError
        If `new` or `cached` is negative or `chunk` is not positive.

    Notes
    -----
    A token sees itself and the tokens before it in its own chunk (Llama 4's local layers).  This is the
    chunk of the attention, not the one in which an engine schedules a prefill.

    References
    ----------
    The sum of ((p - 1) mod C) + 1 over the positions p = c + 1 ... c + m.

    Examples
    --------
    >>> print(chunked_entries(5, 3))
    9.0
    """
    c, size = not_negative(cached, "cached"), positive(chunk, "chunk")
    return _chunked(c + not_negative(new, "new"), size) - _chunked(c, size)


def _chunked(n: Tokens, chunk: Tokens) -> Count:
    whole = n // chunk
    rest = n - whole * chunk
    return whole * chunk * (chunk + 1) / 2 + rest * (rest + 1) / 2


def strided_entries(new: Tokens, stride: Tokens, cached: Tokens = 0.0, cap: Count = float("inf")) -> Count:
    r"""How many compressed entries do new tokens attend to, with one entry per `stride` tokens?

    .. math:: E = F(c + m) - F(c), \qquad F(n) = s \frac{q (q - 1)}{2} + q (r + 1) + k \max(0, n - s k),
              \quad \min(n, s k) = q s + r

    Parameters
    ----------
    new : m, tokens to compute [token]
    stride : s, tokens that one compressed entry stands for [token]
    cached : c, tokens before them whose KV is there [token]
    cap : k, most compressed entries one token attends to [1]

    Raises
    ------
    DomainError
        If `new` or `cached` is negative, or `stride` or `cap` is not positive.

    Notes
    -----
    A token at position p attends to min(floor(p / s), k) compressed entries; the uncompressed ones near
    it are a window of their own.

    References
    ----------
    The sum of min(floor(p / s), k) over the positions p = c + 1 ... c + m.

    Examples
    --------
    >>> print(strided_entries(5, 2))
    6.0
    """
    c, s, k = not_negative(cached, "cached"), positive(stride, "stride"), positive(cap, "cap")
    return _strided(c + not_negative(new, "new"), s, k) - _strided(c, s, k)


def _strided(n: Tokens, stride: Tokens, cap: Count) -> Count:
    growing = np.minimum(n, stride * cap)
    whole = growing // stride
    rest = growing - whole * stride
    # As in _capped, the minimum only keeps 0 x an infinite cap a zero.
    return stride * whole * (whole - 1) / 2 + whole * (rest + 1) + (n - growing) * np.minimum(n, cap)


def attention_flops(
    entries: Count, layers: Count, query_heads: Count, key_dim: Count, value_dim: Count
) -> Flop:
    r"""How many operations does attention take over so many attended entries?

    .. math:: F_{att} = 2 L h (d_{qk} + d_v) E

    Parameters
    ----------
    entries : E, entries attended to in one layer, summed over the queries [1]
    layers : L, layers of this kind [1]
    query_heads : h, query heads of one layer [1]
    key_dim : d_{qk}, width of one query-key product [1]
    value_dim : d_v, width of one value; 0 for an indexer, which only scores [1]

    Raises
    ------
    DomainError
        If an argument is negative.

    Notes
    -----
    Counts the two matrix products, not the softmax.  MLA prefills with expanded heads (192 and 128 for
    DeepSeek) and decodes with latent ones (576 and 512).

    References
    ----------
    One multiply-add for each element of a query-key and of a weight-value product.  With d_qk = d_v = d
    it agrees with the 2 L n h d per token of J. Kaplan et al., https://arxiv.org/abs/2001.08361, whose
    queries see half the context on average.

    Examples
    --------
    >>> print(attention_flops(full_entries(1000), 32, 32, 128, 128))
    262406144000.0
    """
    width = not_negative(key_dim, "key_dim") + not_negative(value_dim, "value_dim")
    heads = not_negative(layers, "layers") * not_negative(query_heads, "query_heads")
    return FLOP_PER_MULTIPLY_ADD * heads * width * not_negative(entries, "entries")


def dense_flop_per_token(parameters: Count) -> FlopPerToken:
    r"""How many operations do a model's weights take per token?

    .. math:: f = 2 P

    Parameters
    ----------
    parameters : P, active parameters without the input embedding [1]

    Raises
    ------
    DomainError
        If `parameters` is negative.

    Notes
    -----
    For a mixture of experts P counts the experts a token visits.  The output head works once per
    sequence in prefill, so leave it out there too.

    References
    ----------
    J. Kaplan et al., Scaling laws for neural language models (2020),
    https://arxiv.org/abs/2001.08361

    Examples
    --------
    >>> print(dense_flop_per_token(7e9))
    14000000000.0
    """
    return FLOP_PER_MULTIPLY_ADD * not_negative(parameters, "parameters")


def state_flop_per_token(
    layers: Count, heads: Count, key_dim: Count, value_dim: Count, passes: Count = 2.0
) -> FlopPerToken:
    r"""How many operations do layers with a recurrent state take per token?

    .. math:: f_{state} = 2 p L h d_k d_v

    Parameters
    ----------
    layers : L, layers with a state [1]
    heads : h, heads, each with a state of its own [1]
    key_dim : d_k, rows of one state [1]
    value_dim : d_v, columns of one state [1]
    passes : p, multiply-adds per state element: 2 to update and read, 3 with the delta rule [1]

    Raises
    ------
    DomainError
        If an argument is negative.

    Notes
    -----
    Constant per token, whatever the context.  Kernels that work chunk by chunk compute more, in
    exchange for matrix products.

    References
    ----------
    S = S + k v and y = q S, one multiply-add each per element; the delta rule also reads k S first:
    S. Yang et al., https://arxiv.org/abs/2406.06484

    Examples
    --------
    >>> print(state_flop_per_token(36, 32, 128, 128, passes=3))
    113246208.0
    """
    state = not_negative(key_dim, "key_dim") * not_negative(value_dim, "value_dim")
    count = not_negative(layers, "layers") * not_negative(heads, "heads") * state
    return FLOP_PER_MULTIPLY_ADD * not_negative(passes, "passes") * count


def prefill_flops(new: Tokens, flop_per_token: FlopPerToken, attention: Flop = 0.0) -> Flop:
    r"""How many operations does it take to prefill so many new tokens?

    .. math:: F = f m + F_{att}

    Parameters
    ----------
    new : m, tokens to compute [token]
    flop_per_token : f, of weights and recurrent states, which do not grow with the context [flop/token]
    attention : F_{att}, of attention, summed over the kinds of layers [flop]

    Raises
    ------
    DomainError
        If an argument is negative.

    Notes
    -----
    At 100,000 tokens attention is about 65 % of the operations of an 8B model: a linear estimate of a
    long prefill is wrong by a factor of three.

    References
    ----------
    The sum of `dense_flop_per_token` and `attention_flops`.

    Examples
    --------
    >>> print(prefill_flops(1000, 14e9, attention_flops(full_entries(1000), 32, 32, 128, 128)))
    14262406144000.0
    """
    dense = not_negative(new, "new") * not_negative(flop_per_token, "flop_per_token")
    return dense + not_negative(attention, "attention")


def prefill_time(
    flops: Flop,
    peak: FlopPerSecond,
    efficiency: Share,
    read: Bytes = 0.0,
    bandwidth: BytesPerSecond = float("inf"),
    fixed: Seconds = 0.0,
    attention: Flop = 0.0,
    attention_peak: FlopPerSecond = float("inf"),
    attention_efficiency: Share = 1.0,
) -> Seconds:
    r"""How long does a prefill take?

    .. math:: T = \max\left(\frac{F}{\eta F_{peak}} + \frac{F_{att}}{\eta_{att} F_{peak,att}},
              \frac{W}{B}\right) + T_{fixed}

    Parameters
    ----------
    flops : F, operations of matrix products; of all the prefill where `attention` is left out [flop]
    peak : F_{peak}, dense peak rate in the dtype used, of all GPUs together [flop/second]
    efficiency : \eta, share of the peak that matrix products reach, 0 < η <= 1 [1]
    read : W, bytes read at least once: the weights, and the cached KV of a prefix [byte]
    bandwidth : B, device memory bandwidth of all GPUs together [byte/second]
    fixed : T_{fixed}, scheduling, launch, sampling, and waiting for other ranks [second]
    attention : F_{att}, operations of attention, where they have an efficiency of their own [flop]
    attention_peak : F_{peak,att}, dense peak rate that attention is measured against [flop/second]
    attention_efficiency : \eta_{att}, share of it that attention reaches, 0 < η_att <= 1 [1]

    Raises
    ------
    DomainError
        If a peak or `bandwidth` is not positive, an efficiency is outside (0, 1], or another argument is
        negative.

    Notes
    -----
    With the operations of n - c new tokens on c cached ones it is T_suffix(n - c | c); with c = 0 the
    full prefill T(n).  The efficiencies are the uncertain inputs: pass arrays of low, middle and high.
    Public measurements imply 0.57 to 0.63 for an 8B model on H100 in bf16, of products and attention
    alike; on other GPUs the two differ, and many setups reach far less.

    References
    ----------
    Roofline: S. Williams, A. Waterman, D. Patterson, Communications of the ACM 52 (2009) 65,
    https://doi.org/10.1145/1498765.1498785.  Efficiency implied by
    https://blog.vllm.ai/2026/04/22/fp8-kvcache.html

    Examples
    --------
    1.4e13 operations on 989 TFLOP/s at three efficiencies, in milliseconds:

    >>> print(1e3 * prefill_time(1.4e13, 989e12, np.array([0.45, 0.55, 0.65])))
    [31.457 25.738 21.778]
    """
    products = not_negative(flops, "flops") / (share(efficiency, "efficiency") * positive(peak, "peak"))
    reached = share(attention_efficiency, "attention_efficiency") * positive(attention_peak, "attention_peak")
    memory = not_negative(read, "read") / positive(bandwidth, "bandwidth")
    compute = products + not_negative(attention, "attention") / reached
    return np.maximum(compute, memory) + not_negative(fixed, "fixed")
