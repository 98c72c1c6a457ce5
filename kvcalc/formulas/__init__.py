"""The mathematics: pure functions of numbers in base units.

Scalars, numpy arrays and pandas Series go in, the same come out.  A formula imports numpy and the
names of the base units, nothing else; its docstring is its contract and the source of `kvcalc explain`.

Importing one formula does not import the others: each name is looked up on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kvcalc.formulas.breakeven import (
        NO_BANDWIDTH as NO_BANDWIDTH,
        NO_LENGTH as NO_LENGTH,
        break_even_bandwidth as break_even_bandwidth,
        break_even_tokens as break_even_tokens,
        cached_total as cached_total,
        confidence as confidence,
        no_break_even as no_break_even,
        shortest_worthwhile as shortest_worthwhile,
        speedup as speedup,
        verdict as verdict,
    )
    from kvcalc.formulas.capacity import (
        TIE_TOLERANCE as TIE_TOLERANCE,
        bandwidth_shortfall as bandwidth_shortfall,
        bandwidth_utilization as bandwidth_utilization,
        capacity_shortfall as capacity_shortfall,
        capacity_utilization as capacity_utilization,
        first_limit as first_limit,
        sessions_short as sessions_short,
        sessions_that_fit as sessions_that_fit,
        sweep_time as sweep_time,
    )
    from kvcalc.formulas.eviction import (
        SwapTime as SwapTime,
        THRASH_EVICTIONS as THRASH_EVICTIONS,
        THRASH_SHARE as THRASH_SHARE,
        eviction_loss as eviction_loss,
        is_thrashing as is_thrashing,
        price_ratio as price_ratio,
        recompute_time as recompute_time,
        recomputed_share as recomputed_share,
        swap_time as swap_time,
    )
    from kvcalc.formulas.overlap import (
        extra_wait as extra_wait,
        overlapped_total as overlapped_total,
        pipeline_time as pipeline_time,
        pipeline_window as pipeline_window,
    )
    from kvcalc.formulas.restore import (
        PathTime as PathTime,
        RestoreTime as RestoreTime,
        path_time as path_time,
        restore_time as restore_time,
    )
    from kvcalc.formulas.transfer import (
        average_bandwidth as average_bandwidth,
        burst_time as burst_time,
        duplex_bandwidth as duplex_bandwidth,
        effective_bandwidth as effective_bandwidth,
        half_bandwidth_piece as half_bandwidth_piece,
        iops_bandwidth as iops_bandwidth,
        queue_depth as queue_depth,
        shared_bandwidth as shared_bandwidth,
        transfer_time as transfer_time,
    )

_MODULES = {
    "breakeven": (
        "NO_BANDWIDTH",
        "NO_LENGTH",
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
    ),
    "overlap": (
        "extra_wait",
        "overlapped_total",
        "pipeline_time",
        "pipeline_window",
    ),
    "restore": (
        "PathTime",
        "RestoreTime",
        "path_time",
        "restore_time",
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
}
_HOME = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [
    "NO_BANDWIDTH",
    "NO_LENGTH",
    "PathTime",
    "RestoreTime",
    "SwapTime",
    "THRASH_EVICTIONS",
    "THRASH_SHARE",
    "TIE_TOLERANCE",
    "average_bandwidth",
    "bandwidth_shortfall",
    "bandwidth_utilization",
    "break_even_bandwidth",
    "break_even_tokens",
    "burst_time",
    "cached_total",
    "capacity_shortfall",
    "capacity_utilization",
    "confidence",
    "duplex_bandwidth",
    "effective_bandwidth",
    "eviction_loss",
    "extra_wait",
    "first_limit",
    "half_bandwidth_piece",
    "iops_bandwidth",
    "is_thrashing",
    "no_break_even",
    "overlapped_total",
    "path_time",
    "pipeline_time",
    "pipeline_window",
    "price_ratio",
    "queue_depth",
    "recompute_time",
    "recomputed_share",
    "restore_time",
    "sessions_short",
    "sessions_that_fit",
    "shared_bandwidth",
    "shortest_worthwhile",
    "speedup",
    "swap_time",
    "sweep_time",
    "transfer_time",
    "verdict",
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
