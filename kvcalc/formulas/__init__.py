"""The mathematics: pure functions of numbers in base units.

Scalars, numpy arrays and pandas Series go in, the same come out.  A formula imports numpy and the
names of the base units, nothing else; its docstring is its contract and the source of `kvcalc explain`.

Importing one formula does not import the others: each name is looked up on first use.
"""

from importlib import import_module

_MODULES = {
    "adapters": ("low_rank_parameters",),
    "breakeven": (
        "NO_BANDWIDTH",
        "NO_LENGTH",
        "ROUNDING",
        "break_even_bandwidth",
        "break_even_tokens",
        "cached_total",
        "confidence",
        "no_break_even",
        "shortest_worthwhile",
        "speedup",
        "verdict",
    ),
    "capacity": (
        "TIE_TOLERANCE",
        "bandwidth_shortfall",
        "bandwidth_utilization",
        "capacity_shortfall",
        "capacity_utilization",
        "first_limit",
        "sequences_of_replica",
        "sessions_short",
        "sessions_that_fit",
        "sweep_time",
    ),
    "chunks": ("chunked_prefill_time",),
    "collective": ("all_reduce_time",),
    "cost": (
        "MILLION",
        "NO_SAVING",
        "break_even_hit_share",
        "break_even_interval",
        "generation_cost",
        "storage_cost",
        "time_cost",
    ),
    "decode": (
        "DecodeStep",
        "NEVER_COMPUTE_BOUND",
        "critical_batch",
        "decode_bandwidth_need",
        "decode_step_time",
        "expert_coverage",
        "tokens_per_second",
        "weights_read",
    ),
    "energy": ("mean_power",),
    "eviction": (
        "SwapTime",
        "THRASH_EVICTIONS",
        "THRASH_SHARE",
        "eviction_loss",
        "finished_requests",
        "first_computed",
        "is_thrashing",
        "price_ratio",
        "recompute_time",
        "recomputed_share",
        "swap_time",
        "thrash_evictions",
    ),
    "kv": (
        "component_bytes",
        "entry_bytes",
    ),
    "memory": (
        "LOGIT_BYTES",
        "activation_bytes",
        "kv_pool",
        "logits_bytes",
        "static_share",
    ),
    "overlap": (
        "extra_wait",
        "overlapped_total",
        "pipeline_time",
        "pipeline_window",
        "prefetch_lead",
    ),
    "partial": (
        "activation_share",
        "partial_split",
        "polynomial_prefill",
    ),
    "prefill": (
        "FLOP_PER_MULTIPLY_ADD",
        "attention_flops",
        "capped_entries",
        "chunked_entries",
        "dense_flop_per_token",
        "full_entries",
        "prefill_flops",
        "prefill_time",
        "state_flop_per_token",
        "strided_entries",
    ),
    "pressure": (
        "NO_SPARE",
        "ONE_IN_A_HUNDRED",
        "expected_occupancy",
        "expected_running",
        "growth_evictions",
        "loop_gain",
        "overrun_probability",
        "overrun_slope",
        "safe_concurrency",
        "victim_price",
    ),
    "queueing": (
        "UNSTABLE",
        "backlog_growth",
        "link_utilization",
        "mean_wait",
        "mixture_variation",
        "service_within",
        "shared_service",
        "wait_percentile",
    ),
    "quota": (
        "block_count",
        "closed_admission_wait",
        "compressed_blocks",
        "compression_time",
        "drop_cost",
        "fractional_charge",
        "lru_survival",
        "offload_cost",
        "quota_overshoot",
        "tier_room",
        "unfilled_bytes",
    ),
    "restore": (
        "PathTime",
        "RestoreTime",
        "path_time",
        "restore_time",
    ),
    "reuse": (
        "expected_time",
        "mixed_throughput",
        "reuse_ceiling",
    ),
    "speculation": (
        "accepted_tokens",
        "speculative_step_time",
    ),
    "transfer": (
        "average_bandwidth",
        "burst_time",
        "duplex_bandwidth",
        "effective_bandwidth",
        "half_bandwidth_piece",
        "iops_bandwidth",
        "piece_for_bandwidth",
        "queue_depth",
        "shared_bandwidth",
        "transfer_time",
    ),
    "working_set": (
        "streaming_bandwidth",
        "streaming_step_time",
    ),
}
"""Module -> its public names; `__init__.pyi` tells the same to type checkers."""

_HOME = {name: module for module, names in _MODULES.items() for name in names}
__all__ = sorted(_HOME)


def __getattr__(name: str) -> object:
    """Import the module of a formula when the formula is first asked for."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the formulas, loaded or not."""
    return __all__
