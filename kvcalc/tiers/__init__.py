"""Slower tiers and the mechanisms that move KV between them and the GPU, as data with sources."""

from kvcalc.tiers.figures import Figure
from kvcalc.tiers.kinds import TierKind, kind_called, tier_kind, tier_kinds
from kvcalc.tiers.mechanisms import (
    PLAIN,
    Mechanism,
    Rates,
    default_mechanism,
    mechanism,
    mechanisms,
)

__all__ = [
    "PLAIN",
    "Figure",
    "Mechanism",
    "Rates",
    "TierKind",
    "default_mechanism",
    "kind_called",
    "mechanism",
    "mechanisms",
    "tier_kind",
    "tier_kinds",
]
