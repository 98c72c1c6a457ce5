"""What requests have in common, whatever the cache: blocks that came before, in a session or at all.

All of it rests on chain hashes: blocks of a request that came before are a prefix of it.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from kvcalc.replay.trace import NOWHERE, Trace

if TYPE_CHECKING:
    from numpy.typing import NDArray

AT_ONCE = 1 << 20
"""Blocks whose tokens are summed at a time, where blocks differ [1]."""


def in_time(trace: Trace) -> "NDArray[np.int64]":
    """Return the requests in the order of their times, ties as in the file; or the file's own."""
    if np.isnan(trace.time).any():
        return np.arange(trace.requests)
    return np.argsort(trace.time, kind="stable")


def repeated_blocks(
    trace: Trace, order: "NDArray[np.int64]", group: "NDArray[np.int64]"
) -> "NDArray[np.int64]":
    """Return how many blocks of each request an earlier request of its group had.

    Parameters
    ----------
    trace : the requests
    order : the requests to look at, one group after the other where groups share blocks
    group : of each request, from 0 on
    """
    stamp = np.full(trace.unique_blocks, NOWHERE, np.int64)
    first, blocks = trace.run_first.tolist(), trace.run_blocks.tolist()
    start, groups = trace.run_start.tolist(), group.tolist()
    result = np.zeros(trace.requests, np.int64)
    for request in order.tolist():
        mine, found = groups[request], 0
        for run in range(start[request], start[request + 1]):
            low, count = first[run], blocks[run]
            if stamp[low + count - 1] == mine:
                found += count
                continue
            part = stamp[low : low + count]
            known = int((part == mine).argmin()) if part[0] == mine else 0
            part[known:] = mine
            found += known
        result[request] = found
    return result


def before(trace: Trace, order: "NDArray[np.int64]") -> "NDArray[np.int64]":
    """Return how many blocks of each request any earlier request had: what an infinite cache hits."""
    return repeated_blocks(trace, order, np.zeros(trace.requests, np.int64))


def before_in_session(trace: Trace, order: "NDArray[np.int64]") -> "NDArray[np.int64]":
    """Return how many blocks of each request its own session had before; none where it has no session."""
    named = order[trace.session[order] != NOWHERE]
    by_session = named[np.argsort(trace.session[named], kind="stable")]
    return repeated_blocks(trace, by_session, trace.session)


def shared_with_last(
    trace: Trace, order: "NDArray[np.int64]"
) -> "tuple[NDArray[np.int64], NDArray[np.bool_]]":
    """Return the blocks that each request shares with its session's request before, and which were looked at.

    Requests of nested agents, which do not continue the conversation, are left out.
    """
    first, blocks, start = trace.run_first.tolist(), trace.run_blocks.tolist(), trace.run_start.tolist()
    own = trace.session != NOWHERE
    if trace.agent is not None:
        own &= trace.agent == 0
    last: dict[int, int] = {}
    result = np.zeros(trace.requests, np.int64)
    session = trace.session.tolist()
    for request in order[own[order]].tolist():
        previous = last.get(session[request])
        last[session[request]] = request
        if previous is None:
            continue
        shared = 0
        pairs = zip(
            range(start[previous], start[previous + 1]),
            range(start[request], start[request + 1]),
            strict=False,
        )
        for old, new in pairs:
            if first[old] != first[new]:
                break
            shared += min(blocks[old], blocks[new])
            if blocks[old] != blocks[new]:
                break
        result[request] = shared
    return result, own


def prefix_tokens(trace: Trace, prefix: "NDArray[np.int64]") -> "NDArray[np.int64]":
    """Return the tokens in the first blocks of each request, `prefix` of them; never more than its input."""
    if trace.block_weight is None:
        return np.minimum(prefix * trace.block_tokens, trace.input_tokens)
    result = np.zeros(trace.requests, np.int64)
    for request, ids in _requests(trace):
        result[request] = trace.block_weight[ids[: prefix[request]]].sum()
    return result


def _requests(trace: Trace) -> "Sequence[tuple[int, NDArray[np.int64]]]":
    """Return the ids of each request; for traces of components, which are small."""
    ids = np.concatenate(
        [
            np.zeros(0, np.int64),
            *(
                np.arange(low, low + count)
                for low, count in zip(trace.run_first.tolist(), trace.run_blocks.tolist(), strict=True)
            ),
        ]
    )
    ends = np.concatenate(([0], np.cumsum(trace.request_blocks)))
    return [(request, ids[ends[request] : ends[request + 1]]) for request in range(trace.requests)]


def component_hits(trace: Trace, order: "NDArray[np.int64]") -> int | None:
    """Return the tokens of components that came before anywhere; None where ids are chain hashes."""
    if trace.component is None:
        return None
    weight, component = trace.block_weight, trace.component
    seen = np.zeros(int(component.max()) + 1, bool)
    ids, total = dict(_requests(trace)), 0
    for request in order.tolist():
        mine = ids[request]
        names = component[mine]
        # A component twice in a request hits itself the second time.
        again = np.ones(len(names), bool)
        again[np.unique(names, return_index=True)[1]] = False
        hit = seen[names] | again
        tokens = np.full(len(mine), trace.block_tokens) if weight is None else weight[mine]
        total += int(tokens[hit].sum())
        seen[names] = True
    return total


def accesses_by_block(trace: Trace) -> "NDArray[np.int64]":
    """Return how often each block is asked for."""
    change = np.zeros(trace.unique_blocks + 1, np.int64)
    np.add.at(change, trace.run_first, 1)
    np.add.at(change, trace.run_first + trace.run_blocks, -1)
    return np.cumsum(change)[:-1]


def lifetimes(trace: Trace, order: "NDArray[np.int64]") -> "tuple[NDArray[np.int64], NDArray[np.int64]]":
    """Return the places in `order` of the first and the last request of each block."""
    first, last = np.empty(trace.unique_blocks, np.int64), np.empty(trace.unique_blocks, np.int64)
    low, count, start = trace.run_first.tolist(), trace.run_blocks.tolist(), trace.run_start.tolist()
    places = order.tolist()
    for target, walk in ((last, enumerate(places)), (first, reversed(list(enumerate(places))))):
        for place, request in walk:
            for run in range(start[request], start[request + 1]):
                target[low[run] : low[run] + count[run]] = place
    return first, last
