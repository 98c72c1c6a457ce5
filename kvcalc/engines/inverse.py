"""The questions asked backwards: what context, how many sequences, how much memory.

Answers are exact for any layout: they search the monotone bytes that a sequence occupies, so capped
windows, constant states and page rounding are all accounted for.  Nothing is divided by a slope.
"""

from collections.abc import Callable

from kvcalc.engines.layout import Layout
from kvcalc.errors import DomainError
from kvcalc.formulas.capacity import sessions_that_fit
from kvcalc.quantity import Bytes

LONGEST_ASKED = 2**40
"""A context beyond which memory is said not to limit it [token]."""


def largest(fits: Callable[[int], bool], limit: int) -> int:
    """Return the largest n in [0, limit] for which `fits(n)`, where fitting never returns once lost.

    >>> largest(lambda n: n * n <= 90, limit=1000)
    9
    """
    if fits(limit):
        return limit
    low, high = 0, 1
    while high < limit and fits(high):
        low, high = high, high * 2
    high = min(high, limit)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def smallest_pool(layout: Layout, tokens: int, sequences: int = 1) -> Bytes:
    """Return the KV memory per GPU that holds `sequences` sequences of `tokens` tokens.

    Raises
    ------
    DomainError
        If a count is not positive.
    """
    _check(tokens=tokens, sequences=sequences)
    return float(layout.occupied(tokens)) * sequences


def longest_context(layout: Layout, size: float, sequences: int = 1) -> int | None:
    """Return the most tokens that each of `sequences` sequences can have in `size` bytes per GPU.

    0 when not even one token fits; None when memory does not limit it, because every component
    is capped or constant.
    """
    _check(sequences=sequences)

    def fits(tokens: int) -> bool:
        return tokens == 0 or float(layout.occupied(tokens)) * sequences <= size

    found = largest(fits, LONGEST_ASKED)
    return None if found == LONGEST_ASKED else found


def most_sequences(layout: Layout, size: float, tokens: int) -> int:
    """Return how many sequences of `tokens` tokens `size` bytes of KV memory per GPU hold at once."""
    _check(tokens=tokens)
    one = float(layout.occupied(tokens))
    if one <= 0:
        raise DomainError(f"{layout.shape.name} reserves nothing per sequence, so any number fits")
    return int(sessions_that_fit(size, one))


def _check(**counts: int) -> None:
    for name, count in counts.items():
        if count < 1:
            raise DomainError(f"{name} must be at least 1, got {count}")
