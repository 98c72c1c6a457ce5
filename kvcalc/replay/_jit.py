"""Compiles inner loops where numba is installed (the extra `fast`) and the work is worth the wait."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

WORTH_COMPILING = 20_000_000
"""Steps of a loop from which compiled code is asked for: below, Python is done in the seconds that
numba takes to load and compile."""


@cache
def compiled(function: Callable[..., Any]) -> Callable[..., Any] | None:
    """Return the function as machine code, kept on disk for the next run; None without numba."""
    try:
        from numba import njit
    except ImportError:
        return None
    found: Callable[..., Any] = njit(cache=True)(function)
    return found


def run(function: Callable[..., Any], arrays: "Sequence[NDArray[np.int64]]", filled: int, steps: int) -> Any:  # noqa: ANN401
    """Call `function` with arrays, the last `filled` of which it fills in.

    Python works on lists, whose items it reads several times faster than those of an array.
    """
    fast = compiled(function) if steps >= WORTH_COMPILING else None
    if fast is not None:
        return fast(*arrays)
    lists = [array.tolist() for array in arrays]
    answer = function(*lists)
    for array, values in zip(arrays[-filled:], lists[-filled:], strict=True):
        array[:] = values
    return answer
