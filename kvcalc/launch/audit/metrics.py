"""What metrics with misleading names count, and what they do not."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from kvcalc.errors import DomainError

Counts = Literal["live", "in flight", "fill"]


@dataclass(frozen=True)
class Metric:
    """One metric: the share of what it gives, in words."""

    name: str
    counts: Counts
    means: str
    instead: str


METRICS = (
    Metric(
        "vllm:kv_cache_usage_perc",
        "live",
        "blocks of running requests only; cached blocks that nobody uses count as free",
        "nothing shows cached blocks; high use means many live tokens, not a full or leaking cache",
    ),
    Metric(
        "vllm:gpu_cache_usage_perc",
        "live",
        "the older name of vllm:kv_cache_usage_perc: blocks of running requests only",
        "nothing shows cached blocks; high use means many live tokens, not a full or leaking cache",
    ),
    Metric(
        "vllm:cpu_cache_usage_perc",
        "in flight",
        "the share of the CPU tier that transfers under way have pinned",
        "cpu_cache_occupied_bytes over cpu_cache_capacity_bytes",
    ),
    Metric(
        "sglang:token_usage",
        "live",
        "tokens of running requests over the pool; what the radix tree could evict counts as free",
        "hicache_host_used_tokens over hicache_host_total_tokens for the host tier",
    ),
    Metric("cpu_cache_occupied_bytes", "fill", "bytes of the CPU tier that hold KV", ""),
    Metric("hicache_host_used_tokens", "fill", "tokens that the host tier holds", ""),
    Metric("lmcache:local_cache_usage", "fill", "bytes that LMCache's host tier holds", ""),
)

_FILLS = (
    ("cpu_cache_occupied_bytes", "cpu_cache_capacity_bytes"),
    ("hicache_host_used_tokens", "hicache_host_total_tokens"),
)


def tier_fill(values: Mapping[str, float]) -> float:
    """Return how full a tier is, from metrics that can say so.

    Parameters
    ----------
    values : metrics by name, with or without the engine's prefix

    Raises
    ------
    DomainError
        If only metrics are given that count something else; says what they count.

    Examples
    --------
    >>> tier_fill({"vllm:cpu_cache_occupied_bytes": 30e9, "vllm:cpu_cache_capacity_bytes": 60e9})
    0.5
    """
    bare = {name.rpartition(":")[2]: value for name, value in values.items()}
    for used, capacity in _FILLS:
        if used in bare and bare.get(capacity):
            return bare[used] / bare[capacity]
    for metric in METRICS:
        if metric.counts != "fill" and metric.name.rpartition(":")[2] in bare:
            raise DomainError(f"{metric.name} is no fill: it counts {metric.means}; {metric.instead}")
    raise DomainError("no metric of how full a tier is: " + ", ".join(" and ".join(pair) for pair in _FILLS))
