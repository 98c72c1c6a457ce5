"""`kvcalc plan --trace`: hits replayed at the plan's own pool and tiers, beside those that were assumed."""

import json

import numpy as np
import pytest

import kvcalc
from kvcalc.api import question_of
from kvcalc.cli import run
from kvcalc.errors import SettingsError
from kvcalc.output import render
from kvcalc.replay.machine import machine_of
from kvcalc.replay.planned import plan_with_trace
from kvcalc.replay.readers import read_trace
from kvcalc.replay.serving import Service
from tests.replay.conftest import row

BLOCK = 512 * 131_072
"""Llama 3.1 8B: 131,072 bytes a token."""


@pytest.fixture
def trace(tmp_path):
    """Four prompts of four blocks, asked for in turn, twice: a loop over 16 blocks."""
    file = tmp_path / "loop.jsonl"
    chains = [list(range(4 * one, 4 * one + 4)) for one in range(4)]
    lines = [row(chain, 2048, 1000 * place, 64) for place, chain in enumerate(chains * 2)]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return str(file)


def asked(**said):
    return question_of("llama-3.1-8b", "h100-sxm-80gb", engine="vllm", **said)


def places(result):
    return [
        (level.place, level.hit_rate_tokens, level.own_rate_tokens, level.adds)
        for level in result.trace.levels
    ]


def dram(blocks, **more):
    return {"dram": {"bandwidth": "54 GB/s", "capacity": f"{blocks * BLOCK} B", **more}}


def test_a_pool_that_holds_all_hits_the_second_round(trace):
    result = plan_with_trace(asked(tiers=dram(1)), trace)[0]
    # Each of the four prompts hits whole the second time: half of all input.
    assert places(result)[0] == ("gpu", 0.5, 0.5, "all")
    assert result.trace.infinite_hit_rate_tokens == 0.5
    assert (result.trace.replayed.hit_rate, result.trace.replayed.hit) == (0.5, 1.0)
    assert result.trace.block_tokens == 512


def test_the_library_takes_a_trace_too(trace):
    result = kvcalc.plan("llama-3.1-8b", on="h100-sxm-80gb", trace=trace)
    assert result.trace.levels[0].hit_rate_tokens == 0.5
    assert kvcalc.describe_trace(trace).infinite.hit_rate_tokens == 0.5


def test_the_load_is_that_of_the_trace_unless_said(trace):
    inputs = plan_with_trace(asked(), trace)[0].inputs
    assert (inputs["prompt"], inputs["generate"]) == (2048, 64)
    assert inputs["rate"] == pytest.approx(8 / 7)
    assert plan_with_trace(asked(prompt="4k", rate="2/s"), trace)[0].inputs["prompt"] == 4000


def test_an_inclusive_tier_counts_alone_and_an_exclusive_one_adds_to_the_pool(trace):
    # A loop over 16 blocks: LRU hits nothing below 16, and everything from there on.
    pool = {"pool": f"{10 * BLOCK} B", "generate": 1}
    through = plan_with_trace(asked(**pool, tiers=dram(12, store="write_through")), trace)[0]
    assert places(through) == [("gpu", 0.0, 0.0, "all"), ("dram", 0.0, 0.0, "beyond")]
    back = plan_with_trace(asked(**pool, tiers=dram(12, store="write_back")), trace)[0]
    assert places(back) == [("gpu", 0.0, 0.0, "all"), ("dram", 0.5, 0.5, "all")]
    same = plan_with_trace(asked(**pool, tiers=dram(8, store="write_through")), trace)[0]
    assert places(same)[1] == ("dram", 0.0, 0.0, "nothing")


def test_a_tier_that_adds_nothing_is_told(trace):
    told = plan_with_trace(asked(tiers=dram(64)), trace)[0].warnings
    assert any(line.startswith("dram: adds 0.00% of the input tokens") for line in told)
    needed = plan_with_trace(asked(pool=f"{2 * BLOCK} B", generate=1, tiers=dram(64)), trace)[0].warnings
    assert not any("adds" in line for line in needed)


def test_no_hit_at_all_is_a_hit_rate_of_nothing(trace):
    result = plan_with_trace(asked(pool=f"{2 * BLOCK} B", generate=1, tiers=dram(1)), trace)[0]
    assert result.trace.replayed.hit_rate_tokens == 0
    assert result.inputs["cached"] == 0
    assert [row_.mode for row_ in result.offload if row_.mode == "prefix_store"] == []


def test_what_was_said_of_hits_is_shown_beside_the_replay(trace):
    said = plan_with_trace(asked(hit=0.25, hit_rate=0.8, tiers=dram(64)), trace)[0].trace
    assert (said.assumed.source, said.assumed.hit, said.assumed.hit_rate) == ("said", 0.25, 0.8)
    assert said.assumed.hit_rate_tokens == pytest.approx(0.2)
    default = plan_with_trace(asked(tiers=dram(64)), trace)[0].trace
    assert (default.assumed.source, default.assumed.hit_rate_tokens) == ("default", 1.0)


def test_a_tier_without_a_size_has_no_end(trace):
    result = plan_with_trace(asked(pool=f"{2 * BLOCK} B", tiers={"dram": {"bandwidth": "54 GB/s"}}), trace)[0]
    assert result.trace.levels[1].capacity is None
    assert result.trace.levels[1].hit_rate_tokens == 0.5


@pytest.mark.parametrize("form", ["table", "json", "csv", "markdown"])
def test_the_plan_has_every_face(trace, form):
    text = render(plan_with_trace(asked(), trace)[0], form)
    assert "loop.jsonl" in text
    if form == "table":
        assert "these capacities hit 50.0 % of the input tokens, where 100 % would have been" in " ".join(
            text.split()
        )


def test_a_machine_and_a_model_are_needed(trace):
    with pytest.raises(SettingsError, match="--on"):
        plan_with_trace(question_of("llama-3.1-8b"), trace)
    with pytest.raises(SettingsError, match="--model"):
        machine_of(question_of(None), read_trace(trace))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--trace", "none.jsonl"), "none.jsonl: no such file"),
        (("--trace", "{trace}", "--fit"), "leave --fit out"),
        (("--trace", "{trace}", "--check-config", "x.sh"), "leave --check-config out"),
        (("--skip-broken",), "--skip-broken: says how a trace is read; add --trace FILE or leave it out"),
        (("--dialect", "mooncake", "--fit"), "--dialect: says how a trace is read; add --trace FILE"),
        (("--trace", "{trace}", "--dialect", "mooncak"), "did you mean 'mooncake'"),
    ],
)
def test_wrong_questions_are_one_line(trace, options, message, capsys):
    words = [word.format(trace=trace) for word in options]
    assert run(["plan", "llama-3.1-8b", "--on", "h100-sxm-80gb", *words]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_the_command_line_answers(trace, capsys):
    options = ["--trace", trace, "--format", "json"]
    assert run(["plan", "llama-3.1-8b", "--on", "h100-sxm-80gb", *options]) == 0
    assert json.loads(capsys.readouterr().out)["trace"]["levels"][0]["hit_rate_tokens"] == 0.5


def service(trace, **said) -> Service:
    machine = machine_of(asked(**said), read_trace(trace))
    found = machine.service(np.ones(machine.trace.requests, bool), machine.trace)
    assert found is not None
    return found


def test_hits_save_what_their_prefill_would_have_taken(trace):
    found = service(trace, price="3600 USD/hour", prefill_rate="1000 token/s", tiers=dram(64))
    # At 1,000 tokens per second a prompt takes 2.048 s; a whole hit leaves its last token.
    nothing = found.serving({"gpu": np.zeros(8, np.int64)})
    assert nothing.ttft_mean == nothing.ttft_mean_without == pytest.approx(2.048)
    assert nothing.prefill_utilization == pytest.approx(8 * 2.048 / 7)
    some = found.serving({"gpu": np.array([0, 0, 0, 0, 1024, 1024, 2048, 2048])})
    assert some.recompute_avoided == pytest.approx(2 * 1.024 + 2 * 2.047)
    assert some.money_saved == pytest.approx(some.recompute_avoided)
    assert some.paths == ()


def test_restores_take_their_path(trace):
    tiers = {"dram": {"bandwidth": "10 GB/s", "capacity": "1 TB", "mechanism": "plain", "setup": "5 ms"}}
    found = service(trace, prefill_rate="1000 token/s", tiers=tiers)
    hits = np.array([0, 0, 0, 0, 1024, 1024, 1024, 1024])
    row_ = found.serving({"dram": hits})
    (path,) = row_.paths
    assert path.restored_bytes == 4 * 1024 * 131_072
    assert path.mean_rate == pytest.approx(4 * 1024 * 131_072 / 7)
    each = 1024 * 131_072 / 10e9
    assert path.utilization == pytest.approx(4 * each / 7)
    assert row_.ttft_mean == pytest.approx((4 * 2.048 + 4 * (1.024 + each + 0.005)) / 8)


def test_a_plan_reads_a_trace_as_a_replay_is_told_to(trace, capsys):
    """A broken line and blocks of a size that the file does not say: as `kvcalc replay` reads them."""
    with open(trace, "a") as file:
        file.write("{broken\n")
    words = ["plan", "llama-3.1-8b", "--on", "h100-sxm-80gb", "--format", "json", "--trace", trace]
    assert run(words) == 2
    assert "--skip-broken" in capsys.readouterr().err
    assert run([*words, "--skip-broken", "--trace-block", "512", "--dialect", "mooncake"]) == 0
    body = json.loads(capsys.readouterr().out)
    assert (body["trace"]["requests"], body["trace"]["levels"][0]["hit_rate_tokens"]) == (8, 0.5)
