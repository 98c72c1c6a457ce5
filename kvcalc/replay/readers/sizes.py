"""How many tokens a block of a trace has, where the file does not say."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from kvcalc.errors import ProfileError
from kvcalc.records import record
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


@record
class Sizes:
    """Tokens of a block, and the requests whose blocks contradict their length."""

    block_tokens: int
    wrong: "NDArray[np.bool_]"  # by request
    findings: tuple[Finding, ...] = ()

    def problem(self, found: Gathered, request: int) -> str:
        """Return what is wrong with a request."""
        blocks, tokens = _blocks_of(found)[request], found.input_tokens[request]
        return f"{blocks:,} blocks of {self.block_tokens:,} tokens for an input of {tokens:,}"


def block_tokens_of(found: Gathered, usual: int, stated: int | None, files: Sequence[str]) -> Sizes:
    """Return the tokens of a block: what was `stated`, or the `usual` size, or what the lengths say.

    Requests that contradict it are marked where most others prove it.

    Raises
    ------
    ProfileError
        If the blocks of most requests contradict their lengths; names a line.
    """
    blocks, tokens = _blocks_of(found), found.input_tokens
    size = stated or usual
    none = np.zeros(len(tokens), bool)
    misfits = {one: ~_fit(blocks, tokens, one) for one in dict.fromkeys((size, *CANDIDATES))}
    if not misfits[size].any():
        return Sizes(size, none)
    if stated is None:
        good = [one for one in CANDIDATES if not misfits[one].any()]
        if len(good) == 1:
            return Sizes(good[0], none, (_from_lengths(good[0], usual),))
    wrong = (blocks > 0) & too_many(blocks, tokens, size)
    if not wrong.any():
        return Sizes(size, none)
    most = int((blocks > 0).sum()) / 2
    if stated is None:
        best = min(misfits, key=lambda one: int(misfits[one].sum()))
        if best != size and int(misfits[best].sum()) < most:
            return Sizes(best, misfits[best], (_from_lengths(best, usual, most=True),))
    if int(wrong.sum()) < most:
        return Sizes(size, wrong)
    place = int(np.flatnonzero(wrong)[0])
    where = f"{files[found.files[place]]}:{found.lines[place]}"
    raise ProfileError(
        f"{where}: {Sizes(size, wrong).problem(found, place)}, as in half of the lines or "
        "more; name the file's block size with --trace-block"
    )


def _blocks_of(found: Gathered) -> "NDArray[np.int64]":
    before: NDArray[np.int64] = np.concatenate(([0], np.cumsum(found.runs.blocks)))
    return np.diff(before[found.runs.start])


def _fit(blocks: "NDArray[np.int64]", tokens: "NDArray[np.int64]", size: int) -> "NDArray[np.bool_]":
    fits: NDArray[np.bool_] = (blocks == 0) | fitting_rows(blocks, tokens, size)
    return fits


def _from_lengths(size: int, usual: int, most: bool = False) -> Finding:
    whose = "most of its lengths fit" if most else "its lengths fit"
    text = (
        f"A block has {size:,} tokens: the file does not say so, but {whose} no other "
        f"size (usual for this dialect are {usual:,})."
    )
    return Finding("block_size_from_lengths", size, text)
