"""How much power machines draw that compute for a part of the time and wait for the rest."""

from kvcalc.formulas._domain import not_negative, refuse
from kvcalc.quantity import Share, Watts


def mean_power(limit: Watts, busy: Share, waiting: Share) -> Watts:
    r"""How much power does a GPU draw on average, when it waits for a part of the time?

    .. math:: P = P_{max} \left(u + (1 - u) w\right)

    Parameters
    ----------
    limit : P_{max}, power while it computes [watt]
    busy : u, share of the time in which it computes [1]
    waiting : w, share of that power which it draws while it waits [1]

    Raises
    ------
    DomainError
        If `limit` is negative, or `busy` or `waiting` is outside [0, 1].

    Notes
    -----
    A prefill draws about the power limit; a restore leaves the GPU idle, at about a quarter of it.

    References
    ----------
    The mean of both states over time.  Share while KV is loaded: https://arxiv.org/abs/2601.19910

    Examples
    --------
    >>> print(mean_power(700, 0.5, 0.28))
    448.0
    """
    u = refuse(busy, (busy < 0) | (busy > 1), "busy must lie in [0, 1]")
    w = refuse(waiting, (waiting < 0) | (waiting > 1), "waiting must lie in [0, 1]")
    return not_negative(limit, "limit") * (u + (1 - u) * w)
