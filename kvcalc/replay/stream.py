"""A trace under its semantics: what is asked for, in which order, and what of it counts."""

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from kvcalc.records import record
from kvcalc.replay.semantics import CACHED, DROP, IGNORED, TIME, Semantics
from kvcalc.replay.trace import Trace

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kvcalc.replay.groups import Groups


@record
class Stream:
    """Requests as a cache sees them."""

    trace: Trace  # in the order of the replay
    counted: "NDArray[np.bool_]"  # by request; the others only leave their blocks behind

    @property
    def requests(self) -> int:
        """Requests, with those that are not counted."""
        return self.trace.requests

    @cached_property
    def blocks(self) -> "NDArray[np.int64]":
        """Blocks of each request."""
        return self.trace.request_blocks

    @cached_property
    def weight_before(self) -> "NDArray[np.int64] | None":
        """Tokens of all blocks with a lower id, where blocks differ; one entry more than there are ids."""
        weights = self.trace.block_weight
        return None if weights is None else np.concatenate(([0], np.cumsum(weights)))

    @cached_property
    def run_sizes(self) -> "NDArray[np.int64]":
        """What each run takes of a cache: blocks, or tokens where blocks differ."""
        before, first, blocks = self.weight_before, self.trace.run_first, self.trace.run_blocks
        if before is None:
            return blocks
        sizes: NDArray[np.int64] = before[first + blocks] - before[first]
        return sizes

    @cached_property
    def sizes(self) -> "NDArray[np.int64]":
        """What each request takes of a cache."""
        total = np.concatenate(([0], np.cumsum(self.run_sizes)))
        start = self.trace.run_start
        return total[start[1:]] - total[start[:-1]]

    @cached_property
    def short(self) -> "NDArray[np.int64]":
        """Tokens by which the last block of each request is less than full."""
        if self.trace.block_tokens == 0:
            return np.zeros(self.requests, np.int64)
        missing = self.blocks * self.trace.block_tokens - self.trace.input_tokens
        short: NDArray[np.int64] = np.clip(missing, 0, np.where(self.blocks > 0, self.trace.block_tokens, 0))
        return short

    @cached_property
    def groups(self) -> "Groups":
        """The requests by the last owner of their blocks, the same for every capacity."""
        from kvcalc.replay.groups import groups_of

        return groups_of(self)

    @cached_property
    def distinct(self) -> int:
        """Different blocks that are asked for."""
        return int(self.blocks.sum() - self.groups.blocks.sum())

    def ids(self, request: int) -> "NDArray[np.int64]":
        """Return the blocks of one request, head first."""
        trace = self.trace
        runs = range(int(trace.run_start[request]), int(trace.run_start[request + 1]))
        parts = [np.arange(trace.run_first[i], trace.run_first[i] + trace.run_blocks[i]) for i in runs]
        return np.concatenate(parts) if parts else np.zeros(0, np.int64)


def stream_of(trace: Trace, semantics: Semantics) -> Stream:
    """Apply the order, the partial block, the warm-up and the outputs that the semantics ask for."""
    if semantics.order == TIME:
        trace = in_time(trace)
    if semantics.partial_block == DROP:
        trace = without_partial(trace)
    counted = np.arange(trace.requests) >= int(semantics.warmup * trace.requests)
    stream = Stream(trace, counted)
    if semantics.output == CACHED:
        from kvcalc.replay.outputs import with_outputs

        stream = with_outputs(stream)
    return stream


def in_time(trace: Trace) -> Trace:
    """Return the requests in the order of arrival; those without a time keep the trace as it is."""
    if np.isnan(trace.time).any() or not (np.diff(trace.time) < 0).any():
        return trace
    return take(trace, np.argsort(trace.time, kind="stable"))


def without_partial(trace: Trace) -> Trace:
    """Return the trace without last blocks that are not full."""
    if trace.block_tokens == 0:
        return trace
    full = np.minimum(trace.request_blocks, trace.input_tokens // trace.block_tokens)
    return take(trace, np.arange(trace.requests), full)


def take(
    trace: Trace,
    chosen: "NDArray[np.int64]",
    keep: "NDArray[np.int64] | None" = None,
) -> Trace:
    """Return the trace of these requests, each cut to its first `keep` blocks."""
    counts = np.diff(trace.run_start)[chosen]
    start = np.concatenate(([0], np.cumsum(counts)))
    runs = np.repeat(trace.run_start[chosen] - start[:-1], counts) + np.arange(start[-1])
    first, blocks = trace.run_first[runs], trace.run_blocks[runs]
    if keep is not None:
        before = np.concatenate(([0], np.cumsum(blocks)))
        into = before[:-1] - np.repeat(before[start[:-1]], counts)
        blocks = np.clip(np.repeat(keep, counts) - into, 0, blocks)
        left = np.concatenate(([0], np.cumsum(blocks > 0)))
        first, blocks, start = first[blocks > 0], blocks[blocks > 0], left[start]
    return replace(
        trace,
        run_first=first,
        run_blocks=blocks,
        run_start=start,
        **{
            name: getattr(trace, name)[chosen]
            for name in ("input_tokens", "output_tokens", "time", "session", "tenant")
        },
        agent=None if trace.agent is None else trace.agent[chosen],
    )


def plain(trace: Trace) -> Stream:
    """Return the trace as it is, every request counted."""
    return stream_of(trace, Semantics(order="file", output=IGNORED))
