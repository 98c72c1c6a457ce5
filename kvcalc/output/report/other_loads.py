"""The same question at other loads, as the texts that a page shows when a control is moved."""

import math
from typing import Any

from kvcalc.output.fields import text
from kvcalc.output.format import human, tokens_text
from kvcalc.output.report.verdicts import badge
from kvcalc.output.sentences import in_words, nothing_to_restore
from kvcalc.report_results import WhatIf
from kvcalc.results import PlanResult


def controls(what_if: WhatIf) -> list[dict[str, Any]]:
    """Return each control with the values that it can take."""
    prompt, concurrency, hit = what_if.asked
    return [
        {
            "key": "prompt",
            "label": "Prompt",
            "asked": prompt,
            "values": [tokens_text(value) for value in what_if.prompts],
        },
        {
            "key": "concurrency",
            "label": "Sequences at once",
            "asked": concurrency,
            "values": [human(value, "1") for value in what_if.concurrencies],
        },
        {
            "key": "hit",
            "label": "Share of the prompt that hits",
            "asked": hit,
            "values": [human(value, "1", share=True) for value in what_if.hits],
        },
    ]


def texts(what_if: WhatIf) -> dict[str, Any]:
    """Return what a page says at each combination: of loads by prompt and concurrency, then of restores."""
    return {
        "loads": [[load(plan) for plan in row] for row in what_if.loads],
        "restores": [[restores(plan) for plan in row] for row in what_if.restores],
    }


def load(plan: PlanResult | str) -> dict[str, Any]:
    """Return fit, first limit and speed of one load, or why there is no answer."""
    if isinstance(plan, str):
        return {"fits": None, "head": "No answer", "lines": [plan], "use": []}
    said = in_words(plan)
    speed = (
        f"One prompt takes {text(plan.prefill, 'time')} to prefill; decode gives "
        f"{text(plan.decode, 'tokens_per_second')} over all sequences, a step takes "
        f"{text(plan.decode, 'step_time')}."
    )
    return {
        "fits": plan.fits,
        "head": "It fits" if plan.fits else "It does not fit",
        "lines": [*said.fit, said.first_limit, speed],
        "use": [_use(float(budget.utilization)) for budget in (plan.capacity, plan.bandwidth)],
    }


def _use(share: float) -> list[Any]:
    """Return how much of a budget is used, as the share of a bar and in words."""
    if not math.isfinite(share):
        return [1, "no room"]
    return [round(min(share, 1.0), 4), human(share, "1", share=True)]


def restores(plan: PlanResult | str) -> dict[str, Any]:
    """Return the verdict on each tier, or why there is no answer."""
    if isinstance(plan, str):
        return {"badges": [], "lines": [plan]}
    rows = [item for item in plan.offload if item.mode == "prefix_store"]
    found = [badge(item) for item in rows]
    lines = in_words(plan).restores if rows else (nothing_to_restore(plan),)
    return {
        "badges": [{"name": item.name, "text": item.text, "style": item.style} for item in found],
        "lines": list(lines),
    }
