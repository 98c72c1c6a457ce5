"""Sets of block numbers: ranges in files, sorted or ordered arrays in memory."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kvcalc.documents import describe
from kvcalc.errors import ProfileError

Blocks = NDArray[np.int64]
"""Block numbers in the order in which a sequence fills them."""


def expand(items: Sequence[Any], limit: int, where: str) -> Blocks:
    """Return block numbers from a list of numbers and of ranges ``[first, last]``, in their order.

    >>> expand([7, [2, 4]], 100, "ledger.yaml: sessions[0].blocks").tolist()
    [7, 2, 3, 4]

    Raises
    ------
    ProfileError
        If an item is neither, a range runs backwards, or a block lies outside the pool.
    """
    pairs = _pairs(items, where)
    if pairs.size == 0:
        return np.zeros(0, dtype=np.int64)
    first, last = pairs[:, 0], pairs[:, 1]
    if np.any(last < first):
        at = int(np.argmax(last < first))
        raise ProfileError(f"{where}: [{first[at]}, {last[at]}] runs backwards; write [first, last]")
    outside = (first < 0) | (last >= limit)
    if np.any(outside):
        at = int(np.argmax(outside))
        missing = int(first[at]) if first[at] < 0 or first[at] >= limit else int(last[at])
        raise ProfileError(f"{where}: block {missing} does not exist; the pool has blocks 0 to {limit - 1}")
    lengths = last - first + 1
    if np.all(lengths == 1):
        return first
    before = np.cumsum(lengths) - lengths
    return np.repeat(first - before, lengths) + np.arange(int(lengths.sum()), dtype=np.int64)


def _pairs(items: Sequence[Any], where: str) -> Blocks:
    """Return items as rows of first and last."""
    try:
        numbers = np.asarray(items)
    except ValueError:  # numbers and ranges side by side
        numbers = np.asarray([_pair(item, where) for item in items])
    if numbers.size == 0:
        return np.zeros((0, 2), dtype=np.int64)
    if numbers.dtype.kind != "i" or (numbers.ndim == 2 and numbers.shape[1] != 2) or numbers.ndim > 2:
        numbers = np.asarray([_pair(item, where) for item in items])
    whole = numbers.astype(np.int64, copy=False)
    return whole if whole.ndim == 2 else np.column_stack([whole, whole])


def _pair(item: Any, where: str) -> list[int]:  # noqa: ANN401 - an item of a file
    ends = [item, item] if not isinstance(item, list) else item
    whole = all(isinstance(end, int) and not isinstance(end, bool) and abs(end) < 2**62 for end in ends)
    if len(ends) != 2 or not whole:
        raise ProfileError(f"{where}: expected block numbers and ranges [first, last], not {describe(item)}")
    return ends


def ranges(blocks: Blocks) -> list[list[int]]:
    """Return ordered block numbers as ranges ``[first, last]``, in their order.

    >>> ranges(np.array([7, 2, 3, 4]))
    [[7, 7], [2, 4]]
    """
    if blocks.size == 0:
        return []
    cuts = np.flatnonzero(np.diff(blocks) != 1) + 1
    firsts = blocks[np.concatenate([[0], cuts])]
    lasts = blocks[np.concatenate([cuts - 1, [blocks.size - 1]])]
    return [[int(first), int(last)] for first, last in zip(firsts, lasts, strict=True)]


def falling_ranges(blocks: Blocks) -> list[list[int]]:
    """Return blocks that were freed from the leaf on as ranges ``[first, last]``, the leaf's first.

    >>> falling_ranges(np.array([9, 8, 7, 2, 1]))
    [[7, 9], [1, 2]]
    """
    return [list(span) for span in reversed(ranges(blocks[::-1]))]
