"""Requests as an engine meets them: when each arrives, what it brings and what it will generate."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Requests:
    """All requests of one run, in the order of their arrival."""

    arrival: Floats  # seconds after the first
    prompt: Integers  # tokens
    generate: Integers  # tokens
    cached: Integers  # tokens at the front of the prompt that need no computing
    priority: Floats  # larger matters more

    def __len__(self) -> int:
        return len(self.arrival)

    @property
    def rate(self) -> float:
        """Requests per second."""
        span = float(self.arrival[-1] - self.arrival[0]) if len(self) > 1 else 0.0
        return (len(self) - 1) / span if span else 0.0

    def first(self, count: int) -> "Requests":
        """Return the first `count` requests."""
        return Requests(*(getattr(self, item.name)[:count] for item in fields(self)))

    def faster(self, factor: float) -> "Requests":
        """Return the same requests arriving `factor` times as fast, so that loads differ in nothing else."""
        return replace(self, arrival=self.arrival / factor)


@dataclass(frozen=True)
class Spread:
    """How a length is distributed over requests."""

    kind: str
    values: tuple[float, ...]


KINDS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "constant": ("value",),
        "uniform": ("least", "most"),
        "exponential": ("mean",),
        "lognormal": ("median", "sigma of the logarithm"),
    }
)
"""Distributions and what their numbers mean."""


@dataclass(frozen=True)
class Generator:
    """Random requests: independent arrivals and lengths."""

    rate: float  # requests per second
    prompt: Spread
    generate: Spread
    requests: int
    seed: int = 0
    hit: float = 0.0  # share of each prompt that hits
    high_priority: float = 0.0  # share of requests with priority 1

    def requests_of(self) -> Requests:
        """Return the requests; the same seed gives the same, whatever the rate."""
        # One stream a quantity: a longer prompt does not move the arrivals.
        seeds = np.random.SeedSequence(self.seed).spawn(4)
        arrive, prompts, lengths, ranks = (np.random.default_rng(seed) for seed in seeds)
        gaps = arrive.exponential(1.0, self.requests)
        gaps[0] = 0.0
        prompt = _draw(self.prompt, prompts, self.requests)
        return Requests(
            arrival=np.cumsum(gaps) / self.rate,
            prompt=prompt,
            generate=_draw(self.generate, lengths, self.requests),
            cached=np.minimum((prompt * self.hit).astype(np.int64), prompt - 1),
            priority=(ranks.random(self.requests) < self.high_priority).astype(float),
        )


def _draw(spread: Spread, random: np.random.Generator, count: int) -> Integers:
    """Return whole lengths of at least one token."""
    first = spread.values[0]
    if spread.kind == "uniform":
        return random.integers(int(first), int(spread.values[1]) + 1, count)
    if spread.kind == "exponential":
        # Rounded up, which makes them geometric with nearly the same mean.
        return np.ceil(random.exponential(first, count)).astype(np.int64)
    if spread.kind == "lognormal":
        drawn = random.lognormal(np.log(first), spread.values[1], count)
    else:
        drawn = np.full(count, first)
    return np.maximum(np.rint(drawn), 1).astype(np.int64)
