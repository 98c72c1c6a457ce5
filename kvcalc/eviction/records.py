"""What a run of the engine leaves behind: times by request, tokens, and the gaps between tokens."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass
class Gaps:
    """Times between two tokens of one sequence, as runs of steps whose length grows evenly."""

    runs: list[tuple[float, float, int, int]] = field(default_factory=list)  # first, growth, steps, sequences
    single: list[float] = field(default_factory=list)  # after a stall or an eviction

    def run(self, first: float, growth: float, steps: int, sequences: int) -> None:
        """Note `steps` steps in which `sequences` sequences gained a token each."""
        if sequences:
            self.runs.append((first, growth, steps, sequences))

    def percentiles(self, shares: tuple[float, ...]) -> tuple[float | None, ...]:
        """Return the gap that a share of all gaps does not exceed, for each share."""
        table = np.array(self.runs, dtype=float).reshape(-1, 4)
        steps = table[:, 2].astype(np.int64)
        place = np.arange(steps.sum()) - np.repeat(np.cumsum(steps) - steps, steps)
        times = np.repeat(table[:, 0], steps) + np.repeat(table[:, 1], steps) * place
        times = np.concatenate([times, np.array(self.single)])
        weights = np.concatenate([np.repeat(table[:, 3], steps), np.ones(len(self.single))])
        if not len(times):
            return tuple(None for _ in shares)
        ranked = np.argsort(times)
        below = np.cumsum(weights[ranked])
        places = np.searchsorted(below, np.array(shares) * below[-1])
        return tuple(float(times[ranked[min(place, len(ranked) - 1)]]) for place in places)

    @property
    def count(self) -> int:
        """Return how many gaps there are."""
        return sum(steps * sequences for _, _, steps, sequences in self.runs) + len(self.single)


@dataclass
class Record:
    """Everything that happened to the requests of one run; NaN marks what never happened."""

    first: Floats  # second at which the first token came
    end: Floats  # second at which the last token came
    generated: NDArray[np.int64]
    recomputed: NDArray[np.int64]  # tokens computed again
    evictions: NDArray[np.int64]
    served: Floats  # seconds in the engine, waiting in the queue left out
    pause: Floats  # longest wait for a token after the first one that a stall or an eviction made
    truncated: NDArray[np.bool_]  # stopped where the pool or the longest sequence ends
    rejected: NDArray[np.bool_]  # its prompt alone is longer than that
    gaps: Gaps
    processed: int = 0  # tokens computed, again or for the first time
    near_complete: int = 0  # evictions of sequences about to finish
    held_back: int = 0  # times a sequence had to wait for a block in the middle of its decode
    forced: int = 0  # evictions because nothing else could go on
    swapped: float = 0.0  # bytes moved out
    busy: float = 0.0  # seconds in steps
    used: float = 0.0  # blocks times seconds
    active: float = 0.0  # sequences in the engine times seconds
    duration: float = 0.0  # seconds from the first arrival to the last token
    restarts: list[float] = field(default_factory=list)  # second of each eviction

    def paused(self, number: int, seconds: float) -> None:
        """Note a gap that a stall or an eviction made between two tokens."""
        self.gaps.single.append(seconds)
        self.pause[number] = max(self.pause[number], seconds)

    @classmethod
    def of(cls, count: int) -> "Record":
        """Return an empty record of so many requests."""
        return cls(
            first=np.full(count, np.nan),
            end=np.full(count, np.nan),
            generated=np.zeros(count, dtype=np.int64),
            recomputed=np.zeros(count, dtype=np.int64),
            evictions=np.zeros(count, dtype=np.int64),
            served=np.zeros(count),
            pause=np.zeros(count),
            truncated=np.zeros(count, dtype=bool),
            rejected=np.zeros(count, dtype=bool),
            gaps=Gaps(),
        )
