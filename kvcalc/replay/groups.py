"""Requests cut where blocks change hands: the form in which a least-recently-used cache is small.

A request touches its whole chain, so that whatever one request left behind and nobody has touched since is
the rest of its chain from some block on.  The blocks of a new request therefore fall into a few groups, each
with one owner: the last request that touched them, the latest owner at the head.  These groups depend
on the trace alone, not on the capacity; they come from segments (runs of ids within which no
request starts, ends or branches) by one sort.
"""

from typing import TYPE_CHECKING

import numpy as np

from kvcalc.records import record
from kvcalc.replay.stream import Stream

if TYPE_CHECKING:
    from numpy.typing import NDArray

NOBODY = -1
"""Owner of blocks that were never touched before."""


@record
class Pieces:
    """Each request as segments, in chain order."""

    request: "NDArray[np.int64]"  # by piece
    segment: "NDArray[np.int64]"  # by piece
    blocks: "NDArray[np.int64]"  # by piece
    size: "NDArray[np.int64]"  # by piece: blocks, or tokens where blocks differ


@record
class Groups:
    """The blocks of each request that were touched before, by their last owner."""

    start: "NDArray[np.int64]"  # request r has the groups start[r] to start[r + 1]
    request: "NDArray[np.int64]"
    owner: "NDArray[np.int64]"
    blocks: "NDArray[np.int64]"
    size: "NDArray[np.int64]"  # blocks, or tokens where blocks differ
    before: "NDArray[np.int64]"  # size of what stands before it in its request
    offset: "NDArray[np.int64]"  # size of what stands before it in its request and has the same owner
    whole: bool  # a group is one block, which is evicted whole; else blocks of size 1


def pieces_of(stream: Stream) -> Pieces:
    """Cut every run wherever any request starts, ends or branches; where blocks differ, at every block."""
    trace = stream.trace
    first, stop = trace.run_first, trace.run_first + trace.run_blocks
    if stream.weight_before is None:
        marks = np.zeros(trace.unique_blocks + 1, np.int64)
        marks[first] = marks[stop] = 1
        number = np.cumsum(marks) - 1
        cuts = np.flatnonzero(marks)
        low, high = number[first], number[stop]
    else:
        cuts = np.arange(trace.unique_blocks + 1)
        low, high = first, stop
    count = high - low
    start = np.concatenate(([0], np.cumsum(count)))
    segment = np.repeat(low - start[:-1], count) + np.arange(start[-1])
    runs = np.diff(trace.run_start)
    request = np.repeat(np.repeat(np.arange(trace.requests), runs), count)
    blocks = np.diff(cuts)
    before = stream.weight_before
    size = blocks if before is None else np.diff(before[cuts])
    return Pieces(request, segment, blocks[segment], size[segment])


def last_owner(pieces: Pieces, touching: "NDArray[np.bool_] | None" = None) -> "NDArray[np.int64]":
    """Return, by piece, the last earlier request that touched its segment; `NOBODY` for a first touch."""
    order = np.argsort(pieces.segment, kind="stable")
    segment, request = pieces.segment[order], pieces.request[order]
    owner = np.full(len(order), NOBODY, np.int64)
    if touching is None:
        same = segment[1:] == segment[:-1]
        owner[order[1:][same]] = request[:-1][same]
        return owner
    places = np.where(touching[request], np.arange(len(order)), -1)
    latest = np.concatenate(([-1], np.maximum.accumulate(places)[:-1])) if len(order) else places
    heads = np.concatenate(([True], segment[1:] != segment[:-1])) if len(order) else np.zeros(0, bool)
    begin = np.maximum.accumulate(np.where(heads, np.arange(len(order)), 0)) if len(order) else latest
    known = latest >= begin
    owner[order[known]] = request[latest[known]]
    return owner


def groups_of(stream: Stream, touching: "NDArray[np.bool_] | None" = None) -> Groups:
    """Return the groups of every request; `touching` names those that leave their blocks behind."""
    pieces = pieces_of(stream)
    owner = last_owner(pieces, touching)
    kept = owner != NOBODY
    request, owner = pieces.request[kept], owner[kept]
    blocks, size = pieces.blocks[kept], pieces.size[kept]
    whole = stream.weight_before is not None
    total = np.concatenate(([0], np.cumsum(size)))
    runs = np.concatenate(([0], np.flatnonzero(_changes(request, owner)), [len(request)]))
    same_owner = np.searchsorted(runs, np.arange(len(request)), side="right") - 1 if whole else None
    if not whole:
        heads = runs[:-1] if len(request) else runs[:0]
        blocks = np.add.reduceat(blocks, heads) if len(heads) else blocks
        size = np.add.reduceat(size, heads) if len(heads) else size
        request, owner, total = request[heads], owner[heads], total[runs] if len(heads) else total
    start = np.concatenate(([0], np.cumsum(np.bincount(request, minlength=stream.requests))))
    before = total[:-1] - total[start[request]]
    offset = np.zeros(len(request), np.int64)
    if same_owner is not None:
        offset = total[:-1] - total[runs[same_owner]]
    return Groups(start, request, owner, blocks, size, before, offset, whole)


def _changes(request: "NDArray[np.int64]", owner: "NDArray[np.int64]") -> "NDArray[np.bool_]":
    """Tell where a piece has another request or owner than the one before; never at the first."""
    changes = np.zeros(len(request), bool)
    changes[1:] = (request[1:] != request[:-1]) | (owner[1:] != owner[:-1])
    return changes
