"""What it takes to stream KV from an outer tier in every decode step.

This is the active working set: traffic comes with every token, unlike a prefix store, whose traffic
comes once per hit.  The bytes per step are the need beyond the device's capacity, `capacity_shortfall`.
"""

import numpy as np

from kvcalc.formulas._domain import not_negative, positive
from kvcalc.formulas.transfer import burst_time
from kvcalc.quantity import Bytes, BytesPerSecond, Seconds


def streaming_step_time(compute: Seconds, streamed: Bytes, bandwidth: BytesPerSecond) -> Seconds:
    r"""How long does a decode step take when part of its KV comes from an outer tier?

    .. math:: T = \max\left(T_c, \frac{D}{B}\right)

    Parameters
    ----------
    compute : T_c, time of the step if all KV were resident [second]
    streamed : D, bytes that the step reads from the outer tier [byte]
    bandwidth : B, sustained rate of the path to that tier [byte/second]

    Raises
    ------
    DomainError
        If `bandwidth` is not positive or another argument is negative.

    Notes
    -----
    The best case, with streaming wholly hidden behind the step.  It can never be below D / B.

    References
    ----------
    Definition: two activities that run side by side end with the longer one.

    Examples
    --------
    >>> print(streaming_step_time(0.010, 4e9, 50e9))
    0.08
    """
    return np.maximum(not_negative(compute, "compute"), burst_time(streamed, bandwidth))


def streaming_bandwidth(streamed: Bytes, step: Seconds) -> BytesPerSecond:
    r"""Which bandwidth keeps a decode step at this time although part of its KV is outside?

    .. math:: B = \frac{D}{T}

    Parameters
    ----------
    streamed : D, bytes that the step reads from the outer tier [byte]
    step : T, time that the step may take [second]

    Raises
    ------
    DomainError
        If `streamed` is negative or `step` is not positive.

    Notes
    -----
    Compare it with what the path sustains for pieces of the size the engine reads.

    References
    ----------
    `streaming_step_time` solved for the bandwidth.

    Examples
    --------
    >>> print(streaming_bandwidth(4e9, 0.010) / 1e9)
    400.0
    """
    return not_negative(streamed, "streamed") / positive(step, "step")
