"""A prefill that runs in steps of one chunk."""

from kvcalc.formulas._domain import not_negative
from kvcalc.quantity import Seconds


def chunked_prefill_time(whole: Seconds, last: Seconds) -> Seconds:
    r"""How long does a prefill take that runs in steps of one chunk?

    .. math:: T = T_{whole} + T_{last}

    Parameters
    ----------
    whole : T_{whole}, the steps of whole chunks before the last one, together [second]
    last : T_{last}, the last step, with what a prefill takes once [second]

    Raises
    ------
    DomainError
        If an argument is negative.

    Notes
    -----
    Steps of one prompt run one after the other: each attends to the KV that those before it wrote.
    Each reads the weights again, so that small chunks cost more than one large one.

    References
    ----------
    A. Agrawal et al., "Taming Throughput-Latency Tradeoff in LLM Inference with Sarathi-Serve", OSDI 2024,
    https://arxiv.org/abs/2403.02310

    Examples
    --------
    Whole chunks of 0.79 s and a last one of 0.57 s:

    >>> print(round(chunked_prefill_time(0.79, 0.57), 3))
    1.36
    """
    return not_negative(whole, "whole") + not_negative(last, "last")
