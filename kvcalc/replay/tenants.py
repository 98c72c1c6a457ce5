"""Tenants of one cache: all of it shared, a floor that others cannot take, or a part for each alone.

Under hard quotas each tenant is a trace of its own, and what two of them have in common is kept twice.  With
floors a block belongs to the tenant that touched it last, and the least recently used block goes among those
of tenants that hold more than their floor.
"""

from collections.abc import Mapping
from dataclasses import replace as changed
from types import MappingProxyType

import numpy as np

from kvcalc.errors import SettingsError
from kvcalc.records import record
from kvcalc.replay.outcome import Case, Outcome, kept, of_prefix
from kvcalc.replay.policies import lru
from kvcalc.replay.policies.uniform import require_one_size
from kvcalc.replay.semantics import ATOMIC, PREFIX, TAIL
from kvcalc.replay.stream import Stream, take
from kvcalc.replay.trace import NOWHERE, Trace
from kvcalc.wording import counted

SHARED, FLOOR, HARD = "shared", "floor", "hard"
MODES = (SHARED, FLOOR, HARD)
MEANINGS: Mapping[str, str] = MappingProxyType(
    {
        SHARED: "tenants share all of the cache",
        FLOOR: "a tenant keeps its part while it uses it; what no tenant's part needs is shared",
        HARD: "a tenant has its part alone, and what two tenants have in common is kept twice",
    }
)
"""Word of the quota -> what it means, in one line."""


@record
class Quotas:
    """What each tenant has of a cache, in the order in which the trace names them."""

    mode: str  # floor or hard
    parts: tuple[int, ...]  # blocks, or tokens where blocks differ


def parts_of(trace: Trace, capacity: int, shares: "dict[str, float] | None" = None) -> tuple[int, ...]:
    """Return the part of each tenant of a capacity: equal ones, or the shares that are given by name.

    Raises
    ------
    SettingsError
        If the trace has no tenants or requests without one, a name is unknown, or shares exceed the whole.
    """
    if not trace.tenants:
        raise SettingsError(f"--quota: {trace.name} names no tenants")
    nameless = int((trace.tenant == NOWHERE).sum())
    if nameless:
        raise SettingsError(
            f"--quota: {counted(nameless, 'request')} of {trace.name} without a tenant and so without quota"
        )
    if not shares:
        return tuple(capacity // len(trace.tenants) for _ in trace.tenants)
    for name in shares:
        if name not in trace.tenants:
            from kvcalc.errors import did_you_mean

            raise SettingsError(
                f"--tenant-quota: unknown tenant {name!r:.60}{did_you_mean(name, trace.tenants)}"
            )
    total = sum(shares.values())
    if total > 1 + 1e-9 or min(shares.values()) < 0:
        raise SettingsError(
            f"--tenant-quota: the shares add up to {total:.0%}; at most 100 % of the cache is there"
        )
    left = [name for name in trace.tenants if name not in shares]
    rest = max(0.0, 1 - total) / len(left) if left else 0.0
    return tuple(int(capacity * shares.get(name, rest)) for name in trace.tenants)


def replay(case: Case, quotas: Quotas) -> Outcome:
    """Replay least recently used under quotas."""
    return alone(case, quotas) if quotas.mode == HARD else floors(case, quotas)


def alone(case: Case, quotas: Quotas) -> Outcome:
    """Replay each tenant on its own part."""
    stream = case.stream
    blocks, tokens = np.zeros(stream.requests, np.int64), np.zeros(stream.requests, np.int64)
    inserted = evictions = 0
    for index, part in enumerate(quotas.parts):
        own = np.flatnonzero(stream.trace.tenant == index)
        mine = Stream(take(stream.trace, own), stream.counted[own])
        found = lru.replay(changed(case, stream=mine, capacity=part))
        blocks[own], tokens[own] = found.hit_blocks, found.hit_tokens
        inserted += found.inserted
        evictions += found.evictions or 0
    return Outcome(blocks, tokens, inserted, evictions, quotas=quotas.parts)


def floors(case: Case, quotas: Quotas) -> Outcome:
    """Replay a shared cache that leaves each tenant its floor."""
    require_one_size(case, "lru with floors")
    said = case.semantics
    if said.hits != PREFIX or said.touch != TAIL or said.lookup != ATOMIC:
        raise SettingsError("--quota floor: is replayed with touch=tail, lookup=atomic and hits=prefix alone")
    if sum(quotas.parts) > case.capacity:
        raise SettingsError("--tenant-quota: the floors are more than the cache")
    cache = _Floors(case, quotas)
    keep = kept(case.stream, case).tolist()
    hits = [cache.request(request, room) for request, room in enumerate(keep)]
    found = of_prefix(case.stream, np.array(hits, np.int64), cache.inserted, cache.evictions)
    return changed(found, quotas=quotas.parts)


class _Floors:
    """What each request left behind, by tenant, the oldest first."""

    def __init__(self, case: Case, quotas: Quotas) -> None:
        stream = case.stream
        groups = stream.groups
        self.start, self.owner, self.size = (
            array.tolist() for array in (groups.start, groups.owner, groups.size)
        )
        self.tenant = stream.trace.tenant.tolist()
        self.capacity = case.capacity
        self.floor = quotas.parts
        self.left = [0] * stream.requests
        self.usage = [0] * len(quotas.parts)
        self.entries: list[list[int]] = [[] for _ in quotas.parts]  # requests of each tenant
        self.oldest = [0] * len(quotas.parts)  # the first of them that may have something left
        self.inserted = self.evictions = 0

    def request(self, request: int, room: int) -> int:
        """Serve one request; return the blocks that it hits."""
        found = moved = 0
        whole = True
        for group in range(self.start[request], self.start[request + 1]):
            last = self.owner[group]
            have = min(self.left[last], self.size[group])
            found += have if whole else 0
            whole = whole and have == self.size[group]
            if room:
                self.left[last] -= have
                self.usage[self.tenant[last]] -= have
                moved += have
        if room:
            own = self.tenant[request]
            self.inserted += max(0, room - moved)
            self.evictions += max(0, moved - room)
            self.left[request] = room
            self.usage[own] += room
            self.entries[own].append(request)
            self._make_room()
        return found

    def _make_room(self) -> None:
        """Evict the oldest among tenants above their floor until all fits."""
        over = sum(self.usage) - self.capacity
        while over > 0:
            above = [index for index, used in enumerate(self.usage) if used > self.floor[index]]
            index = min(above, key=self._first)
            request = self._first(index)
            gone = min(over, self.left[request], self.usage[index] - self.floor[index])
            self.left[request] -= gone
            self.usage[index] -= gone
            self.evictions += gone
            over -= gone

    def _first(self, tenant: int) -> int:
        """Return the oldest request of a tenant that has something left."""
        entries = self.entries[tenant]
        while not self.left[entries[self.oldest[tenant]]]:
            self.oldest[tenant] += 1
        return entries[self.oldest[tenant]]
