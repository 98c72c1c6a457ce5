"""The same trace in larger blocks: what an engine with blocks of another size can know of it.

A block of the engine is shared as far as the trace's blocks prove it: two requests whose first k blocks
of b tokens are the same share k * b tokens, hence floor(k * b / B) blocks of B tokens.
"""

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from kvcalc.errors import SettingsError
from kvcalc.replay.trace import Finding, Trace

if TYPE_CHECKING:
    from numpy.typing import NDArray


def regrained(trace: Trace, block_tokens: int) -> Trace:
    """Return the trace in whole blocks of `block_tokens` tokens, which must not be smaller than its own.

    Raises
    ------
    SettingsError
        If the trace's blocks differ in size or are larger.
    """
    size = trace.block_tokens
    if size == 0:
        raise SettingsError(f"{trace.name}: blocks of different sizes cannot be put together to larger ones")
    if block_tokens < size:
        raise SettingsError(f"{trace.name}: blocks of {size} tokens say nothing of blocks of {block_tokens}")
    ends = _ends(trace, block_tokens)
    # By id: how many ids before it end a larger block.  Ids of a run follow each other, so do these.
    numbers = np.concatenate(([0], np.cumsum(ends)))
    first = numbers[trace.run_first]
    blocks = numbers[trace.run_first + trace.run_blocks] - first
    blocks = _whole(trace, blocks, trace.input_tokens // block_tokens)
    left = np.concatenate(([0], np.cumsum(blocks > 0)))
    text = (
        f"The engine's blocks hold {block_tokens:,} tokens, those of the trace {size:,}: hits are counted in "
        f"whole blocks of {block_tokens:,}, as far as the trace's own prove that they are the same."
    )
    return replace(
        trace,
        block_tokens=block_tokens,
        run_first=first[blocks > 0],
        run_blocks=blocks[blocks > 0],
        run_start=left[trace.run_start],
        component=None,
        findings=(*trace.findings, Finding("regrained", block_tokens, text)),
    )


def _ends(trace: Trace, block_tokens: int) -> "NDArray[np.bool_]":
    """Mark the ids whose end is the first one at or behind the end of a larger block."""
    depth = np.zeros(trace.unique_blocks, np.int64)
    before = np.concatenate(([0], np.cumsum(trace.run_blocks)))
    into = before[:-1] - np.repeat(before[trace.run_start[:-1]], np.diff(trace.run_start))
    for low, count, start in zip(
        trace.run_first.tolist(), trace.run_blocks.tolist(), into.tolist(), strict=True
    ):
        depth[low : low + count] = np.arange(start, start + count)
    done = (depth + 1) * trace.block_tokens // block_tokens
    ends: NDArray[np.bool_] = done > depth * trace.block_tokens // block_tokens
    return ends


def _whole(trace: Trace, blocks: "NDArray[np.int64]", most: "NDArray[np.int64]") -> "NDArray[np.int64]":
    """Cut each request's blocks to those that its input fills."""
    before = np.concatenate(([0], np.cumsum(blocks)))
    into = before[:-1] - np.repeat(before[trace.run_start[:-1]], np.diff(trace.run_start))
    fitting: NDArray[np.int64] = np.clip(np.repeat(most, np.diff(trace.run_start)) - into, 0, blocks)
    return fitting
