"""Live sequences, as a file lists them, and as the arrays that policies look at."""

from collections.abc import Sequence as Many
from dataclasses import dataclass

import numpy as np

from kvcalc.eviction.crowd import Crowd

STATES = ("running", "suspended", "finished")
RUNNING, SUSPENDED, FINISHED = STATES


@dataclass(frozen=True, slots=True)
class LiveSequence:
    """One sequence that holds KV now."""

    id: str
    tokens_done: int  # tokens whose KV it holds
    tokens_remaining: int  # still to generate, as known or expected in the middle
    tokens_remaining_p95: int | None = None  # as many as 95 % of such sequences
    state: str = RUNNING
    tenant: str | None = None
    priority: float = 0.0  # larger matters more
    idle_seconds: float = 0.0  # since its last token
    evicted_seconds_ago: float | None = None  # None: never
    blocks: int | None = None  # that it holds; None: as many as its tokens take
    shared_blocks: int = 0  # of these, held by others too

    @property
    def finished(self) -> bool:
        """Whether nothing is left to generate and only its blocks are still there."""
        return self.state == FINISHED


def crowd_of(sequences: Many[LiveSequence]) -> Crowd:
    """Return the sequences as arrays, in their order; the first one listed counts as admitted first."""
    ago = [np.inf if s.evicted_seconds_ago is None else s.evicted_seconds_ago for s in sequences]
    return Crowd(
        done=np.array([s.tokens_done for s in sequences], dtype=float),
        remaining=np.array([s.tokens_remaining for s in sequences], dtype=float),
        priority=np.array([s.priority for s in sequences], dtype=float),
        idle=np.array([s.idle_seconds for s in sequences], dtype=float),
        evicted_ago=np.array(ago, dtype=float),
        finished=np.array([s.finished for s in sequences], dtype=bool),
        age=np.arange(len(sequences), dtype=float),
    )
