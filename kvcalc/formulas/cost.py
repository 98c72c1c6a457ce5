"""What time and storage cost, and how soon a stored prefix must be used again to pay for itself."""

from kvcalc.formulas._domain import not_negative, positive, refuse
from kvcalc.quantity import (
    Bytes,
    Count,
    Dollars,
    DollarsPerByteSecond,
    DollarsPerSecond,
    PerSecond,
    Seconds,
    Share,
)

NO_SAVING = "a hit saves no money, so no reuse pays for keeping it"
"""Why a break-even reuse does not exist."""


def time_cost(duration: Seconds, price: DollarsPerSecond, gpus: Count = 1.0) -> Dollars:
    r"""What does it cost to keep GPUs busy for so long?

    .. math:: M = p G T

    Parameters
    ----------
    duration : T, time that the GPUs are held [second]
    price : p, price of one GPU [USD/second]
    gpus : G, GPUs held [1]

    Raises
    ------
    DomainError
        If an argument is negative.

    Notes
    -----
    The recompute that a hit saves is worth this, for the time by which the GPUs are held shorter.

    References
    ----------
    Definition: price times time.

    Examples
    --------
    Two hours of four GPUs at 2.50 USD/hour:

    >>> print(time_cost(7200, 2.5 / 3600, 4))
    20.0
    """
    return not_negative(price, "price") * not_negative(gpus, "gpus") * not_negative(duration, "duration")


def storage_cost(size: Bytes, duration: Seconds, price: DollarsPerByteSecond) -> Dollars:
    r"""What does it cost to keep so many bytes for so long?

    .. math:: M = s D T

    Parameters
    ----------
    size : D, bytes kept [byte]
    duration : T, time they are kept [second]
    price : s, price of the tier [USD/byte/second]

    Raises
    ------
    DomainError
        If an argument is negative.

    Notes
    -----
    Host memory that is paid for anyway has a price of zero here.

    References
    ----------
    Definition: price times bytes times time.

    Examples
    --------
    100 GB for a day at 0.20 USD per GB and 30-day month:

    >>> print(storage_cost(100e9, 86400, 0.20 / 1e9 / (30 * 86400)))
    0.667
    """
    return not_negative(price, "price") * not_negative(size, "size") * not_negative(duration, "duration")


def break_even_interval(saving: Dollars, size: Bytes, price: DollarsPerByteSecond) -> Seconds:
    r"""Within which time must a stored prefix be used again to pay for its storage?

    .. math:: τ = \frac{M}{s D}

    Parameters
    ----------
    saving : M, money that one hit saves [USD]
    size : D, bytes kept [byte]
    price : s, price of the tier [USD/byte/second]

    Raises
    ------
    DomainError
        If `saving`, `size` or `price` is not positive.

    Notes
    -----
    Prefixes whose reuse takes longer are cheaper to compute again.

    References
    ----------
    The five-minute rule: J. Gray, F. Putzolu, SIGMOD 1987, https://doi.org/10.1145/38713.38755, with
    recompute in place of disk reads.

    Examples
    --------
    >>> print(break_even_interval(1e-4, 1e9, 1e-16))
    1000.0
    """
    return refuse(saving, saving <= 0, NO_SAVING) / (positive(size, "size") * positive(price, "price"))


def break_even_hit_share(price: DollarsPerSecond, requests: PerSecond, saving: Dollars) -> Share:
    r"""Which share of requests must hit for a tier to pay for itself?

    .. math:: h = \frac{P}{\lambda M}

    Parameters
    ----------
    price : P, price of the whole tier [USD/second]
    requests : \lambda, requests per second [1/second]
    saving : M, money that one hit saves [USD]

    Raises
    ------
    DomainError
        If `price` is negative, or `requests` or `saving` is not positive.

    Notes
    -----
    Above 1 the tier cannot pay for itself at this load.

    References
    ----------
    Money saved per second, h λ M, set equal to the price.

    Examples
    --------
    >>> print(break_even_hit_share(2e-4, 2.0, 5e-4))
    0.2
    """
    worth = positive(requests, "requests") * refuse(saving, saving <= 0, NO_SAVING)
    return not_negative(price, "price") / worth
