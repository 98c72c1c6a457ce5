"""Replacement policies by name, one file each: a function from a case to what it found."""

from collections.abc import Callable, Mapping
from importlib import import_module
from types import MappingProxyType

from kvcalc.errors import SettingsError, did_you_mean
from kvcalc.replay.outcome import Case, Outcome

FIFO, LRU, BELADY, INFINITE = "fifo", "lru", "belady", "infinite"

POLICIES: Mapping[str, str] = MappingProxyType(
    {
        LRU: "least recently used, which evicts leaves of the prefix tree",
        FIFO: "first in, first out",
        "lfu": "least frequently used since it came in",
        "perfect-lfu": "least frequently used since the trace began",
        "arc": "ARC: recency and frequency, balanced by ghosts",
        "s3fifo": "S3-FIFO: a small queue before the main one",
        "sieve": "SIEVE: a hand that spares what was hit",
        "gdsf": "greedy dual size frequency at unit cost",
        "cost": "cheapest to recompute first, among leaves of the prefix tree",
        "rules": "the rules of a kv_eviction file, by session: protection and cooldown",
        "belady-insert": "Belady's rule for a cache that takes every block",
        BELADY: "bound: used again latest first, a block may be refused",
        INFINITE: "bound: never evicts",
    }
)
"""Policy -> what it evicts, in a line."""

ALWAYS = (FIFO, LRU, BELADY, INFINITE)
"""Policies that every result shows, so that a gap can be put down to capacity or to the policy."""

BOUNDS = (BELADY, INFINITE)


def policy(name: str) -> Callable[[Case], Outcome]:
    """Return the function that replays a policy.

    Raises
    ------
    SettingsError
        If no policy has this name.
    """
    if name not in POLICIES:
        raise SettingsError(f"policy: unknown policy {name!r:.60}{did_you_mean(name, tuple(POLICIES))}")
    module = import_module(f"kvcalc.replay.policies.{name.replace('-', '_')}")
    found: Callable[[Case], Outcome] = module.replay
    return found
