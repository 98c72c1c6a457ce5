"""Does the load fit in the device, and does it run out of bytes or of bytes per second first?"""

import numpy as np

from kvcalc.formulas._domain import Words, ceil_div, excess, not_negative, positive, select, word
from kvcalc.formulas.transfer import burst_time
from kvcalc.quantity import Bytes, BytesPerSecond, Count, Seconds, Share

TIE_TOLERANCE = 1e-9
"""Relative difference [1] below which two utilizations are one number computed in two ways."""


def sequences_of_replica(sequences: Count, replicas: Count = 1.0) -> Count:
    r"""How many sequences does the fullest replica hold?

    .. math:: n = \left\lceil \frac{N}{d} \right\rceil

    Parameters
    ----------
    sequences : N, over all replicas [1]
    replicas : d, data-parallel replicas [1]

    Raises
    ------
    DomainError
        If `sequences` is negative or `replicas` is not positive.

    Notes
    -----
    Routing that spreads sequences evenly; one that does not leaves more on some replica.

    References
    ----------
    Definition.

    Examples
    --------
    >>> print(sequences_of_replica(33.0, 8.0))
    5.0
    """
    return np.ceil(not_negative(sequences, "sequences") / positive(replicas, "replicas"))


def capacity_utilization(need: Bytes, capacity: Bytes) -> Share:
    r"""What share of the device's KV capacity does the load need?

    .. math:: u_C = \frac{C_w}{C_d}

    Parameters
    ----------
    need : C_w, bytes that the target concurrency must keep at once [byte]
    capacity : C_d, bytes that the device leaves for KV [byte]

    Raises
    ------
    DomainError
        If `need` is negative or `capacity` is not positive.

    Notes
    -----
    Above 1 the load does not fit, whatever the bandwidth.

    References
    ----------
    Definition: bytes needed over bytes available.

    Examples
    --------
    >>> print(capacity_utilization(30e9, 80e9))
    0.375
    """
    return not_negative(need, "need") / positive(capacity, "capacity")


def bandwidth_utilization(need: BytesPerSecond, bandwidth: BytesPerSecond) -> Share:
    r"""What share of the device's bandwidth does the load need?

    .. math:: u_B = \frac{B_w}{B_d}

    Parameters
    ----------
    need : B_w, bytes per second that the target throughput moves over one path [byte/second]
    bandwidth : B_d, what that path sustains under the same access pattern [byte/second]

    Raises
    ------
    DomainError
        If `need` is negative or `bandwidth` is not positive.

    Notes
    -----
    Above 1 the target throughput is out of reach, however many bytes are free.

    References
    ----------
    Definition: bytes per second needed over bytes per second sustained.

    Examples
    --------
    >>> print(bandwidth_utilization(1000e9, 2000e9))
    0.5
    """
    return not_negative(need, "need") / positive(bandwidth, "bandwidth")


def capacity_shortfall(need: Bytes, capacity: Bytes) -> Bytes:
    r"""How many bytes are missing?

    .. math:: S_C = \max(0, C_w - C_d)

    Parameters
    ----------
    need : C_w, bytes that the target concurrency must keep at once [byte]
    capacity : C_d, bytes that the device leaves for KV [byte]

    Raises
    ------
    DomainError
        If `need` or `capacity` is negative.

    Notes
    -----
    Zero when the load fits.  The same number is what an outer tier must hold, or stream every step.

    References
    ----------
    Definition: the part of the need that exceeds the budget.

    Examples
    --------
    >>> print(capacity_shortfall(200e9, 80e9))
    120000000000.0
    """
    return excess(not_negative(need, "need"), not_negative(capacity, "capacity"))


def bandwidth_shortfall(need: BytesPerSecond, bandwidth: BytesPerSecond) -> BytesPerSecond:
    r"""How many bytes per second are missing?

    .. math:: S_B = \max(0, B_w - B_d)

    Parameters
    ----------
    need : B_w, bytes per second that the target throughput moves over one path [byte/second]
    bandwidth : B_d, what that path sustains under the same access pattern [byte/second]

    Raises
    ------
    DomainError
        If `need` or `bandwidth` is negative.

    Notes
    -----
    Zero when the path is fast enough.

    References
    ----------
    Definition: the part of the need that exceeds the budget.

    Examples
    --------
    >>> print(bandwidth_shortfall(3000e9, 2000e9))
    1000000000000.0
    """
    return excess(not_negative(need, "need"), not_negative(bandwidth, "bandwidth"))


def sessions_that_fit(capacity: Bytes, session: Bytes) -> Count:
    r"""How many whole sessions fit?

    .. math:: N = \left\lfloor \frac{C_d}{C_s} \right\rfloor

    Parameters
    ----------
    capacity : C_d, bytes that the device leaves for KV [byte]
    session : C_s, bytes that one session reserves at its longest [byte]

    Raises
    ------
    DomainError
        If `capacity` is negative or `session` is not positive.

    Notes
    -----
    Count reserved bytes for `session`, page rounding included: payload bytes promise too many.
    N sessions fit in N times the bytes of one, also where the quotient is rounded below N.

    References
    ----------
    Definition: whole sessions only, since half a session serves nobody.

    Examples
    --------
    >>> print(sessions_that_fit(80e9, 3e9))
    26.0
    >>> print(1.0 // 0.1, sessions_that_fit(1.0, 0.1))
    9.0 10.0
    """
    space, one = not_negative(capacity, "capacity"), positive(session, "session")
    count = space // one
    return select((count + 1) * one <= space, count + 1, count)


def sessions_short(need: Bytes, capacity: Bytes, session: Bytes) -> Count:
    r"""How many whole sessions must go until the rest fits?

    .. math:: N_S = \left\lceil \frac{\max(0, C_w - C_d)}{C_s} \right\rceil

    Parameters
    ----------
    need : C_w, bytes that the target concurrency must keep at once [byte]
    capacity : C_d, bytes that the device leaves for KV [byte]
    session : C_s, bytes that one session reserves at its longest [byte]

    Raises
    ------
    DomainError
        If `need` or `capacity` is negative, or `session` is not positive.

    Notes
    -----
    Rounded up: one missing byte costs a whole session.

    References
    ----------
    Definition: `capacity_shortfall` in whole sessions.

    Examples
    --------
    >>> print(sessions_short(200e9, 80e9, 25e9))
    5.0
    """
    return ceil_div(capacity_shortfall(need, capacity), positive(session, "session"))


def sweep_time(size: Bytes, bandwidth: BytesPerSecond) -> Seconds:
    r"""How long does it take to read so many bytes once at this rate?

    .. math:: R = \frac{C}{B}

    Parameters
    ----------
    size : C, bytes: the capacity of a device, or the need of a load [byte]
    bandwidth : B, bytes per second: of the same device, or of the same load [byte/second]

    Raises
    ------
    DomainError
        If `size` is negative or `bandwidth` is not positive.

    Notes
    -----
    R_d of a device against R_w of a load says which limit comes first as both needs grow together,
    as R_w / R_d = u_C / u_B.  It never says whether the load fits: growing both needs leaves R_w alone.

    References
    ----------
    Definition.  The machine-balance argument of the roofline model, with capacity in place of work:
    S. Williams, A. Waterman, D. Patterson, Communications of the ACM 52 (2009) 65,
    https://doi.org/10.1145/1498765.1498785

    Examples
    --------
    >>> print(sweep_time(80e9, 2000e9))
    0.04
    """
    return burst_time(size, bandwidth)


def first_limit(capacity: Share, bandwidth: Share) -> Words:
    r"""Which limit does the load reach first as it grows: capacity, bandwidth, or both at once?

    .. math:: \max(u_C, u_B)

    Parameters
    ----------
    capacity : u_C, share of the capacity in use [1]
    bandwidth : u_B, share of the bandwidth in use [1]

    Raises
    ------
    DomainError
        If a share is negative.

    Notes
    -----
    Gives ``"capacity"``, ``"bandwidth"`` or ``"tie"`` (within `TIE_TOLERANCE`); ``""`` for NaN.

    References
    ----------
    The larger utilization reaches 1 first when both grow in proportion.

    Examples
    --------
    >>> first_limit(0.375, 0.5)
    'bandwidth'
    """
    c, b = not_negative(capacity, "capacity"), not_negative(bandwidth, "bandwidth")
    # Written without c - b, which is no number where a full machine makes one of them infinite.
    near = (c <= b * (1 + TIE_TOLERANCE)) & (b <= c * (1 + TIE_TOLERANCE))
    return word([near, c > b, c < b], ["tie", "capacity", "bandwidth"])
