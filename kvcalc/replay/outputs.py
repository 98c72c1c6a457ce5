"""Generated tokens that stay cached: what the next turn of a session finds of the last one's answer.

A trace shows the blocks of an answer only where a later request has them in its input.  Each request is
therefore followed by one that is not counted and leaves behind the blocks of the next turn that it has
generated.
"""

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from kvcalc.replay.groups import NOBODY, pieces_of
from kvcalc.replay.stream import Stream, take

if TYPE_CHECKING:
    from numpy.typing import NDArray


def with_outputs(stream: Stream) -> Stream:
    """Put behind each request the full blocks of its answer, as the next turn shows them."""
    trace = stream.trace
    each = trace.block_tokens
    if each == 0:
        return stream
    following = next_turns(stream)
    reach = (trace.input_tokens + trace.output_tokens) // each
    blocks = stream.blocks
    known = following != NOBODY
    reach = np.where(known, np.minimum(reach, blocks[following]), 0)
    adds = known & (reach > trace.input_tokens // each)
    places = np.flatnonzero(adds)
    order = np.argsort(np.concatenate((np.arange(trace.requests), places + 0.5)), kind="stable")
    chosen = np.concatenate((np.arange(trace.requests), following[places]))[order]
    keep = np.concatenate((blocks, reach[places]))[order]
    counted = np.concatenate((stream.counted, np.zeros(len(places), bool)))[order]
    own = np.concatenate((np.arange(trace.requests), places))[order]
    made = take(trace, chosen, keep)
    # What an answer leaves behind belongs to whoever asked for it.
    made = replace(made, tenant=trace.tenant[own], session=trace.session[own])
    return Stream(made, counted)


def next_turns(stream: Stream) -> "NDArray[np.int64]":
    """Return the first later request that holds all full blocks of each request and more, or `NOBODY`.

    Where the trace names sessions it must be of the same one.
    """
    pieces = pieces_of(stream)
    trace = stream.trace
    full = trace.input_tokens // trace.block_tokens
    stop = np.cumsum(pieces.blocks)
    first = np.searchsorted(pieces.request, np.arange(trace.requests))
    before = np.where(first > 0, stop[np.maximum(first, 1) - 1], 0)
    into = stop - before[pieces.request]
    order = np.lexsort((pieces.request, pieces.segment))
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    found = np.full(trace.requests, NOBODY, np.int64)
    needed = full[pieces.request]
    for last in np.flatnonzero((into - pieces.blocks < needed) & (needed <= into)).tolist():
        request = int(pieces.request[last])
        found[request] = _first_longer(
            stream, pieces.segment, pieces.request, order, int(place[last]), request
        )
    return found


def _first_longer(
    stream: Stream,
    segment: "NDArray[np.int64]",
    request_of: "NDArray[np.int64]",
    order: "NDArray[np.int64]",
    place: int,
    request: int,
) -> int:
    """Return the next request with this piece whose chain goes on, of the same session if it has one."""
    session, inputs = stream.trace.session, stream.trace.input_tokens
    here = segment[order[place]]
    for later in range(place + 1, len(order)):
        if segment[order[later]] != here:
            break
        other = int(request_of[order[later]])
        same = session[request] == session[other]
        if same and inputs[other] > inputs[request]:
            return other
    return NOBODY
