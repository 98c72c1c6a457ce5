"""The mathematics: pure functions of numbers in base units.

Scalars, numpy arrays and pandas Series go in, the same come out.  A formula imports numpy and the
names of the base units, nothing else; its docstring is its contract and the source of `kvcalc explain`.

Importing one formula does not import the others: each name is looked up on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kvcalc.formulas.adapters import (
        low_rank_parameters,
    )
    from kvcalc.formulas.breakeven import (
        NO_BANDWIDTH,
        NO_LENGTH,
        ROUNDING,
        break_even_bandwidth,
        break_even_tokens,
        cached_total,
        confidence,
        no_break_even,
        shortest_worthwhile,
        speedup,
        verdict,
    )
    from kvcalc.formulas.capacity import (
        TIE_TOLERANCE,
        bandwidth_shortfall,
        bandwidth_utilization,
        capacity_shortfall,
        capacity_utilization,
        first_limit,
        sessions_short,
        sessions_that_fit,
        sweep_time,
    )
    from kvcalc.formulas.collective import (
        all_reduce_time,
    )
    from kvcalc.formulas.cost import (
        NO_SAVING,
        break_even_hit_share,
        break_even_interval,
        storage_cost,
        time_cost,
    )
    from kvcalc.formulas.decode import (
        NEVER_COMPUTE_BOUND,
        DecodeStep,
        critical_batch,
        decode_bandwidth_need,
        decode_step_time,
        expert_coverage,
        tokens_per_second,
        weights_read,
    )
    from kvcalc.formulas.eviction import (
        THRASH_EVICTIONS,
        THRASH_SHARE,
        SwapTime,
        eviction_loss,
        is_thrashing,
        price_ratio,
        recompute_time,
        recomputed_share,
        swap_time,
        thrash_evictions,
    )
    from kvcalc.formulas.kv import component_bytes, entry_bytes
    from kvcalc.formulas.memory import (
        LOGIT_BYTES,
        activation_bytes,
        kv_pool,
        logits_bytes,
        static_share,
    )
    from kvcalc.formulas.overlap import (
        extra_wait,
        overlapped_total,
        pipeline_time,
        pipeline_window,
    )
    from kvcalc.formulas.partial import (
        partial_split,
        polynomial_prefill,
    )
    from kvcalc.formulas.prefill import (
        FLOP_PER_MULTIPLY_ADD,
        attention_flops,
        capped_entries,
        chunked_entries,
        dense_flop_per_token,
        full_entries,
        prefill_flops,
        prefill_time,
        state_flop_per_token,
        strided_entries,
    )
    from kvcalc.formulas.pressure import (
        NO_SPARE,
        ONE_IN_A_HUNDRED,
        expected_occupancy,
        expected_running,
        growth_evictions,
        loop_gain,
        overrun_probability,
        overrun_slope,
        safe_concurrency,
        victim_price,
    )
    from kvcalc.formulas.queueing import (
        UNSTABLE,
        backlog_growth,
        link_utilization,
        mean_wait,
        shared_service,
        wait_percentile,
    )
    from kvcalc.formulas.quota import (
        block_count,
        closed_admission_wait,
        compressed_blocks,
        compression_time,
        drop_cost,
        fractional_charge,
        lru_survival,
        offload_cost,
        quota_overshoot,
        tier_room,
        unfilled_bytes,
    )
    from kvcalc.formulas.restore import (
        PathTime,
        RestoreTime,
        path_time,
        restore_time,
    )
    from kvcalc.formulas.reuse import (
        mixed_throughput,
        reuse_ceiling,
    )
    from kvcalc.formulas.speculation import (
        accepted_tokens,
        speculative_step_time,
    )
    from kvcalc.formulas.transfer import (
        average_bandwidth,
        burst_time,
        duplex_bandwidth,
        effective_bandwidth,
        half_bandwidth_piece,
        iops_bandwidth,
        queue_depth,
        shared_bandwidth,
        transfer_time,
    )
    from kvcalc.formulas.working_set import (
        streaming_bandwidth,
        streaming_step_time,
    )

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
        "sessions_short",
        "sessions_that_fit",
        "sweep_time",
    ),
    "collective": ("all_reduce_time",),
    "cost": (
        "NO_SAVING",
        "break_even_hit_share",
        "break_even_interval",
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
    "eviction": (
        "SwapTime",
        "THRASH_EVICTIONS",
        "THRASH_SHARE",
        "eviction_loss",
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
    ),
    "partial": (
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
        "queue_depth",
        "shared_bandwidth",
        "transfer_time",
    ),
    "working_set": (
        "streaming_bandwidth",
        "streaming_step_time",
    ),
}
_HOME = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [
    "FLOP_PER_MULTIPLY_ADD",
    "LOGIT_BYTES",
    "NEVER_COMPUTE_BOUND",
    "NO_BANDWIDTH",
    "NO_LENGTH",
    "NO_SAVING",
    "NO_SPARE",
    "ONE_IN_A_HUNDRED",
    "ROUNDING",
    "THRASH_EVICTIONS",
    "THRASH_SHARE",
    "TIE_TOLERANCE",
    "UNSTABLE",
    "DecodeStep",
    "PathTime",
    "RestoreTime",
    "SwapTime",
    "accepted_tokens",
    "activation_bytes",
    "all_reduce_time",
    "attention_flops",
    "average_bandwidth",
    "backlog_growth",
    "bandwidth_shortfall",
    "bandwidth_utilization",
    "block_count",
    "break_even_bandwidth",
    "break_even_hit_share",
    "break_even_interval",
    "break_even_tokens",
    "burst_time",
    "cached_total",
    "capacity_shortfall",
    "capacity_utilization",
    "capped_entries",
    "chunked_entries",
    "closed_admission_wait",
    "component_bytes",
    "compressed_blocks",
    "compression_time",
    "confidence",
    "critical_batch",
    "decode_bandwidth_need",
    "decode_step_time",
    "dense_flop_per_token",
    "drop_cost",
    "duplex_bandwidth",
    "effective_bandwidth",
    "entry_bytes",
    "eviction_loss",
    "expected_occupancy",
    "expected_running",
    "expert_coverage",
    "extra_wait",
    "first_limit",
    "fractional_charge",
    "full_entries",
    "growth_evictions",
    "half_bandwidth_piece",
    "iops_bandwidth",
    "is_thrashing",
    "kv_pool",
    "link_utilization",
    "logits_bytes",
    "loop_gain",
    "low_rank_parameters",
    "lru_survival",
    "mean_wait",
    "mixed_throughput",
    "no_break_even",
    "offload_cost",
    "overlapped_total",
    "overrun_probability",
    "overrun_slope",
    "partial_split",
    "path_time",
    "pipeline_time",
    "pipeline_window",
    "polynomial_prefill",
    "prefill_flops",
    "prefill_time",
    "price_ratio",
    "queue_depth",
    "quota_overshoot",
    "recompute_time",
    "recomputed_share",
    "restore_time",
    "reuse_ceiling",
    "safe_concurrency",
    "sessions_short",
    "sessions_that_fit",
    "shared_bandwidth",
    "shared_service",
    "shortest_worthwhile",
    "speculative_step_time",
    "speedup",
    "state_flop_per_token",
    "static_share",
    "storage_cost",
    "streaming_bandwidth",
    "streaming_step_time",
    "strided_entries",
    "swap_time",
    "sweep_time",
    "thrash_evictions",
    "tier_room",
    "time_cost",
    "tokens_per_second",
    "transfer_time",
    "unfilled_bytes",
    "verdict",
    "victim_price",
    "wait_percentile",
    "weights_read",
]


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
