"""The curves that a report draws beside a plan: bytes over the length, and break-evens by tier."""

from collections.abc import Iterator

from kvcalc.planning.curves import Case, break_even_over
from kvcalc.planning.growth import growth_of
from kvcalc.planning.notebook import Notebook
from kvcalc.planning.offload import PREFIX_STORE, cached_tokens, loaded_route, restoring, tiers_of
from kvcalc.planning.plan import Plan
from kvcalc.planning.speed import speed_of
from kvcalc.report_results import Report
from kvcalc.results import Offload


def drawn_plan(plan: Plan) -> Report:
    """Return the answer of a plan with its curves."""
    answer, scenario = plan.answer()[0], plan.scenario
    longest = max(scenario.model.shape.max_tokens or 0, int(answer.kv.tokens))
    cases = tuple(_cases(plan, answer.offload))
    return Report(
        plan=answer,
        growth=growth_of(plan.layout, longest),
        bandwidths=tuple(break_even_over("bandwidth", case) for case in cases),
        prefixes=tuple(break_even_over("prefix", case) for case in cases),
    )


def _cases(plan: Plan, rows: tuple[Offload, ...]) -> Iterator[Case]:
    """Yield each restore of the plan with the route that it was computed over."""
    stored = {row.tier: row for row in rows if row.mode == PREFIX_STORE}
    if not stored:
        return
    scenario, silent = plan.scenario, Notebook()
    speed = speed_of(scenario, plan.held, silent, plan.place)
    cached = cached_tokens(scenario, speed, silent)
    for tier in tiers_of(scenario, silent):
        row = stored[tier.name]
        route = loaded_route(speed, tier, cached, silent)
        yield Case(row, tier, restoring(scenario, route, float(row.bytes)), speed, route)
