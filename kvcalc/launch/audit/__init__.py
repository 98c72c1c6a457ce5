"""Counters and claims of a deployment, held against arithmetic.

A settings file cannot show that an improvement came from another tier, that a bandwidth is impossible
or that a table misprints its percentages; the numbers themselves can.
"""

from kvcalc.launch.audit.claims import (
    Claim,
    check_claim,
    check_reduction,
    explain_bytes_per_token,
)
from kvcalc.launch.audit.counters import Counters, audit
from kvcalc.launch.audit.metrics import METRICS, Metric, tier_fill

__all__ = [
    "METRICS",
    "Claim",
    "Counters",
    "Metric",
    "audit",
    "check_claim",
    "check_reduction",
    "explain_bytes_per_token",
    "tier_fill",
]
