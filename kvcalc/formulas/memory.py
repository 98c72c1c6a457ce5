"""What a forward pass needs besides weights and KV, and what is left for KV."""

import numpy as np

from kvcalc.formulas._domain import not_negative, positive, share
from kvcalc.quantity import Bytes, Count, Share, Tokens

LOGIT_BYTES = 6
"""Bytes per logit [byte]: one 16-bit value from the output head and its fp32 copy for the sampler."""


def activation_bytes(tokens: Tokens, hidden: Count, width: Count, element: Bytes, tp: Count = 1.0) -> Bytes:
    r"""How much memory do the activations of one forward pass over so many tokens take at their peak?

    .. math:: A = n\, e\, \left( 4 d + \frac{3 f}{t} \right)

    Parameters
    ----------
    tokens : n, tokens of the batch, at most what the engine schedules in one step [token]
    hidden : d, hidden size [1]
    width : f, intermediate width that one token passes through: of a dense MLP, or of its experts [1]
    element : e, bytes per activation [byte]
    tp : t, ranks that share each layer [1]

    Raises
    ------
    DomainError
        If an argument is negative, or `tp` is not positive.

    Notes
    -----
    The peak stands inside the MLP: gate, up and their product of the width, beside the residual stream,
    its normed copy, the attention output and the MLP output.  Attention scores are never materialized
    by the fused kernels that engines use.  Allocator slack and workspaces come on top.

    References
    ----------
    Derived by counting the live tensors of a gated MLP block.

    Examples
    --------
    Llama-3.1-8B, 8,192 tokens in bf16:

    >>> print(activation_bytes(8192, 4096, 14336, 2) / 2**30)
    0.906
    """
    per_token = 4 * not_negative(hidden, "hidden") + 3 * not_negative(width, "width") / positive(tp, "tp")
    return not_negative(tokens, "tokens") * not_negative(element, "element") * per_token


def logits_bytes(sequences: Count, vocabulary: Count) -> Bytes:
    r"""How much memory do the logits of one step take?

    .. math:: L = 6\, s\, V

    Parameters
    ----------
    sequences : s, sequences that sample a token in the step [1]
    vocabulary : V, rows of the output head [1]

    Raises
    ------
    DomainError
        If an argument is negative.

    Notes
    -----
    Every rank gathers the logits of the whole vocabulary, in 16 bits and again in fp32 for the sampler.

    References
    ----------
    Derived; `LOGIT_BYTES` states the two copies.

    Examples
    --------
    >>> print(logits_bytes(256, 128256) / 2**20)
    187.9
    """
    return LOGIT_BYTES * not_negative(sequences, "sequences") * not_negative(vocabulary, "vocabulary")


def kv_pool(
    total: Bytes, utilization: Share, weights: Bytes, activations: Bytes, overhead: Bytes = 0.0
) -> Bytes:
    r"""What is left for KV when the engine may use a share of the memory?

    .. math:: P = \max(0,\; u\, M - W - A - O)

    Parameters
    ----------
    total : M, memory that the driver reports, not the marketed figure [byte]
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
