"""A request trace as arrays: what every reader makes, and all that a replay needs."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from kvcalc.errors import ProfileError
from kvcalc.records import record

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

NOWHERE = -1
"""Index of a session or tenant where the trace names none; predecessor of a first block."""


@record
class Finding:
    """One thing that the reader noticed in a file."""

    name: str  # stable, for programs: "chained", "out_of_order", "partial_last_block", ...
    count: int  # of the lines, requests or blocks that the text speaks of
    text: str  # one sentence for people
    lines: tuple[int, ...] = ()  # the first few line numbers, where they help
    warning: bool = False  # it changes what the numbers mean


@record
class Trace:
    """Requests in the order of their file; each one a chain of blocks, written as runs of consecutive ids.

    Ids are dense (0 to `unique_blocks` - 1) and chained: an id always has the same predecessor, so that it
    stands for the whole prefix up to it.  Request r has the runs `run_start[r]` to `run_start[r + 1]`, and
    run i the ids `run_first[i]` to `run_first[i] + run_blocks[i]` - 1.
    """

    name: str
    dialect: str
    block_tokens: int  # tokens of a full block [token]; 0: blocks differ, see `block_weight`
    run_first: "NDArray[np.int64]"
    run_blocks: "NDArray[np.int64]"
    run_start: "NDArray[np.int64]"  # requests + 1
    input_tokens: "NDArray[np.int64]"  # [token]
    output_tokens: "NDArray[np.int64]"  # [token]
    time: "NDArray[np.float64]"  # of arrival, NaN where the trace has none [second]
    session: "NDArray[np.int64]"  # index into `sessions`, or NOWHERE
    tenant: "NDArray[np.int64]"  # index into `tenants`, or NOWHERE
    sessions: tuple[str, ...] = ()
    tenants: tuple[str, ...] = ()
    block_weight: "NDArray[np.int64] | None" = None  # tokens by id, of traces of components [token]
    component: "NDArray[np.int64] | None" = None  # by id: what the file called it, before it was chained
    agent: "NDArray[np.int64] | None" = None  # 0: the session's own request; else a nested agent's
    findings: tuple[Finding, ...] = ()

    @property
    def requests(self) -> int:
        """Requests of the trace."""
        return len(self.run_start) - 1

    @property
    def accesses(self) -> int:
        """Blocks that all requests ask for, together."""
        return int(self.run_blocks.sum())

    @property
    def unique_blocks(self) -> int:
        """Different blocks; their ids are 0 to this less 1."""
        return int((self.run_first + self.run_blocks).max()) if len(self.run_first) else 0

    @property
    def request_blocks(self) -> "NDArray[np.int64]":
        """Blocks of each request."""
        before = np.concatenate(([0], np.cumsum(self.run_blocks)))
        return before[self.run_start[1:]] - before[self.run_start[:-1]]


def runs_of(ids: "NDArray[np.int64]", starts: "NDArray[np.int64]") -> "tuple[NDArray[np.int64], ...]":
    """Return `run_first`, `run_blocks` and `run_start` of the ids of requests, one after the other.

    >>> first, blocks, start = runs_of(np.array([0, 1, 2, 0, 1, 7]), np.array([0, 3, 6]))
    >>> first.tolist(), blocks.tolist(), start.tolist()
    ([0, 0, 7], [3, 2, 1], [0, 1, 3])
    """
    heads = np.empty(len(ids), dtype=bool)
    heads[:1] = True
    np.not_equal(ids[1:], ids[:-1] + 1, out=heads[1:])
    heads[starts[:-1][starts[:-1] < len(ids)]] = True
    places = np.flatnonzero(heads)
    blocks = np.diff(places, append=len(ids))
    return ids[places], blocks, np.searchsorted(places, starts)


def build_trace(
    requests: Sequence[Sequence[int]],
    block_tokens: int = 1,
    *,
    input_tokens: "ArrayLike | None" = None,
    output_tokens: "ArrayLike | None" = None,
    time: "ArrayLike | None" = None,
    sessions: Sequence[str] = (),
    tenants: Sequence[str] = (),
    name: str = "built",
) -> Trace:
    """Make a trace of requests given as lists of block ids; blocks are full unless `input_tokens` says less.

    Ids that are not dense are made so, in the order in which they come.  `sessions` and `tenants` give one
    name for each request.

    Raises
    ------
    ProfileError
        If an id has two different predecessors: such ids are no chain hashes.

    Examples
    --------
    >>> trace = build_trace([[0, 1, 2], [0, 1, 3]], 16)
    >>> trace.run_first.tolist(), trace.run_blocks.tolist(), trace.input_tokens.tolist()
    ([0, 0, 3], [3, 2, 1], [48, 48])
    """
    dense: dict[int, int] = {}
    before: dict[int, int] = {}
    for request in requests:
        last = NOWHERE
        for block in request:
            here = dense.setdefault(block, len(dense))
            if before.setdefault(here, last) != last:
                raise ProfileError(f"block {block} has two predecessors: ids must be chain hashes")
            last = here
    starts = np.cumsum([0, *(len(request) for request in requests)], dtype=np.int64)
    ids = np.array([dense[block] for request in requests for block in request], dtype=np.int64)
    first, blocks, start = runs_of(ids, starts)
    session, session_names = _index(sessions, len(requests))
    tenant, tenant_names = _index(tenants, len(requests))
    lengths = np.diff(starts) * block_tokens if input_tokens is None else input_tokens
    return Trace(
        name=name,
        dialect="ids",
        block_tokens=block_tokens,
        run_first=first,
        run_blocks=blocks,
        run_start=start,
        input_tokens=np.asarray(lengths, np.int64),
        output_tokens=np.asarray(
            np.zeros(len(requests)) if output_tokens is None else output_tokens, np.int64
        ),
        time=np.asarray(np.full(len(requests), np.nan) if time is None else time, np.float64),
        session=session,
        tenant=tenant,
        sessions=session_names,
        tenants=tenant_names,
    )


def _index(names: Sequence[str], requests: int) -> "tuple[NDArray[np.int64], tuple[str, ...]]":
    if not names:
        return np.full(requests, NOWHERE, np.int64), ()
    known: dict[str, int] = {}
    return np.array([known.setdefault(name, len(known)) for name in names], np.int64), tuple(known)
