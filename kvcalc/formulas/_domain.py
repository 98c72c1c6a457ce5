"""What every formula does with a value outside its valid range: one rule, in one place.

A scalar outside the range raises, since somebody asked exactly that question.  In an array such an
element becomes NaN, so that one bad row of a table does not hide the answers of the others.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kvcalc.errors import DomainError
from kvcalc.quantity import Real

Condition = bool | NDArray[np.bool_]
"""What a comparison of two `Real` gives."""

Words = str | NDArray[np.object_]
"""A word for scalars, an array (or Series) of words for arrays; ``""`` where the input is NaN."""


def refuse(value: Real, bad: Condition, message: str) -> Real:
    """Return `value` as a float, but raise where a scalar is bad and give NaN where an array's element is.

    A NaN comes in for a blank cell and goes out as one: no comparison with it holds, so it is never bad.

    >>> print(refuse(2, False, "unused"))
    2.0
    >>> print(refuse(np.array([2.0, -1.0]), np.array([False, True]), "must be positive"))
    [ 2. nan]
    """
    if np.ndim(bad) == 0 and bad and np.ndim(value) == 0:
        raise DomainError(message)
    if _all_pass(value, bad):
        return value
    passed: Real = _like(np.where(bad, np.nan, 1.0)[()], bad)
    return value * passed


def _all_pass(value: Real, bad: Condition) -> bool:
    """Tell whether an array of floats passes as it is: most do, and a sweep asks a thousand times a chunk."""
    if not isinstance(value, np.ndarray) or not isinstance(bad, np.ndarray):
        return False
    return value.dtype == np.float64 and value.shape == bad.shape and not bad.any()


def positive(value: Real, name: str) -> Real:
    """Return `value` where it is above zero; see `refuse`."""
    return refuse(value, value <= 0, f"{name} must be positive")


def not_negative(value: Real, name: str) -> Real:
    """Return `value` where it is zero or more; see `refuse`."""
    return refuse(value, value < 0, f"{name} must not be negative")


def share(value: Real, name: str) -> Real:
    """Return `value` where it lies in (0, 1], as an efficiency must; see `refuse`."""
    return refuse(value, (value <= 0) | (value > 1), f"{name} must lie in (0, 1]")


def at_least_one(value: Real, name: str) -> Real:
    """Return `value` where it is 1 or more, as a count of layers must be; see `refuse`."""
    return refuse(value, value < 1, f"{name} must be at least 1")


def select(where: Condition, yes: Real, no: Real) -> Real:
    """Return `yes` where the condition holds, else `no`: a Series if one of them is, a scalar if all are.

    >>> print(select(True, 1.0, 2.0))
    1.0
    """
    chosen: Real = _like(np.where(where, yes, no)[()], where, yes, no)
    return chosen


def word(conditions: Sequence[Condition], words: Sequence[str], default: str = "") -> Words:
    """Return the word of the first condition that holds, else `default`, element by element.

    >>> word([False, True], ["small", "large"])
    'large'
    """
    chosen = np.select([np.asarray(c, dtype=bool) for c in conditions], list(words), default)
    if chosen.ndim == 0:
        return str(chosen)
    result: Words = _like(chosen.astype(object), *conditions)
    return result


def excess(value: Real, limit: Real) -> Real:
    """Return max(0, value - limit), also where `limit` is infinite.

    >>> print(excess(5.0, 3.0), excess(2.0, np.inf))
    2.0 0.0
    """
    return value - np.minimum(value, limit)


def ceil_div(value: Real, unit: Real) -> Real:
    """Return how many whole units cover `value`, exactly, as floor division is exact.

    >>> print(ceil_div(10.0, 4.0), ceil_div(0.0, 4.0))
    3.0 0.0
    """
    return 0 - (-value // unit)  # 0 - ... because a plain minus would give -0.0


def _like(values: Any, *templates: Any) -> Any:  # noqa: ANN401 - pandas is unknown here
    """Give `values` the index of the first template that is a pandas Series, without importing pandas."""
    for template in templates:
        if hasattr(template, "index") and hasattr(template, "to_numpy"):
            return type(template)(values, index=template.index)
    return values
