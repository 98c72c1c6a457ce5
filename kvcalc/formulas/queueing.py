"""How long a transfer waits for the ones before it."""

import numpy as np

from kvcalc.formulas._domain import at_least_one, excess, not_negative, positive, refuse, select
from kvcalc.quantity import Count, PerSecond, Seconds, Share

UNSTABLE = "the load is at or above what the link can serve: the queue grows without end"
"""Why a waiting time does not exist."""


def link_utilization(rate: PerSecond, service: Seconds, servers: Count = 1.0) -> Share:
    r"""What share of the time is a link busy?

    .. math:: ρ = \frac{\lambda S}{k}

    Parameters
    ----------
    rate : \lambda, transfers per second [1/second]
    service : S, mean time of one transfer alone on the link [second]
    servers : k, equal links that take transfers from one queue [1]

    Raises
    ------
    DomainError
        If `rate` or `service` is negative or `servers` is below 1.

    Notes
    -----
    At 1 and above there is no steady state; see `backlog_growth`.

    References
    ----------
    Utilization law: J. Little, Operations Research 9 (1961) 383, https://doi.org/10.1287/opre.9.3.383

    Examples
    --------
    >>> print(link_utilization(10, 0.05))
    0.5
    """
    load = not_negative(rate, "rate") * not_negative(service, "service")
    return load / at_least_one(servers, "servers")


def mean_wait(service: Seconds, utilization: Share, variation: Share = 1.0, servers: Count = 1.0) -> Seconds:
    r"""How long does a transfer wait on average before it starts?

    .. math:: W = S \frac{1 + v^2}{2} \cdot \frac{ρ^{\sqrt{2 (k + 1)} - 1}}{k (1 - ρ)}

    Parameters
    ----------
    service : S, mean time of one transfer alone on the link [second]
    utilization : ρ, share of the time the links are busy [1]
    variation : v, standard deviation of the transfer time over its mean [1]
    servers : k, equal links that take transfers from one queue [1]

    Raises
    ------
    DomainError
        If `utilization` is 1 or more (the queue grows without end), `servers` is below 1, or an
        argument is negative.

    Notes
    -----
    Random arrivals, first come first served.  Exact for one link, an approximation for several.  Prefix
    lengths of agent traces vary by more than their mean, so v = 1 is no upper bound.

    References
    ----------
    Pollaczek-Khinchine for k = 1; several servers: H. Sakasegawa, Annals of the Institute of
    Statistical Mathematics 29 (1977) 67, https://doi.org/10.1007/BF02532775

    Examples
    --------
    >>> print(mean_wait(0.05, 0.8))
    0.2
    """
    ρ = not_negative(utilization, "utilization")
    idle = refuse(1 - ρ, ρ >= 1, UNSTABLE)
    k, v = at_least_one(servers, "servers"), not_negative(variation, "variation")
    crowd: Share = ρ ** (np.sqrt(2 * (k + 1)) - 1)
    return not_negative(service, "service") * (1 + v * v) / 2 * crowd / (k * idle)


def service_within(budget: Seconds, rate: PerSecond, shown: Share = 1.0, variation: Share = 1.0) -> Seconds:
    r"""How long may a transfer be, so that it takes no more than a budget with its wait for those before it?

    .. math:: S = \frac{2 T}{a + \lambda T + \sqrt{(a - \lambda T)^2 + 4 \lambda c T}},
              \qquad c = \frac{1 + v^2}{2}

    Parameters
    ----------
    budget : T, time for the wait and for what shows of the transfer [second]
    rate : \lambda, transfers per second, all alike [1/second]
    shown : a, share of the transfer that nothing hides, 1 for all of it [1]
    variation : v, standard deviation of the transfer time over its mean [1]

    Raises
    ------
    DomainError
        If an argument is negative.

    Notes
    -----
    Solves a S + W(S) = T with `mean_wait` of one link: shorter transfers wait less too, so a faster link
    gains twice.  Infinite where nothing shows and nothing waits.

    References
    ----------
    Derived: the positive root of λ (c - a) S² + (a + λ T) S - T = 0, written without cancellation.

    Examples
    --------
    Sixteen transfers a second that may take 0.25 s each, waiting included (`mean_wait` of 0.05 s: 0.2 s):

    >>> print(service_within(0.25, 16.0))
    0.05
    """
    time, a = not_negative(budget, "budget"), not_negative(shown, "shown")
    v, load = not_negative(variation, "variation"), not_negative(rate, "rate") * time
    reach = a + load + np.sqrt((a - load) ** 2 + 4 * (1 + v * v) / 2 * load)
    endless = (a <= 0) & (rate <= 0) & (time > 0)
    return 2 * time / select(reach == 0, 1.0, reach) * select(endless, np.inf, 1.0)


def mixture_variation(share: Share, first: Seconds, second: Seconds, variation: Share = 0.0) -> Share:
    r"""By how much do times vary that are of two kinds, a share of them of the second one?

    .. math:: v = \sqrt{(1 + v_0^2) \frac{(1 - h) T_0^2 + h T_1^2}{\left((1 - h) T_0 + h T_1\right)^2} - 1}

    Parameters
    ----------
    share : h, share of the second kind [1]
    first : T_0, mean time of the first kind [second]
    second : T_1, mean time of the second kind [second]
    variation : v_0, standard deviation over the mean within each kind [1]

    Raises
    ------
    DomainError
        If `share` is outside [0, 1], a time is not positive or `variation` is negative.

    Notes
    -----
    Standard deviation over the mean of all times, as `mean_wait` takes it.  A few long prefills among
    many short ones vary by more than either kind.

    References
    ----------
    Definition: second moment of a mixture over the square of its mean, less one.

    Examples
    --------
    >>> print(mixture_variation(0.5, 3.0, 1.0))
    0.5
    """
    h = refuse(share, (share < 0) | (share > 1), "share must lie in [0, 1]")
    a, b, v = positive(first, "first"), positive(second, "second"), not_negative(variation, "variation")
    mean = (1 - h) * a + h * b
    moment = (1 + v * v) * ((1 - h) * a * a + h * b * b)
    return np.sqrt(np.maximum(moment / (mean * mean) - 1, 0.0))


def wait_percentile(mean: Seconds, utilization: Share, percentile: Share = 0.99) -> Seconds:
    r"""How long do the unluckiest transfers wait?

    .. math:: W_p = \max\left(0, \frac{W}{ρ} \cdot \ln\left(\frac{ρ}{1 - p}\right)\right)

    Parameters
    ----------
    mean : W, mean wait [second]
    utilization : ρ, share of the time the link is busy [1]
    percentile : p, share of transfers that wait no longer, 0.99 for P99 [1]

    Raises
    ------
    DomainError
        If `mean` is negative, `utilization` is outside [0, 1), or `percentile` is outside (0, 1).

    Notes
    -----
    Zero when more than p of the transfers find the link idle.  The exponential tail is exact for
    exponential transfer times and an approximation otherwise.

    References
    ----------
    L. Kleinrock, Queueing Systems, volume 1 (1975), M/M/1: P(wait > t) = ρ exp(-ρ t / W).

    Examples
    --------
    >>> print(wait_percentile(0.2, 0.8))
    1.0955
    """
    ρ = refuse(utilization, utilization >= 1, UNSTABLE)
    ρ = not_negative(ρ, "utilization")
    p = refuse(percentile, (percentile <= 0) | (percentile >= 1), "percentile must lie in (0, 1)")
    # An idle link has mean 0, and any positive utilization then gives the 0 it deserves.
    busy = select(ρ > 0, ρ, 1 + 0 * ρ)
    late = np.log(np.maximum(busy / (1 - p), 1.0))
    return not_negative(mean, "mean") / busy * late


def shared_service(service: Seconds, utilization: Share) -> Seconds:
    r"""How long does a transfer take when all transfers share the link in small slices?

    .. math:: T = \frac{S}{1 - ρ}

    Parameters
    ----------
    service : S, time of the transfer alone on the link [second]
    utilization : ρ, share of the time the link is busy [1]

    Raises
    ------
    DomainError
        If an argument is negative or `utilization` is 1 or more.

    Notes
    -----
    For networks, where transfers do not queue but slow each other down.  It depends on the mean load
    alone, not on how transfer times vary.

    References
    ----------
    L. Kleinrock, Queueing Systems, volume 2 (1976): M/G/1 with processor sharing.

    Examples
    --------
    >>> print(shared_service(0.05, 0.8))
    0.25
    """
    ρ = not_negative(utilization, "utilization")
    return not_negative(service, "service") / refuse(1 - ρ, ρ >= 1, UNSTABLE)


def backlog_growth(utilization: Share) -> Share:
    r"""How fast does the queue grow when the link cannot serve the load?

    .. math:: g = \max(0, ρ - 1)

    Parameters
    ----------
    utilization : ρ, load over what the link can serve; may exceed 1 [1]

    Raises
    ------
    DomainError
        If `utilization` is negative.

    Notes
    -----
    Seconds of waiting that every second of such load adds, for one link.

    References
    ----------
    Definition: work that arrives less work that is served, per unit of time.

    Examples
    --------
    >>> print(backlog_growth(1.25))
    0.25
    """
    return excess(not_negative(utilization, "utilization"), 1.0)
