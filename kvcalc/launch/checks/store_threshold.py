"""A store threshold cannot be had together with lower tiers."""

from collections.abc import Iterator

from kvcalc.launch.checks.check import Check, Finding
from kvcalc.launch.checks.deployment import Deployment

REFUSED_FROM = 2
"""Lookups before a store from which the tiering spec refuses to start [1]."""


def find(deployment: Deployment) -> Iterator[Finding]:
    """Refuse the pair, and say what a threshold costs where it is allowed."""
    given = deployment.launch.field("store_threshold")
    if given is None or given.value < REFUSED_FROM:
        return
    if deployment.launch.value("spec") == "TieringOffloadingSpec" or deployment.launch.has("secondary_tiers"):
        yield Finding(
            "error",
            f"store_threshold {given.value} is refused by TieringOffloadingSpec, so the server does not "
            "start",
            "leave store_threshold out, or the secondary tiers",
            given.where,
        )
    else:
        yield Finding(
            "info",
            f"a block is stored at its lookup number {given.value}: the first {given.value} uses of a "
            "prefix are computed",
            where=given.where,
        )


CHECK = Check(
    "store-threshold-with-tiers",
    "https://docs.vllm.ai/en/latest/features/kv_offloading_usage/",
    find,
    engines=("vllm",),
)
