"""Which metrics of which engine say the same: old and new names, one row a quantity.

Names from the engines' documentation and sources: vLLM https://docs.vllm.ai/en/latest/usage/metrics/,
SGLang https://docs.sglang.ai/references/production_metrics.html, LMCache
https://docs.lmcache.ai/production/observability/, Dynamo KVBM https://docs.nvidia.com/dynamo/.
Counters are printed with or without ``_total``; both are tried.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class Name:
    """One metric that says a quantity."""

    metric: str
    labels: Mapping[str, str] = field(default_factory=dict)


def _names(*metrics: str) -> tuple[Name, ...]:
    return tuple(Name(metric) for metric in metrics)


GAUGES: Mapping[str, tuple[Name, ...]] = MappingProxyType(
    {
        # vLLM counts blocks of live requests; cached blocks that nobody uses count as free.
        "usage": _names("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc", "sglang:token_usage"),
        "running": _names("vllm:num_requests_running", "sglang:num_running_reqs"),
        "waiting": _names("vllm:num_requests_waiting", "sglang:num_queue_reqs"),
        "host_hit_rate": _names("kvbm_host_cache_hit_rate"),
        "disk_hit_rate": _names("kvbm_disk_cache_hit_rate"),
        "sglang_cache_hit_rate": _names("sglang:cache_hit_rate"),
        "lmcache_hit_rate": _names("lmcache:retrieve_hit_rate"),
        "lmcache_lookup_rate": _names("lmcache:lookup_hit_rate"),
    }
)
"""Values of a moment, by quantity."""

COUNTERS: Mapping[str, tuple[Name, ...]] = MappingProxyType(
    {
        "preemptions": _names(
            "vllm:num_preemptions", "sglang:num_retracted_reqs", "sglang:num_retracted_requests"
        ),
        "prompt_tokens": _names("vllm:prompt_tokens", "sglang:prompt_tokens"),
        "generated_tokens": _names("vllm:generation_tokens", "sglang:generation_tokens"),
        "finished": _names(
            "vllm:request_success", "sglang:num_requests", "vllm:e2e_request_latency_seconds_count"
        ),
        "prefix_queries": _names("vllm:prefix_cache_queries", "vllm:gpu_prefix_cache_queries"),
        "prefix_hits": _names("vllm:prefix_cache_hits", "vllm:gpu_prefix_cache_hits"),
        "external_queries": _names("vllm:external_prefix_cache_queries", "lmcache:num_requested_tokens"),
        "external_hits": _names(
            "vllm:external_prefix_cache_hits", "lmcache:num_hit_tokens", "kvbm_matched_tokens"
        ),
        "load_bytes": _names("vllm:kv_offload_load_bytes"),
        "load_seconds": _names("vllm:kv_offload_load_time"),
        # SGLang's own account: retracted input tokens are not recompute.
        "prefill_computed": (Name("sglang:realtime_tokens", {"mode": "prefill_compute"}),),
        "prefill_effective": (Name("sglang:prefill_effective_tokens", {"mode": "input"}),),
    }
)
"""Counters, by quantity; the first name that a scrape has is taken."""

BY_SOURCE: tuple[tuple[str, str], ...] = (
    ("vllm:prompt_tokens_by_source", "source"),
    ("sglang:cached_tokens", "cache_source"),
)
"""Counters of prompt tokens by where their KV came from, and the label that says it."""

LOADED_TOKENS = Name("sglang:load_back_tokens")
LOADED_SECONDS = Name("sglang:load_back_duration_seconds_sum")
"""Tokens that came back from the host, and the seconds that took."""

OLD_LOADS = Name("vllm:kv_offload_total_bytes", {"transfer_type": "CPU_to_GPU"})
OLD_LOAD_TIME = Name("vllm:kv_offload_total_time", {"transfer_type": "CPU_to_GPU"})
"""Names of loads before they were split by direction."""

HISTOGRAMS: Mapping[str, tuple[Name, ...]] = MappingProxyType(
    {
        "prompt_length": _names("vllm:request_prompt_tokens", "sglang:prompt_tokens_histogram"),
        "generated_length": _names("vllm:request_generation_tokens", "sglang:generation_tokens_histogram"),
        "request_preemptions": _names("vllm:request_num_preemptions"),
        "ttft": _names("vllm:time_to_first_token_seconds", "sglang:time_to_first_token_seconds"),
        "itl": _names(
            "vllm:inter_token_latency_seconds",
            "vllm:time_per_output_token_seconds",
            "sglang:inter_token_latency_seconds",
            "sglang:time_per_output_token_seconds",
        ),
        "total": _names("vllm:e2e_request_latency_seconds", "sglang:e2e_request_latency_seconds"),
    }
)
"""Histograms, by quantity."""

ENGINES: Mapping[str, str] = MappingProxyType(
    {"vllm:": "vLLM", "sglang:": "SGLang", "lmcache:": "LMCache", "kvbm_": "Dynamo KVBM", "dynamo_": "Dynamo"}
)
"""Beginnings of names, and who prints them."""
