"""What a report page shows: a plan, the curves beside it, and the plans of other loads.

Numbers are in base units, as everywhere; `kvcalc.results` has the plan itself.
"""

from kvcalc.offload_results import BreakEvenCurve
from kvcalc.quantity import Tokens
from kvcalc.records import record
from kvcalc.results import GrowthCurve, PlanResult


@record
class WhatIf:
    """The same question at other loads, each answered in full; a text is why there is no answer.

    Fit, first limit and speed follow from the prompt and the concurrency, a restore from the prompt and
    the hit: two tables answer every combination of the three.
    """

    prompts: tuple[int, ...]  # prompt tokens, one a row of both tables
    concurrencies: tuple[int, ...]  # sequences at once
    hits: tuple[Tokens, ...]  # shares of the prompt that hit; empty where there is nothing to restore
    asked: tuple[int, int, int]  # where the question itself stands in the three
    loads: tuple[tuple[PlanResult | str, ...], ...]  # by prompt, then concurrency, at the asked hit
    restores: tuple[tuple[PlanResult | str, ...], ...]  # by prompt, then hit, at the asked concurrency


@record
class Report:
    """Everything that a report page shows."""

    plan: PlanResult
    growth: GrowthCurve  # of the cache of one sequence
    bandwidths: tuple[BreakEvenCurve, ...]  # over the bandwidth, one a tier that prefixes are restored from
    prefixes: tuple[BreakEvenCurve, ...]  # over the length of the prefix, for the same tiers
    what_if: WhatIf | None = None  # null where it was not asked for
