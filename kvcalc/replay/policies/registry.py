"""The replacement policies by name: what each evicts, and what a grid and a help page ask of it.

Apart from the replays themselves, so that the command line names them without loading numpy.
"""

from collections.abc import Mapping
from types import MappingProxyType

from kvcalc.records import record

FIFO, LRU, BELADY, INFINITE = "fifo", "lru", "belady", "infinite"


@record
class Policy:
    """One policy, as others see it."""

    evicts: str  # what, in a line
    always: bool = False  # shown by every result, so that a gap can be put down to capacity or to the policy
    bound: bool = False  # what no cache of that capacity exceeds
    by_request: bool = False  # whether its time goes by requests and not by single blocks


POLICIES: Mapping[str, Policy] = MappingProxyType(
    {
        FIFO: Policy("first in, first out", always=True, by_request=True),
        LRU: Policy(
            "least recently used, which evicts leaves of the prefix tree", always=True, by_request=True
        ),
        "lfu": Policy("least frequently used since it came in"),
        "perfect-lfu": Policy("least frequently used since the trace began"),
        "arc": Policy("ARC: recency and frequency, balanced by ghosts"),
        "s3fifo": Policy("S3-FIFO: a small queue before the main one"),
        "sieve": Policy("SIEVE: a hand that spares what was hit"),
        "gdsf": Policy("greedy dual size frequency at unit cost"),
        "cost": Policy("cheapest to recompute first, among leaves of the prefix tree"),
        "rules": Policy("the rules of a kv_eviction file, by session: protection and cooldown"),
        "belady-insert": Policy("Belady's rule for a cache that takes every block"),
        BELADY: Policy(
            "bound: used again latest first, a block may be refused",
            always=True,
            bound=True,
            by_request=True,
        ),
        INFINITE: Policy("bound: never evicts", always=True, bound=True, by_request=True),
    }
)
"""Policy by name; those that every result shows stand in the order of its rows, bounds last."""

ALWAYS = tuple(name for name, one in POLICIES.items() if one.always)
"""Policies that every result shows."""

BOUNDS = tuple(name for name, one in POLICIES.items() if one.bound)
"""Policies of which none does better."""

CHOICES = tuple(name for name in POLICIES if name not in ALWAYS)
"""Policies that a question may add to those."""
