"""The normal distribution, element by element and without scipy."""

import numpy as np

from kvcalc.formulas._domain import select
from kvcalc.quantity import Real, Share

# M. Abramowitz, I. Stegun, Handbook of Mathematical Functions (1964), 7.1.26: within 1.5e-7 for x >= 0.
_P = 0.3275911
_A = (0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429)


def complementary_error(x: Real) -> Real:
    """Return erfc(x) for x of zero or more.

    >>> print(complementary_error(0.0), complementary_error(1.0))
    1.0 0.157299
    """
    t = 1 / (1 + _P * x)
    series = 0.0 * t
    for coefficient in reversed(_A):
        series = (series + coefficient) * t
    return series * np.exp(-x * x)


def upper_tail(z: Real) -> Share:
    """Return the probability that a standard normal variable exceeds `z`.

    >>> print(upper_tail(0.0), upper_tail(1.6448536), upper_tail(-1.6448536))
    0.5 0.05 0.95
    """
    half = complementary_error(np.abs(z) / np.sqrt(2.0)) / 2
    return select(z >= 0, half, 1 - half)
