"""The rules of a `kv_eviction` file on a prefix cache: sessions are ranked, protected and left to cool down.

A session's sequence is what the cache holds of it.  Its tokens to go are the output of its requests still to
come, which the trace knows; it is finished after the last one.  A victim loses its tail, only as much as is
needed.  If nobody may go, the request is served and not cached.
"""

import numpy as np

from kvcalc.errors import SettingsError
from kvcalc.eviction.crowd import Crowd, Floats
from kvcalc.eviction.policies import ratios
from kvcalc.eviction.rules import class_of, protected
from kvcalc.replay.options import Options
from kvcalc.replay.outcome import Case, Outcome, kept, of_prefix
from kvcalc.replay.policies.uniform import require_one_size
from kvcalc.replay.semantics import ATOMIC, PREFIX, TAIL
from kvcalc.replay.trace import NOWHERE


def replay(case: Case) -> Outcome:
    """Replay the rules."""
    require_one_size(case, "rules")
    said, trace = case.semantics, case.stream.trace
    if said.hits != PREFIX or said.touch != TAIL or said.lookup != ATOMIC:
        raise SettingsError("policy rules: is replayed with touch=tail, lookup=atomic and hits=prefix alone")
    if np.isnan(trace.time).any():
        raise SettingsError(
            f"policy rules: needs times (idle, cooldown), and {trace.name} has requests without"
        )
    cache = _Sessions(case)
    hits = [cache.request(request, room) for request, room in enumerate(kept(case.stream, case).tolist())]
    return of_prefix(case.stream, np.array(hits, np.int64), cache.inserted, cache.evictions)


class _Sessions:
    """What each request left behind, by session."""

    def __init__(self, case: Case) -> None:
        stream, trace = case.stream, case.stream.trace
        groups = stream.groups
        options = case.options if isinstance(case.options, Options) else Options()
        self.rules = options.rules
        self.capacity = case.capacity
        self.block_tokens = trace.block_tokens
        self.start, self.owner, self.size = (
            array.tolist() for array in (groups.start, groups.owner, groups.size)
        )
        alone = len(trace.sessions) + np.arange(trace.requests)
        self.session = np.where(trace.session == NOWHERE, alone, trace.session)
        count = len(trace.sessions) + trace.requests
        self.outputs = trace.output_tokens.astype(float)
        self.to_go: Floats = np.bincount(self.session, self.outputs, minlength=count).astype(np.float64)
        self.requests_to_go = np.bincount(self.session, minlength=count)
        self.priority = np.zeros(count)
        for tenant, priority in options.priorities.items():
            if tenant in trace.tenants:
                self.priority[self.session[trace.tenant == trace.tenants.index(tenant)]] = priority
        self.time = trace.time
        self.touched = np.full(count, -np.inf)
        self.evicted_at = np.full(count, -np.inf)
        self.age = np.full(count, np.inf)
        self.held = np.zeros(count, np.int64)
        self.entries: dict[int, list[int]] = {}
        self.left = [0] * trace.requests
        self.used = self.inserted = self.evictions = 0

    def request(self, request: int, room: int) -> int:
        """Serve one request; return the blocks that it hits."""
        session, now = int(self.session[request]), float(self.time[request])
        self.to_go[session] -= self.outputs[request]
        self.requests_to_go[session] -= 1
        self.touched[session] = now
        self.age[session] = min(self.age[session], request)
        found, moved = self._look_up(request, take=False)
        new = room - moved
        if not self._make_room(self.used + new - self.capacity, session, now) or room == 0:
            return found
        _, moved = self._look_up(request, take=True)
        self.inserted += max(0, room - moved)
        self.evictions += max(0, moved - room)
        self.left[request] = room
        self._hold(session, room)
        self.entries.setdefault(session, []).append(request)
        return found

    def _look_up(self, request: int, take: bool) -> tuple[int, int]:
        """Return the blocks that a request hits and all of its blocks that are cached, and take them over."""
        found = moved = 0
        whole = True
        for group in range(self.start[request], self.start[request + 1]):
            last = self.owner[group]
            have = min(self.left[last], self.size[group])
            found += have if whole else 0
            whole = whole and have == self.size[group]
            moved += have
            if take:
                self.left[last] -= have
                self._hold(int(self.session[last]), -have)
        return found, moved

    def _hold(self, session: int, blocks: int) -> None:
        self.held[session] += blocks
        self.used += blocks

    def _make_room(self, over: int, running: int, now: float) -> bool:
        """Evict from other sessions until so much is free; tell whether it is, else evict nothing."""
        if over <= 0:
            return True
        sessions = np.flatnonzero(self.held)
        sessions = sessions[sessions != running]
        crowd = self._crowd(sessions, now)
        place = class_of(self.rules, crowd)
        may_go = np.flatnonzero((place >= 0) & ~protected(self.rules, crowd))
        order = may_go[np.lexsort((-crowd.idle[may_go], ratios(crowd)[may_go], place[may_go]))]
        if int(self.held[sessions[may_go]].sum()) < over:
            return False
        for session in sessions[order].tolist():
            over -= self._evict(session, over)
            self.evicted_at[session] = now
            if over <= 0:
                break
        return True

    def _crowd(self, sessions: "np.typing.NDArray[np.int64]", now: float) -> Crowd:
        ever = np.isfinite(self.evicted_at[sessions])
        return Crowd(
            done=(self.held[sessions] * self.block_tokens).astype(np.float64),
            remaining=self.to_go[sessions],
            priority=self.priority[sessions],
            idle=now - self.touched[sessions],
            evicted_ago=np.where(ever, now - self.evicted_at[sessions], np.inf),
            finished=self.requests_to_go[sessions] == 0,
            age=self.age[sessions],
        )

    def _evict(self, session: int, over: int) -> int:
        """Take blocks from a session, its oldest request first, from the tail; return how many."""
        gone = 0
        entries = self.entries[session]
        while entries and gone < over:
            request = entries[0]
            part = min(self.left[request], over - gone)
            self.left[request] -= part
            gone += part
            if self.left[request] == 0:
                entries.pop(0)
        self._hold(session, -gone)
        self.evictions += gone
        return gone
