"""An outcome -> a row: rates under every weight, and where the gap to an infinite cache comes from."""

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from kvcalc.records import record
from kvcalc.replay.capacities import Sizing
from kvcalc.replay.cells import Cell
from kvcalc.replay.outcome import Outcome, prefix_tokens
from kvcalc.replay.results import CAPACITY, NO_GAP, POLICY, ReplayRow, TenantRow, TierRow
from kvcalc.replay.semantics import BLOCK, PREFIX, TOKEN, Semantics
from kvcalc.replay.serving_results import GPU, Serving
from kvcalc.replay.sessions import seen_by_session
from kvcalc.replay.stream import Stream

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kvcalc.replay.serving import Service

NEGLIGIBLE = 1e-3
"""Share of the input tokens below which a gap is none [1]."""

INFINITE_TEXT = "infinite"


@record
class Ruler:
    """Measures outcomes of one stream."""

    stream: Stream
    semantics: Semantics
    sizing: Sizing | None
    service: "Service | None" = None  # None: no machine was named
    followed: float | None = None  # share of the blocks that a sample follows; None: all

    @cached_property
    def asked_tokens(self) -> int:
        """Input tokens of the counted requests."""
        return int(self.stream.trace.input_tokens[self.stream.counted].sum())

    @cached_property
    def asked_blocks(self) -> int:
        """Blocks of the counted requests."""
        return int(self.stream.blocks[self.stream.counted].sum())

    @cached_property
    def own(self) -> "NDArray[np.int64] | None":
        """First blocks of each request that its session had asked for; None without sessions."""
        return seen_by_session(self.stream) if self.stream.trace.sessions else None

    def tokens(self, outcome: Outcome) -> int:
        """Return the hit tokens of the counted requests."""
        return int(outcome.hit_tokens[self.stream.counted].sum())

    def bytes_of(self, blocks: float) -> float | None:
        """Return what blocks take, where that is known."""
        return None if self.sizing is None else self.sizing.bytes_of(blocks)

    def capacity_tokens(self, blocks: float) -> float:
        """Return the tokens of full blocks."""
        return blocks * (self.stream.trace.block_tokens or 1)

    def row(
        self, cell: Cell, found: Outcome, best: Outcome, infinite: Outcome, shared: Outcome | None
    ) -> ReplayRow:
        """Return the row of an outcome, beside the best at its capacity and that of an infinite cache.

        `shared` is the same cache without the quotas of this one.
        """
        counted = self.stream.counted
        tokens, blocks = self.tokens(found), int(found.hit_blocks[counted].sum())
        most, bound = self.tokens(infinite), self.tokens(best)
        size = None if cell.capacity is None else cell.capacity.blocks
        by_policy = max(0, bound - tokens) / max(1, self.asked_tokens)
        by_capacity = (most - max(bound, tokens)) / max(1, self.asked_tokens)
        rates = {
            TOKEN: tokens / max(1, self.asked_tokens),
            BLOCK: blocks / max(1, self.asked_blocks),
        }
        by_request = self._by_request(found)
        within = self._within(found)
        return ReplayRow(
            policy=cell.task.policy,
            quota=cell.quota,
            capacity=INFINITE_TEXT if cell.capacity is None else cell.capacity.text,
            capacity_blocks=size,
            capacity_tokens=None if size is None else self.capacity_tokens(size),
            capacity_bytes=None if size is None else self.bytes_of(size),
            hit_rate=rates.get(self.semantics.weight, by_request),
            hit_rate_tokens=rates[TOKEN],
            hit_rate_blocks=rates[BLOCK],
            hit_rate_requests=by_request,
            hit_tokens=tokens,
            hit_blocks=blocks,
            computed_tokens=self.asked_tokens - tokens,
            recomputed_tokens=max(0, most - tokens),
            restored_bytes=self.bytes_of(blocks - self._fastest(found)),
            inserted_blocks=found.inserted,
            evictions=found.evictions,
            within_session=None if within is None else within / tokens if tokens else 0.0,
            across_sessions=None if within is None else 1 - within / tokens if tokens else 0.0,
            lost_to_capacity=by_capacity,
            lost_to_policy=by_policy,
            quota_cost=None if shared is None else (self.tokens(shared) - tokens) / max(1, self.asked_tokens),
            gap=_gap(by_capacity, by_policy),
            tiers=self._tiers(found),
            tenants=self._tenants(found, infinite),
            serving=self._serving(found),
        )

    def _serving(self, found: Outcome) -> Serving | None:
        """Return what hits do on the machine; of a single cache, as if the GPUs held it."""
        if self.service is None or self.semantics.hits != PREFIX:
            return None
        if not found.tiers:
            return self.service.serving({GPU: found.hit_tokens[self.stream.counted]})
        return self.service.serving({part.name: part.hit_tokens[self.stream.counted] for part in found.tiers})

    def _by_request(self, found: Outcome) -> float:
        asked = self.stream.blocks[self.stream.counted]
        hits = found.hit_blocks[self.stream.counted]
        some = asked > 0
        return float((hits[some] / asked[some]).mean()) if some.any() else 0.0

    def _within(self, found: Outcome) -> int | None:
        """Return the hit tokens of blocks that their session had asked for before."""
        if self.own is None or self.semantics.hits != PREFIX:
            return None
        first = np.minimum(found.hit_blocks, self.own)
        return int(prefix_tokens(self.stream, first)[self.stream.counted].sum())

    def _fastest(self, found: Outcome) -> int:
        """Return the hit blocks that need no restore: those of the fastest of several tiers."""
        return int(found.tiers[0].hit_blocks[self.stream.counted].sum()) if found.tiers else 0

    def _tiers(self, found: Outcome) -> tuple[TierRow, ...]:
        return tuple(
            TierRow(
                tier=part.name,
                capacity_blocks=part.capacity,
                capacity_bytes=self.bytes_of(part.capacity),
                hit_rate_tokens=int(part.hit_tokens[self.stream.counted].sum()) / max(1, self.asked_tokens),
                hit_tokens=int(part.hit_tokens[self.stream.counted].sum()),
                restored_bytes=self.bytes_of(int(part.hit_blocks[self.stream.counted].sum()) if index else 0),
                written_blocks=part.inserted,
                written_bytes=self.bytes_of(part.inserted),
                evictions=part.evictions,
            )
            for index, part in enumerate(found.tiers)
        )

    def _tenants(self, found: Outcome, infinite: Outcome) -> tuple[TenantRow, ...]:
        trace = self.stream.trace
        rows = []
        for index, name in enumerate(trace.tenants):
            own = self.stream.counted & (trace.tenant == index)
            asked, hits = int(trace.input_tokens[own].sum()), int(found.hit_tokens[own].sum())
            rows.append(
                TenantRow(
                    tenant=name,
                    quota_blocks=found.quotas[index] if found.quotas else None,
                    requests=int(own.sum()),
                    input_tokens=asked,
                    hit_tokens=hits,
                    hit_rate_tokens=hits / max(1, asked),
                    recomputed_tokens=max(0, int(infinite.hit_tokens[own].sum()) - hits),
                )
            )
        return tuple(rows)


def _gap(by_capacity: float, by_policy: float) -> str:
    if by_capacity + by_policy < NEGLIGIBLE:
        return NO_GAP
    return CAPACITY if by_capacity >= by_policy else POLICY
