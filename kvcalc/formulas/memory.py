"""What a forward pass needs besides weights and KV, and what is left for KV."""

import numpy as np

from kvcalc.formulas._domain import not_negative, positive, select, share
from kvcalc.quantity import Bytes, Count, Share, Tokens

LOGIT_BYTES = 6
"""Bytes per logit [byte]: one 16-bit value from the output head and its fp32 copy for the sampler."""

MIB = 2**20
"""Bytes of a mebibyte [byte]."""

# What SGLang leaves out of its static share; the source is that of `static_share`.
_FIXED = 512 * MIB  # context and libraries [byte]
_PER_TOKEN = 1.5 * MIB  # activations of a prefill chunk [byte/token]
_SMALLEST_CHUNK = 2048  # tokens that every chunk counts as at least
_PER_GRAPH = 2 * MIB  # of each sequence in the largest captured batch [byte]
_PER_RANK = 128 * MIB  # communication buffers [byte]
_LARGE_DEVICE = 60 * 1024 * MIB  # memory above which the least is left out [byte]
_LEAST_LEFT_OUT = 10 * 1024 * MIB  # on a large device [byte]


def activation_bytes(
    tokens: Tokens, hidden: Count, width: Count, element: Bytes, tp: Count = 1.0, experts: Count = 0.0
) -> Bytes:
    r"""How much memory do the activations of one forward pass over so many tokens take at their peak?

    .. math:: A = n\, e\, \left( 4 d + \max\left(\frac{2 f}{t},\, k d\right) + \frac{f}{t} \right)

    Parameters
    ----------
    tokens : n, tokens of the batch, at most what the engine schedules in one step [token]
    hidden : d, hidden size [1]
    width : f, intermediate width that one token passes through: of a dense MLP, or of its experts [1]
    element : e, bytes per activation [byte]
    tp : t, ranks that share each layer [1]
    experts : k, routed experts that one token passes through; 0 for a dense MLP [1]

    Raises
    ------
    DomainError
        If an argument is negative, or `tp` is not positive.

    Notes
    -----
    The peak stands inside the MLP: gate, up and their product of the width, beside the residual stream,
    its normed copy, the attention output and the MLP output.  Routed experts each return a vector of
    the hidden size before these are summed; it takes the place of gate and up, which are spent by then.
    Attention scores are never materialized by the fused kernels that engines use.  Allocator slack and
    workspaces come on top.

    References
    ----------
    Derived by counting the live tensors of a gated MLP block, and the workspaces of vLLM's fused experts.

    Examples
    --------
    Llama-3.1-8B, 8,192 tokens in bf16:

    >>> print(activation_bytes(8192, 4096, 14336, 2) / 2**30)
    0.906

    Eight experts of width 1,536 each and a hidden size of 3,072, cut four ways:

    >>> print(activation_bytes(8192, 3072, 8 * 1536, 2, tp=4, experts=8) / 2**30)
    0.609
    """
    d, cut = not_negative(hidden, "hidden"), not_negative(width, "width") / positive(tp, "tp")
    per_token = 4 * d + np.maximum(2 * cut, not_negative(experts, "experts") * d) + cut
    return not_negative(tokens, "tokens") * not_negative(element, "element") * per_token


def logits_bytes(sequences: Count, vocabulary: Count, per_logit: Bytes = LOGIT_BYTES) -> Bytes:
    r"""How much memory do the logits of one step take?

    .. math:: L = c\, s\, V

    Parameters
    ----------
    sequences : s, sequences that sample a token in the step [1]
    vocabulary : V, rows of the output head [1]
    per_logit : c, bytes of all copies of a logit that live at once [byte]

    Raises
    ------
    DomainError
        If an argument is negative.

    Notes
    -----
    Every rank gathers the logits of the whole vocabulary, in 16 bits and again in fp32 for the sampler.
    A sampler that sorts them for top-p holds five times that while it does.

    References
    ----------
    Derived; `LOGIT_BYTES` states the two copies.

    Examples
    --------
    >>> print(logits_bytes(256, 128256) / 2**20)
    187.9
    """
    cells = not_negative(sequences, "sequences") * not_negative(vocabulary, "vocabulary")
    return not_negative(per_logit, "per_logit") * cells


def static_share(total: Bytes, chunk: Tokens, graph_batch: Count, ranks: Count = 1.0) -> Share:
    r"""Which share of the memory does SGLang give to weights and KV when nobody says?

    .. math:: u = 1 - \frac{2^{20}\, (512 + 1.5\, n + 2\, b + 128\, r)}{M}

    Parameters
    ----------
    total : M, memory that the driver reports [byte]
    chunk : n, tokens of a prefill chunk, counted as 2,048 at least [token]
    graph_batch : b, largest batch for which a CUDA graph is captured [1]
    ranks : r, ranks of tensor and pipeline parallelism together [1]

    Raises
    ------
    DomainError
        If `total` is not positive, another argument is negative, or nothing is left.

    Notes
    -----
    `mem_fraction_static` of SGLang: activations and graphs live in the rest, whatever they need.  The
    sum in the equation is in MiB, and at least 10 GiB where M is more than 60 GiB.

    References
    ----------
    SGLang, `python/sglang/srt/server_args.py`, since its pull request 10975.

    Examples
    --------
    An H100, chunks of 8,192 tokens and graphs up to a batch of 256: 13,440 of 81,559 MiB are left out.

    >>> print(static_share(81559 * 2**20, 8192, 256))
    0.835
    """
    needed = _FIXED + _PER_TOKEN * np.maximum(not_negative(chunk, "chunk"), _SMALLEST_CHUNK)
    needed = needed + _PER_GRAPH * not_negative(graph_batch, "graph_batch")
    needed = needed + _PER_RANK * not_negative(ranks, "ranks")
    large = positive(total, "total") > _LARGE_DEVICE
    left_out = select(large, np.maximum(needed, _LEAST_LEFT_OUT), needed)
    return share(1 - left_out / total, "what is left of total")


def kv_pool(
    total: Bytes, utilization: Share, weights: Bytes, activations: Bytes, overhead: Bytes = 0.0
) -> Bytes:
    r"""What is left for KV when the engine may use a share of the memory?

    .. math:: P = \max(0,\; u\, M - W - A - O)

    Parameters
    ----------
    total : M, memory that programs can have: what the driver reports less what it keeps [byte]
    utilization : u, share of it that the engine may use [1]
    weights : W, weights of one rank [byte]
    activations : A, peak activations and logits [byte]
    overhead : O, context, captured graphs and communication buffers [byte]

    Raises
    ------
    DomainError
        If `total` is not positive, `utilization` is outside (0, 1], or another argument is negative.

    Notes
    -----
    Zero when the weights alone do not fit: then nothing can be served.

    References
    ----------
    The rule by which vLLM sizes its cache at start-up; other engines differ in what they subtract.

    Examples
    --------
    >>> print(kv_pool(80e9, 0.9, 16e9, 2e9, 1e9) / 1e9)
    53.0
    """
    allowed = positive(total, "total") * share(utilization, "utilization")
    used = not_negative(weights, "weights") + not_negative(activations, "activations")
    return np.maximum(0.0, allowed - used - not_negative(overhead, "overhead"))
