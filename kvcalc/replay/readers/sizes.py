"""How many tokens a block of a trace has, where the file does not say."""

from typing import TYPE_CHECKING

import numpy as np

from kvcalc.errors import ProfileError
from kvcalc.replay.readers.collect import Gathered
from kvcalc.replay.trace import Finding

if TYPE_CHECKING:
    from numpy.typing import NDArray

CANDIDATES = tuple(2**power for power in range(17))
"""Block sizes that are tried where lengths contradict the usual one [token]."""


def fitting_rows(blocks: "NDArray[np.int64]", tokens: "NDArray[np.int64]", size: int) -> "NDArray[np.bool_]":
    """Mark requests whose blocks are the input rounded up or down to `size` tokens."""
    fits: NDArray[np.bool_] = np.abs(tokens - blocks * size) < size
    return fits


def too_many(blocks: "NDArray[np.int64]", tokens: "NDArray[np.int64]", size: int) -> "NDArray[np.bool_]":
    """Mark requests with a block of `size` tokens for which no input is left."""
    return tokens <= (blocks - 1) * size


def block_tokens_of(
    found: Gathered, usual: int, stated: int | None, path: str
) -> tuple[int, tuple[Finding, ...]]:
    """Return the tokens of a block: what was `stated`, or the `usual` size, or what the lengths say.

    Raises
    ------
    ProfileError
        If blocks contradict the lengths; names the line.
    """
    blocks = np.diff(np.concatenate(([0], np.cumsum(found.runs.blocks)))[found.runs.start])
    tokens = found.input_tokens
    size = stated or usual
    fits = (blocks == 0) | fitting_rows(blocks, tokens, size)
    if fits.all():
        return size, ()
    if stated is None:
        good = [one for one in CANDIDATES if ((blocks == 0) | fitting_rows(blocks, tokens, one)).all()]
        if len(good) == 1:
            text = (
                f"A block has {good[0]:,} tokens: the file does not say so, but its lengths fit no other "
                f"size (usual for this dialect are {usual:,})."
            )
            return good[0], (Finding("block_size_from_lengths", good[0], text),)
    wrong = (blocks > 0) & too_many(blocks, tokens, size)
    if not wrong.any():
        return size, ()
    place = int(np.flatnonzero(wrong)[0])
    raise ProfileError(
        f"{path}:{found.lines[place]}: {blocks[place]:,} blocks of {size:,} tokens for an input of "
        f"{tokens[place]:,}; name the file's block size with --trace-block"
    )
