"""Is restoring from a slower tier worth it: each tier in each mode against computing again."""

from kvcalc.planning.offload.prefix import (
    Hit,
    block_tokens,
    cached_tokens,
    computing_time,
    in_chunks,
    loaded_route,
    offload_rows,
    prefix_store,
    restored_tokens,
    tiers_of,
    times_of,
    whole_chunks,
    worthwhile,
)
from kvcalc.planning.offload.restoring import BANDWIDTH_SPREAD, Restoring, plain_restoring, restoring
from kvcalc.planning.offload.route import Route, moved_bytes, plain_route, route_of, tier_bandwidth
from kvcalc.planning.offload.rows import PREFIX_STORE, Lengths, Times, restore_row
from kvcalc.planning.offload.stores import adds_nothing, held_alike, ranks_kept, stored, written_to
from kvcalc.planning.offload.streaming import ACTIVE_WORKING_SET, taking_turns
from kvcalc.planning.offload.waiting import Wait, tell_wait, wait_of

__all__ = [
    "ACTIVE_WORKING_SET",
    "BANDWIDTH_SPREAD",
    "PREFIX_STORE",
    "Hit",
    "Lengths",
    "Restoring",
    "Route",
    "Times",
    "Wait",
    "adds_nothing",
    "block_tokens",
    "cached_tokens",
    "computing_time",
    "held_alike",
    "in_chunks",
    "loaded_route",
    "moved_bytes",
    "offload_rows",
    "plain_restoring",
    "plain_route",
    "prefix_store",
    "ranks_kept",
    "restore_row",
    "restored_tokens",
    "restoring",
    "route_of",
    "stored",
    "taking_turns",
    "tell_wait",
    "tier_bandwidth",
    "tiers_of",
    "times_of",
    "wait_of",
    "whole_chunks",
    "worthwhile",
    "written_to",
]
