"""Gathers the requests of a file, line by line, and makes the trace of them in bounded memory."""

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from kvcalc.documents import describe
from kvcalc.records import record
from kvcalc.replay.readers.chains import Runs, compacted, joined, kept, merged
from kvcalc.replay.readers.values import BrokenLineError
from kvcalc.replay.trace import NOWHERE, runs_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

CHUNK = 1 << 20
"""Blocks that are kept as ids before they become runs [1]."""
SCOPE_RANGE = 2**40
"""Numbers that the ids of one scope may take [1]."""
SHORT_RUN = 1.5
"""Mean blocks of a run below which numbers are taken for hashes, which have no order of their own [1]."""
MOST_ID = 2**62
"""Numbers from here on are taken for hashes, whose neighbours mean nothing."""
MOST_NUMBER = 2**64
"""Numbers from here on have more than 64 bits."""
MOST_RUN = 2**32
"""Longest run of blocks that is believed [1]."""


@record
class Request:
    """One request as a reader found it."""

    blocks: Any  # list of ids (numbers or texts), or of [first, count]
    input_tokens: int  # [token]
    output_tokens: int = 0  # [token]
    time: float = math.nan  # [second]
    session: str | None = None
    tenant: str | None = None
    agent: int = 0  # 0: the session's own; else a nested agent's
    scope: str | None = None  # ids are unique within it; None: within the file


@record
class Gathered:
    """All requests of a trace, as arrays; `files` and `lines` say where each stood."""

    runs: Runs
    files: "NDArray[np.int64]"  # which of the trace's files, from 0 on
    lines: "NDArray[np.int64]"
    input_tokens: "NDArray[np.int64]"
    output_tokens: "NDArray[np.int64]"
    time: "NDArray[np.float64]"
    session: "NDArray[np.int64]"
    tenant: "NDArray[np.int64]"
    sessions: tuple[str, ...]
    tenants: tuple[str, ...]
    agent: "NDArray[np.int64] | None"  # None: no agents are nested
    names: tuple[Any, ...] | None  # by id: what the file calls it, where it was numbered here


def some_of(found: Gathered, keep: "NDArray[np.bool_]") -> Gathered:
    """Return those requests alone that `keep` marks, with the sessions and tenants that they name."""
    session, sessions = _named(found.session[keep], found.sessions)
    tenant, tenants = _named(found.tenant[keep], found.tenants)
    return Gathered(
        runs=merged(compacted(kept(found.runs, keep))),
        files=found.files[keep],
        lines=found.lines[keep],
        input_tokens=found.input_tokens[keep],
        output_tokens=found.output_tokens[keep],
        time=found.time[keep],
        session=session,
        tenant=tenant,
        sessions=sessions,
        tenants=tenants,
        agent=None if found.agent is None else found.agent[keep],
        names=None,
    )


def _named(index: "NDArray[np.int64]", names: tuple[str, ...]) -> "tuple[NDArray[np.int64], tuple[str, ...]]":
    """Give the names that are left new numbers, in their order."""
    used = np.unique(index[index != NOWHERE])
    new = np.where(index == NOWHERE, NOWHERE, np.searchsorted(used, index))
    return new.astype(np.int64), tuple(names[one] for one in used.tolist())


class _Numbers(dict[Any, int]):
    """Numbers for hashes, in the order in which they come."""

    def __missing__(self, key: Any) -> int:  # noqa: ANN401 - a number, a text, or either with its scope
        number = self[key] = len(self)
        return number


class Collector:
    """Takes requests; `gathered` gives them back as arrays."""

    def __init__(self, numbered: bool = False) -> None:
        self.file = 0  # number of the file whose lines are taken
        self.files: list[int] = []
        self.lines: list[int] = []
        self._runs: list[tuple[NDArray[np.int64], ...]] = []  # done
        self._parts: list[NDArray[np.int64]] = []  # of the chunk: ids, or runs of them in two columns
        self._columns = 0  # 1: ids, 2: runs; 0: not known yet
        self._waiting = 0
        self._numbers: _Numbers | None = _Numbers() if numbered else None
        self._scopes = _Numbers()
        self._lengths: list[tuple[int, int, float]] = []
        self._session, self._sessions = [], _Numbers()  # type: list[int], _Numbers
        self._agent: list[int] = []
        self._tenant, self._tenants = [], _Numbers()  # type: list[int], _Numbers

    def add(self, line: int, requests: Iterable[Request]) -> None:
        """Take the requests of one line, all or none.

        Raises
        ------
        BrokenLineError
            If block ids are neither numbers nor texts, nor runs of numbers.
        """
        ready = [(request, self._part(request)) for request in requests]
        for request, part in ready:
            self._add(line, request, part)

    def _add(self, line: int, request: Request, part: "NDArray[Any]") -> None:
        if self._numbers is not None:
            part = self._numbered(part, request)
        self._parts.append(part)
        self._waiting += len(part)
        self.files.append(self.file)
        self.lines.append(line)
        self._agent.append(request.agent)
        self._lengths.append((request.input_tokens, request.output_tokens, request.time))
        for name, where, names in (
            (request.session, self._session, self._sessions),
            (request.tenant, self._tenant, self._tenants),
        ):
            where.append(NOWHERE if name is None else names[name])
        if self._waiting >= CHUNK:
            self._flush()

    def _part(self, request: Request) -> "NDArray[Any]":
        """Return the ids of a request, unique over all scopes, if they are of the kind of those before."""
        found = _array(request.blocks)
        if not len(found):
            return found
        if self._columns not in (0, found.ndim):
            raise BrokenLineError(
                "single block ids after runs of them"
                if found.ndim == 1
                else "runs of block ids after single ids"
            )
        if found.ndim == 2 and (self._numbers is not None or request.scope is not None):
            raise BrokenLineError("runs of block ids, where ids hold within a session or are hashes")
        if found.ndim == 1 and found.dtype.kind == "i" and request.scope is not None:
            found = self._scoped(found, request.scope)
        if found.dtype.kind != "i" and self._numbers is None:
            if self._runs:
                raise BrokenLineError("block ids of another kind than in the lines before")
            self._number()
        self._columns = found.ndim
        return found

    def _scoped(self, ids: "NDArray[np.int64]", scope: str) -> "NDArray[Any]":
        """Give the ids of a scope a range of their own; as objects where they do not fit into one."""
        place = self._scopes[scope] + 1
        if int(ids.min()) >= 0 and int(ids.max()) < SCOPE_RANGE and place < MOST_ID // SCOPE_RANGE:
            return ids + place * SCOPE_RANGE
        return np.empty(len(ids), object)

    def _numbered(self, part: "NDArray[Any]", request: Request) -> "NDArray[np.int64]":
        """Return the numbers of ids; hashes within a scope are known by it too."""
        if self._numbers is None or not len(part):
            return part
        keys: Any = part.tolist()
        if part.dtype.kind != "i":
            scope = request.scope
            keys = request.blocks if scope is None else [self._key(scope, one) for one in request.blocks]
        return np.fromiter(map(self._numbers.__getitem__, keys), np.int64, len(part))

    def _key(self, scope: str, block: int | str) -> Any:  # noqa: ANN401 - a number, or with its scope
        """Return what a block is known by, which is the same whatever stands beside it in its request."""
        if isinstance(block, int) and 0 <= block < SCOPE_RANGE:
            return block + (self._scopes[scope] + 1) * SCOPE_RANGE
        return scope, block

    def _number(self) -> None:
        """Give the ids of this chunk, and of all that follow, numbers in the order in which they come."""
        if self._numbers is None:
            numbers = self._numbers = _Numbers()
            self._parts = [
                np.fromiter(map(numbers.__getitem__, part.tolist()), np.int64, len(part))
                for part in self._parts
            ]

    def _flush(self) -> None:
        if not self._parts:
            return
        starts = np.cumsum([0, *map(len, self._parts)], dtype=np.int64)
        if self._columns == 2:
            pairs = np.concatenate([part.reshape(-1, 2) for part in self._parts])
            self._runs.append((pairs[:, 0].copy(), pairs[:, 1].copy(), starts))
        else:
            runs = runs_of(np.concatenate(self._parts), starts)
            if self._numbers is None and not self._runs and starts[-1] < SHORT_RUN * len(runs[0]):
                self._number()
                runs = runs_of(np.concatenate(self._parts), starts)
            self._runs.append(runs)
        self._parts, self._waiting = [], 0

    def gathered(self) -> Gathered:
        """Return all requests as arrays; ids are dense, and chain hashes only if the file's are."""
        self._flush()
        lengths = np.array(self._lengths, np.float64).reshape(-1, 3)
        return Gathered(
            runs=merged(compacted(joined(self._runs))),
            files=np.array(self.files, np.int64),
            lines=np.array(self.lines, np.int64),
            input_tokens=lengths[:, 0].astype(np.int64),
            output_tokens=lengths[:, 1].astype(np.int64),
            time=lengths[:, 2].copy(),
            session=np.array(self._session, np.int64),
            tenant=np.array(self._tenant, np.int64),
            sessions=tuple(self._sessions),
            tenants=tuple(self._tenants),
            agent=np.array(self._agent, np.int64) if any(self._agent) else None,
            names=None if self._numbers is None else tuple(self._numbers),
        )


def _array(blocks: Any) -> "NDArray[Any]":  # noqa: ANN401 - as parsed
    """Return block ids as an array: of numbers, of runs (two columns), or of anything that hashes may be."""
    if not isinstance(blocks, list):
        raise BrokenLineError(f"block ids: expected a list, got {describe(blocks)}")
    if not blocks:
        return np.zeros(0, np.int64)
    try:
        found = np.array(blocks)
    except (ValueError, OverflowError):
        raise BrokenLineError("block ids: neither a list of ids nor of [first, count]") from None
    if found.dtype.kind == "i" and found.min() <= 1:
        _refuse_booleans(blocks)
    if found.ndim == 2 and found.dtype.kind == "i" and found.shape[1] == 2:
        found = found.astype(np.int64)
        if (
            found.min() < 0
            or found[:, 1].min() < 1
            or found[:, 0].max() > MOST_ID
            or found[:, 1].max() > MOST_RUN
        ):
            raise BrokenLineError("block ids: a run is [first, count], with first from 0 and count from 1 on")
        return found
    if (
        found.ndim == 1
        and found.dtype.kind == "i"
        and abs(int(found.min())) + abs(int(found.max())) < MOST_ID
    ):
        return found.astype(np.int64)
    for block in blocks:
        if _wide(block):
            raise BrokenLineError("block ids: a number of more than 64 bits; write such ids as texts")
        if isinstance(block, bool) or not isinstance(block, int | str):
            raise BrokenLineError(f"block ids: {describe(block)} is neither a whole number nor a text")
    return np.empty(len(blocks), object)


def _wide(block: Any) -> bool:  # noqa: ANN401 - as parsed
    """Tell whether a number has more than 64 bits; one JSON parser gives these as floats, rounded."""
    if isinstance(block, float):
        return 2 * abs(block) >= MOST_NUMBER
    return isinstance(block, int) and not -MOST_NUMBER <= 2 * block < 2 * MOST_NUMBER


def _refuse_booleans(blocks: list[Any]) -> None:
    """Refuse true and false, which numpy takes for 1 and 0."""
    for block in blocks:
        for one in block if isinstance(block, list) else (block,):
            if isinstance(one, bool):
                raise BrokenLineError(f"block ids: {describe(one)} is neither a whole number nor a text")
