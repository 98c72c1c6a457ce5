"""Graphs of many plans against new plans of changed inputs, without a spreadsheet program between them."""

import json
from dataclasses import replace
from functools import cache
from types import SimpleNamespace

import pytest
import recalculated as office

import kvcalc
from kvcalc.api import question_of, scenario
from kvcalc.errors import SettingsError
from kvcalc.exports.traced import _followed, trace_plan
from kvcalc.exports.workbook.figures import figures_of
from kvcalc.exports.workbook.writing import told
from kvcalc.planning.plan import Plan
from kvcalc.tracing.bounds import COUNT
from kvcalc.tracing.expression import evaluate
from kvcalc.tracing.number import Traced
from kvcalc.tracing.rewriting import rewritten
from kvcalc.tracing.trace import DeadEndError, Trace

CASES = [
    ("qwen3-30b-a3b", "h100-sxm-80gb", {"engine": "vllm", "tp": 2}, {"rate": 10.0, "utilization": 0.6}),
    ("deepseek-v3", "h200-sxm-141gb", {"engine": "sglang", "gpus": 8, "tp": 8}, {"window": 0.01}),
    ("gemma-3-27b", "a100-sxm-80gb", {"engine": "vllm"}, {"cached": 100}),
    ("qwen3-next-80b-a3b", "h200-sxm-141gb", {"engine": "vllm", "tp": 2}, {"window": 0.01, "rate": 0.1}),
    ("llama-3.1-70b", "p5.48xlarge", {"rate": 2.0, "price": 0.0007}, {"rate": 10.0, "cached": 0}),
    ("llama-3.1-8b", "m4-max", {}, {"utilization": 0.95}),
    ("falcon-mamba-7b", "h100-sxm-80gb", {}, {"rate": 1.0}),
    ("llama-3.1-8b", "h100-sxm-80gb", {"disaggregate": "50 GB/s", "rate": 3.0}, {"disaggregate": 2e10}),
    ("qwen2.5-7b", "rtx-4090", {"engine": "llama.cpp", "gpu_layers": 20, "max_len": 8192}, {"prefill": 2.0}),
    ("llama-3.1-70b", "h100-sxm-80gb", {"tp": 4, "pp": 2, "engine": "vllm"}, {"queue": 0.02, "rate": 1.0}),
    ("llama-3.1-8b", "h100-sxm-80gb", {"spec_tokens": 3, "draft": "llama-3.2-1b"}, {"max_seqs": 4}),
    ("llama-3.1-8b", "h100-sxm-80gb", {"engine": "vllm"}, {"block_size": 32}),
    ("llama-3.1-8b", "h100-sxm-80gb", {"tp": 2}, {"block_size": 64, "tp": 4}),
    ("deepseek-v4-flash", "b200-sxm-180gb", {"engine": "vllm", "gpus": 4}, {"rate": 2.0, "cached": 100}),
    ("qwen3.5-35b-a3b", "h100-sxm-80gb", {"engine": "sglang", "tp": 4, "cached": 500}, {"queue": 0.02}),
    ("qwen2.5-vl-7b", "h100-sxm-80gb", {"images": 2, "image_tokens": 576}, {"images": 5}),
]


@cache
def traced(case):
    """Return the traced plan of a case; making it takes a second or two."""
    model, on, said, _ = CASES[case]
    return trace_plan(question_of(model, on, concurrency=50, **said))


def differences(plan, values, body):
    """Return the figures of a graph, at values of its inputs, that are not those of a plan."""
    numbers = SimpleNamespace(values=values, known={})
    with plan.trace.entered():
        return list(_differences(plan, numbers, body))


def _differences(plan, numbers, body):
    rows = {(row["tier"], row["mode"]): row for row in body["offload"]}
    for item in figures_of(plan):
        if item.column:
            tier, _, mode = item.column.rpartition(" (")
            row = rows.get((tier, mode[:-1].replace(" ", "_")))
            expected = None if row is None else office.at(row, item.name)
        else:
            expected = office.at(body, item.key)
        shown = evaluate(item.node, numbers.values, numbers.known)
        shown = told(shown, numbers) if isinstance(shown, str) else shown
        if office.differs(shown, expected):
            yield item.key, shown, expected


def body_of(result):
    return json.loads(json.dumps(result.to_dict()))


@pytest.mark.parametrize("load", [(700, 2000, 7), (15000, 10, 600)])
@pytest.mark.parametrize("case", range(len(CASES)), ids=[f"{case[0]} {case[2]}" for case in CASES])
def test_a_graph_read_at_other_inputs_is_the_plan_of_these_inputs(case, load):
    model, on, said, changes = CASES[case]
    plan = traced(case)
    prompt, generate, concurrency = load
    changes = {"prompt": prompt, "generate": generate, "concurrency": concurrency, **changes}
    body = body_of(kvcalc.plan(model, on=on, **{**said, **changes}))
    values = {item.key: item.value for item in plan.inputs} | changes
    assert differences(plan, values, body) == []
    assert all(evaluate(check.holds, values) is True for check in plan.checks)


@pytest.mark.parametrize("engine", ["generic", "sglang", "llama.cpp", "transformers"])
def test_layers_and_widths_of_the_cache_are_inputs(engine):
    """Against a model that was changed by hand: forty layers of twice the head size, the same weights."""
    question = question_of("llama-3.1-8b", "h100-sxm-80gb", concurrency=20, engine=engine, rate=1.0)
    plan, asked = trace_plan(question), scenario(question)
    shape = asked.model.shape
    (part,) = shape.components
    wide = tuple(replace(tensor, width=2 * tensor.width) for tensor in part.entry)
    changed = replace(shape, layers=40, components=(replace(part, layers=tuple(range(40)), entry=wide),))
    body = body_of(Plan(replace(asked, model=replace(asked.model, shape=changed))).answer()[0])
    values = {item.key: 2 * item.value if item.key.endswith(".width") else item.value for item in plan.inputs}
    assert differences(plan, values | {"model.layers": 40}, body) == []


def test_a_hit_of_nothing_leaves_no_tier_and_a_hit_brings_it_back():
    plan = trace_plan(question_of("llama-3.1-8b", "h100-sxm-80gb", hit=0.0))
    values = {item.key: item.value for item in plan.inputs} | {"hit": 0.5}
    body = body_of(kvcalc.plan("llama-3.1-8b", on="h100-sxm-80gb", hit=0.5))
    assert differences(plan, values, body) == []


@pytest.mark.parametrize("others", [{}, {"nvme": {"bandwidth": "6.5 GB/s", "capacity": "8 TB"}}])
@pytest.mark.parametrize(("written", "changed"), [("20 GB", "500 GB"), ("500 GB", "20 GB")])
def test_a_tier_that_grows_past_the_pool_of_the_gpus_begins_to_add_hits(others, written, changed):
    def said(capacity):
        tiers = {"dram": {"bandwidth": "50 GB/s", "capacity": capacity, "price": "0.2 USD/GB/month"}}
        return {"engine": "vllm", "rate": 1.0, "cached": 2048, "price": 0.001, "tiers": tiers | others}

    plan = trace_plan(question_of("llama-3.1-8b", "h100-sxm-80gb", **said(written)))
    own = {item.key: item.value for item in plan.inputs}
    for capacity, number in ((written, own["tiers.dram.capacity"]), (changed, float(changed[:-3]) * 1e9)):
        body = body_of(kvcalc.plan("llama-3.1-8b", on="h100-sxm-80gb", **said(capacity)))
        assert body["offload"][0]["adds_nothing"] is (capacity == "20 GB")
        wrong = differences(plan, own | {"tiers.dram.capacity": number}, body)
        assert wrong == []


def test_a_range_holds_for_the_exported_value_alone():
    said = {"dram": {"bandwidth": "40..54 GB/s", "setup": "5..20 ms"}}
    plan = trace_plan(question_of("llama-3.1-8b", "h100-sxm-80gb", tiers=said))
    values = {item.key: item.value for item in plan.inputs}
    ranged = body_of(kvcalc.plan("llama-3.1-8b", on="h100-sxm-80gb", tiers=said))
    assert differences(plan, values, ranged) == []
    exact = {"dram": {"bandwidth": "30 GB/s", "setup": "7 ms"}}
    values |= {"tiers.dram.bandwidth": 30e9, "tiers.dram.setup": 0.007}
    assert (
        differences(plan, values, body_of(kvcalc.plan("llama-3.1-8b", on="h100-sxm-80gb", tiers=exact))) == []
    )


def test_a_number_that_makes_the_form_of_the_answer_is_checked():
    plan = trace_plan(question_of("llama-3.1-8b", "h100-sxm-80gb", engine="vllm"))
    values = {item.key: item.value for item in plan.inputs} | {"tp": 3}
    assert not all(evaluate(check.holds, values) for check in plan.checks)


def planted(kind, words):
    """Follow code that raises an error of a kind, about a number of the inputs."""
    with Trace({"reach": 12}).entered() as trace:
        reach = Traced(trace.graph.input("reach", COUNT))

        def answer():
            raise kind(words.format(reach=reach))

        return _followed(answer)


@pytest.mark.parametrize("kind", [DeadEndError, SettingsError])
def test_what_has_no_graph_is_said_in_plain_words(kind):
    with pytest.raises(SettingsError, match=r"\(a reach of 12\.0 tokens is not understood\)"):
        planted(kind, "a reach of {reach:,.1f} tokens\nis not understood")


def test_a_number_without_a_value_is_said_without_one():
    with Trace({"reach": None}).entered() as trace:
        reach = Traced(trace.graph.input("reach", COUNT, optional=True))

        def answer():
            # A blank cell counts as zero in a sum, and is none by itself.
            raise DeadEndError(f"{reach:,.1f} tokens, {reach + 1:,.1f} with one, {1 / reach:,.1f} of one")

        with pytest.raises(SettingsError, match=r"\(some tokens, 1\.0 with one, some of one\)"):
            _followed(answer)


def test_equations_nested_too_deeply_have_no_graph():
    def answer(deep=0):
        return answer(deep + 1)

    with Trace().entered(), pytest.raises(SettingsError, match=r"nested more than 8000 deep"):
        _followed(answer)


@pytest.mark.parametrize("kind", [TypeError, AttributeError, KeyError, ValueError, LookupError])
def test_an_error_of_our_own_stays_what_it_is(kind):
    with pytest.raises(kind, match="planted") as caught:
        planted(kind, "planted")
    assert type(caught.value) is kind


def test_a_bug_in_a_formula_surfaces_as_itself(monkeypatch):
    """In the source that the mirror loads, as a slip of ours would stand there."""

    def slipped(source, name):
        before = 'return not_negative(entry, "entry") * '
        return rewritten(source.replace(before, f"{before}len(entries) * "), name)

    question = question_of("llama-3.1-8b", "h100-sxm-80gb")
    monkeypatch.setattr("kvcalc.tracing.mirror.rewritten", slipped)
    with pytest.raises(TypeError, match=r"object of type 'Traced' has no len"):
        trace_plan(question)
