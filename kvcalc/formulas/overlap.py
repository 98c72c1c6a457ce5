"""How much of a restore hides behind compute that does not depend on the pending data."""

import numpy as np

from kvcalc.formulas._domain import at_least_one, excess, not_negative
from kvcalc.quantity import Count, Seconds


def extra_wait(io: Seconds, window: Seconds) -> Seconds:
    r"""How long does compute still wait for data after the work it could do meanwhile?

    .. math:: T_{wait} = \max(0, T_{io} - W)

    Parameters
    ----------
    io : T_{io}, real time of the input and output [second]
    window : W, compute that does not depend on the pending data [second]

    Raises
    ------
    DomainError
        If an argument is negative.

    Notes
    -----
    W is named, independent work.  The whole forward pass is never such work by default, as its first
    layer already needs the first layer's KV; see `pipeline_window`.

    References
    ----------
    Definition: two activities that start together end with the longer one.

    Examples
    --------
    >>> print(extra_wait(0.050, 0.030))
    0.02
    """
    return excess(not_negative(io, "io"), not_negative(window, "window"))


def overlapped_total(remaining: Seconds, extra_wait: Seconds, serial: Seconds = 0.0) -> Seconds:
    r"""How long does a hit take when part of the restore overlaps compute?

    .. math:: T_{overlapped} = T_{remaining} + T_{wait} + T_{serial}

    Parameters
    ----------
    remaining : T_{remaining}, prefill of what the hit does not cover [second]
    extra_wait : T_{wait}, wait that no independent work hides [second]
    serial : T_{serial}, parts that cannot overlap: queue, setup, scheduling [second]

    Raises
    ------
    DomainError
        If an argument is negative.

    Notes
    -----
    With no window, `extra_wait` is the whole transfer and this is the serial sum.

    References
    ----------
    Definition: the sum of what is left on the critical path.

    Examples
    --------
    >>> print(overlapped_total(0.030, 0.020, 0.005))
    0.055
    """
    return (
        not_negative(remaining, "remaining")
        + not_negative(extra_wait, "extra_wait")
        + not_negative(serial, "serial")
    )


def pipeline_time(load: Seconds, compute: Seconds, layers: Count) -> Seconds:
    r"""How long does a hit take when each layer's KV loads while the layer before computes?

    .. math:: T = a + (L - 1) \max(a, b) + b, \qquad a = T_{load} / L, \quad b = T_{comp} / L

    Parameters
    ----------
    load : T_{load}, time to load the KV of all layers [second]
    compute : T_{comp}, time to compute the suffix over all layers [second]
    layers : L, layers, each loaded by itself [1]

    Raises
    ------
    DomainError
        If a time is negative or `layers` is below 1.

    Notes
    -----
    Equal layers.  What the wait adds to `compute` is T - T_comp: the first layer's load a, which
    nothing hides, and (L - 1) max(0, a - b).  Small pieces make `load` itself longer; see
    `effective_bandwidth`.

    References
    ----------
    Derived, and checked against a simulation of both machines.  Used by layer-wise loaders, e.g.
    Strata, https://arxiv.org/abs/2508.18572

    Examples
    --------
    >>> print(pipeline_time(0.040, 0.020, 4))
    0.045
    """
    n = at_least_one(layers, "layers")
    a, b = not_negative(load, "load") / n, not_negative(compute, "compute") / n
    return a + (n - 1) * np.maximum(a, b) + b


def pipeline_window(compute: Seconds, layers: Count) -> Seconds:
    r"""How much compute can hide a layer-by-layer load?

    .. math:: W = T_{comp} \frac{L - 1}{L}

    Parameters
    ----------
    compute : T_{comp}, time to compute the suffix over all layers [second]
    layers : L, layers, each loaded by itself [1]

    Raises
    ------
    DomainError
        If `compute` is negative or `layers` is below 1.

    Notes
    -----
    While the last layer computes nothing is left to load.  max(0, T_load - W) is what `pipeline_time`
    adds to T_comp when loading is the slower side; when it is the faster, the first layer's load
    remains.

    References
    ----------
    Derived from `pipeline_time`.

    Examples
    --------
    >>> print(pipeline_window(0.020, 4))
    0.015
    """
    n = at_least_one(layers, "layers")
    return not_negative(compute, "compute") * (n - 1) / n


def prefetch_lead(queue: Seconds, load: Seconds) -> Seconds:
    r"""How long before its KV is needed must a prefetch start?

    .. math:: T_{lead} = T_{queue} + T_{load}

    Parameters
    ----------
    queue : T_{queue}, wait for the link that few prefetches exceed, such as its 99th percentile [second]
    load : T_{load}, setup, transfer and conversion of the restore itself [second]

    Raises
    ------
    DomainError
        If an argument is negative.

    Notes
    -----
    A gap between requests, such as the think time of a user or the run of a tool, hides a restore
    when it is longer than this.  What is fetched and then not used costs the link its time all the same.

    References
    ----------
    Definition.  Public traces of coding agents show gaps of 5.2 s in the median and 81 s in the longest
    hundredth, https://vllm.ai/blog/2026-05-06-mooncake-store

    Examples
    --------
    >>> print(prefetch_lead(0.020, 0.030))
    0.05
    """
    return not_negative(queue, "queue") + not_negative(load, "load")
