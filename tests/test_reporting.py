"""A report is a plan with its curves, and the plans of other loads are those that one would ask for."""

import pytest

import kvcalc
from kvcalc.errors import DomainError
from kvcalc.output.sentences import in_words
from kvcalc.planning.plan import Plan
from kvcalc.reporting import report

SAID = {
    "on": "h100-sxm-80gb",
    "gpus": 4,
    "engine": "vllm",
    "prompt": 4000,
    "generate": 500,
    "concurrency": 48,
    "hit": 0.5,
    "rate": "1/s",
    "tiers": {"dram": {"bandwidth": "40 GB/s"}, "nvme": {"bandwidth": "3 GB/s", "setup": "20 ms"}},
}
MODEL = "llama-3.1-70b"


@pytest.fixture(scope="module")
def found():
    return report(MODEL, **SAID)


def plan_at(**values):
    return kvcalc.plan(MODEL, **(SAID | values))


def test_the_plan_of_a_report_is_the_plan(found):
    assert found.plan.to_dict() == plan_at().to_dict()


def test_the_curves_are_those_that_restore_draws(found):
    # `kvcalc restore --curve` answers for the first tier; its routes store nothing meanwhile, so ask for
    # a load without stores: no rate.
    silent = {name: item for name, item in SAID.items() if name != "rate"}
    drawn = report(MODEL, what_if=False, **silent)
    asked = {name: item for name, item in silent.items() if name not in ("generate", "concurrency")}
    for variable, curves in (("bandwidth", drawn.bandwidths), ("prefix", drawn.prefixes)):
        assert [curve.tier for curve in curves] == ["dram", "nvme"]
        alone = kvcalc.restore(model=MODEL, curve=variable, **asked).break_even_curve
        assert curves[0] == alone


def test_a_curve_passes_through_the_row_of_its_tier(found):
    for curve in found.bandwidths:
        row = next(
            item for item in found.plan.offload if item.tier == curve.tier and item.mode == "prefix_store"
        )
        assert curve.break_even == row.break_even_bandwidth
        below = max(i for i, rate in enumerate(curve.points) if rate <= row.bandwidth)
        total = curve.lines[0].values
        assert total[below + 1] <= row.cached_total <= total[below]


def test_other_loads_are_other_plans(found):
    what_if = found.what_if
    assert what_if.prompts[what_if.asked[0]] == 4000
    for row, prompt in enumerate(what_if.prompts):
        for column, concurrency in enumerate(what_if.concurrencies):
            if (row + column) % 3 == 0:
                alone = plan_at(prompt=prompt, concurrency=concurrency)
                assert what_if.loads[row][column].capacity == alone.capacity
                assert what_if.loads[row][column].decode == alone.decode


def test_two_tables_answer_every_combination_of_three_inputs(found):
    what_if = found.what_if
    for row, prompt in enumerate(what_if.prompts):
        column, place = (3 * row + 1) % len(what_if.concurrencies), (2 * row + 1) % len(what_if.hits)
        alone = in_words(
            plan_at(prompt=prompt, concurrency=what_if.concurrencies[column], hit=what_if.hits[place])
        )
        load, restore = what_if.loads[row][column], what_if.restores[row][place]
        assert (in_words(load).fit, in_words(load).first_limit) == (alone.fit, alone.first_limit)
        assert in_words(restore).restores == alone.restores


def test_a_load_without_an_answer_says_why(monkeypatch):
    answer = Plan.answer

    def refused(plan):
        if plan.scenario.workload.prompt > 4000:
            raise DomainError("prompt: longer than this engine starts with")
        return answer(plan)

    monkeypatch.setattr(Plan, "answer", refused)
    found = report("llama-3.1-8b", on="h100-sxm-80gb", prompt=4000)
    rows = dict(zip(found.what_if.prompts, found.what_if.loads, strict=True))
    assert max(rows) > 4000
    for prompt, loads in rows.items():
        told = {isinstance(item, str) for item in loads}
        assert told == {prompt > 4000}
        assert prompt <= 4000 or set(loads) == {"prompt: longer than this engine starts with"}


def test_progress_counts_every_plan():
    told = []
    found = report(
        "llama-3.1-8b", on="l40s", prompt=64, generate=8, progress=lambda *steps: told.append(steps)
    )
    what_if = found.what_if
    whole = len(what_if.prompts) * (len(what_if.concurrencies) + len(what_if.hits))
    assert told == [(step + 1, whole) for step in range(whole)]
