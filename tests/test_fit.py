"""The layout search: what it tries, what it refuses, how it ranks, against hand arithmetic and plans."""

import json

import jsonschema
import pytest

from kvcalc import api
from kvcalc.cli import run
from kvcalc.errors import SettingsError
from kvcalc.fitting import fit
from kvcalc.output import render, schema
from kvcalc.output.table import Terminal

H100 = "h100-sxm-80gb"
GB = 1e9


def division(row):
    return row.tp, row.pp, row.dp, row.ep


def by_division(result):
    return {division(row): row for row in result.rows}


# By hand


@pytest.mark.parametrize(
    ("model", "machine", "gpus"),
    [
        # Weights in 16 bits: 8.03e9 parameters are 16.1 GB and leave a 24 GB card room for a sequence.
        ("llama-3.1-8b", "l4", 1),
        # 70.55e9 parameters are 141.1 GB: more than one card of 80 GB, and 70.6 GB on each of two.
        ("llama-3.1-70b", H100, 2),
        ("llama-3.1-70b", "a100-sxm-80gb", 2),
        # On 141 GB one card is still too small, since 141.1 GB are more than 90 % of 150.8 GB.
        ("llama-3.1-70b", "h200-sxm-141gb", 2),
        # 141.1 GB on MI300X with 206 GB: one.
        ("llama-3.1-70b", "mi300x", 1),
        # 405.85e9 parameters are 811.7 GB: 101.5 GB on each of 8 cards, so two machines of eight.
        ("llama-3.1-405b", H100, 16),
    ],
)
def test_the_fewest_gpus(model, machine, gpus):
    assert fit(model, on=machine).best.gpus == gpus


def test_kv_that_is_short_is_what_the_sequences_need_beyond_the_pool():
    result = fit("llama-3.1-70b", on=H100, concurrency=64, prompt=8000, generate=512, max_gpus=8)
    # 80 layers x (K and V) x 8 heads x 128 wide x 2 bytes are 327,680 B a token, over 4 ranks 81,920 B.
    row = by_division(result)[4, 1, 1, 1]
    assert row.shortfall == pytest.approx(64 * 8512 * 81_920 - row.kv_pool, rel=1e-12)
    assert row.sessions == row.kv_pool // (8512 * 81_920) < 64
    assert row.reason.startswith(
        f"KV is {row.shortfall / GB:.1f} GB short on each GPU: room for {row.sessions}"
    )
    # Two replicas of four halve the need on each GPU.
    assert by_division(result)[4, 1, 2, 1].shortfall == 0


def test_replicas_hold_the_larger_half():
    result = fit("llama-3.1-8b", on=H100, concurrency=5, prompt=100_000, generate=0 + 1000, max_gpus=2)
    # 131,072 B a token: 3 of the 5 sequences are on one replica.
    row = by_division(result)[1, 1, 2, 1]
    assert row.shortfall == max(0.0, 3 * 101_000 * 131_072 - row.kv_pool)


def test_a_division_that_cuts_heads_is_refused_in_those_words():
    rows = by_division(fit("llama-3.1-70b", on=H100))
    for tp in (3, 5, 6, 7):
        assert (
            rows[tp, 1, 1, 1].reason == f"{tp} does not divide 8 KV heads and 64 query heads of llama-3.1-70b"
        )
    assert {tp for tp, *_ in rows} == set(range(1, 9))


def test_there_are_no_more_stages_than_layers():
    assert max(row.pp for row in fit("llama-3.1-8b", on=H100, max_gpus=64).rows) == 32


def test_weights_that_do_not_fit_say_how_large_they_are():
    row = by_division(fit("llama-3.1-70b", on=H100))[1, 1, 1, 1]
    assert row.reason == "weights do not fit: 141.1 GB of them on a GPU of 85.5 GB leave nothing for KV"


# Against the plans of single divisions


@pytest.mark.parametrize(
    ("model", "engine", "load"),
    [
        ("llama-3.1-70b", "generic", {"concurrency": 37, "prompt": 2000}),
        ("llama-3.1-70b", "vllm", {"concurrency": 8, "prompt": 30_000, "kv_dtype": "fp8"}),
        ("qwen3-235b-a22b", "vllm", {"concurrency": 64}),
        ("gemma-2-27b", "sglang", {"concurrency": 16}),
    ],
)
def test_a_row_is_what_a_plan_of_its_division_says(model, engine, load):
    result = fit(model, on=H100, engine=engine, price="2 USD/hour", **load)
    timed = [row for row in result.rows if row.tokens_per_second is not None]
    assert len(timed) >= 10
    for row in timed[:: max(1, len(timed) // 6)]:
        tp, pp, dp, ep = map(int, division(row))
        plan = api.plan(model, on=H100, engine=engine, price="2 USD/hour", tp=tp, pp=pp, dp=dp, ep=ep, **load)
        assert row.tokens_per_second == pytest.approx(plan.decode.tokens_per_second, rel=1e-9)
        assert row.pace == pytest.approx(plan.decode.tokens_per_second / load["concurrency"], rel=1e-9)
        assert row.prefill == pytest.approx(plan.prefill.time, rel=1e-9)
        assert row.kv_pool == pytest.approx(plan.memory.kv_pool, rel=1e-9)
        assert row.weights == pytest.approx(plan.memory.weights, rel=1e-9)
        assert row.sessions == plan.capacity.sessions
        assert row.cost_per_million_tokens == pytest.approx(plan.cost_per_million_tokens, rel=1e-9)


def test_no_division_of_fewer_gpus_fits_one_by_one():
    load = {"concurrency": 40, "prompt": 16_000}
    best = fit("llama-3.1-70b", on=H100, max_gpus=8, **load).best
    sizes = []
    for tp in (1, 2, 4, 8):
        for pp in range(1, 8 // tp + 1):
            for dp in range(1, 8 // (tp * pp) + 1):
                if api.plan("llama-3.1-70b", on=H100, tp=tp, pp=pp, dp=dp, **load).fits:
                    sizes.append(tp * pp * dp)
    assert best.gpus == min(sizes)


# Targets


def test_a_pace_that_is_too_slow_is_said():
    slow = fit("llama-3.1-70b", on=H100, max_gpus=8)
    fast = fit("llama-3.1-70b", on=H100, max_gpus=8, target_rate="60 token/s")
    assert slow.best.gpus == 2
    assert slow.best.pace < 60 <= fast.best.pace
    missed = by_division(fast)[2, 1, 1, 1]
    assert missed.reason == f"too slow: {missed.pace:.1f} token/s for each sequence, 60 asked"
    # A memory-bound step reads all weights once: no rank is faster than its bandwidth over its weights.
    assert all(row.pace < 3.35e12 * row.tp / 141.1e9 for row in fast.rows if row.pace)


def test_a_rate_keeps_replicas_busy_with_prefills_and_their_share_of_steps():
    load = {"concurrency": 32, "prompt": 8000, "generate": 400}
    result = fit("llama-3.1-8b", on=H100, max_gpus=8, rate="6/s", **load)
    for tp, pp, dp in ((1, 1, 1), (2, 1, 2), (1, 2, 2)):
        plan = api.plan("llama-3.1-8b", on=H100, tp=tp, pp=pp, dp=dp, **load)
        decode = 400 * dp / plan.decode.tokens_per_second
        # Requests are spread over the replicas, and stages of a pipeline prefill one prompt each.
        busy = 6 * (plan.prefill.time / pp + decode) / dp
        row = by_division(result)[tp, pp, dp, 1]
        assert row.busy == pytest.approx(busy, rel=1e-9)
        assert row.fits == (busy <= 1)
    slow = next(row for row in result.rows if row.busy and row.busy > 1)
    assert slow.reason == f"too slow: {6 / slow.busy:.2f} requests/s at most, 6 asked"


def test_the_best_comes_first_and_every_other_has_a_reason():
    result = fit("llama-3.1-70b", on=H100, concurrency=64, target_rate="30 token/s")
    good = [row for row in result.rows if row.fits]
    assert result.rows[: len(good)] == tuple(good)
    assert good == sorted(good, key=lambda row: (row.gpus, -row.tokens_per_second))
    assert result.best == good[0]
    assert all(row.reason == "" for row in good)
    assert all(row.reason for row in result.rows[len(good) :])
    assert len(by_division(result)) == len(result.rows)
    assert all(row.gpus == row.tp * row.pp * row.dp <= 64 for row in result.rows)


# Machines and engines


def test_layers_stay_inside_one_machine_and_machines_are_whole():
    result = fit("llama-3.1-70b", on="g6e.12xlarge", concurrency=8)
    assert result.node == 4
    assert max(row.tp for row in result.rows) == 4
    assert {row.gpus for row in result.rows if row.gpus > 4} <= set(range(8, 65, 4))
    # 141.1 GB on four L40S with 48.3 GB each.
    assert result.best.gpus == 4
    said = fit("llama-3.1-70b", on="g6e.12xlarge", gpus=6, concurrency=8)
    assert {row.gpus for row in said.rows if row.kv_pool is not None} == {6}


def test_a_machine_of_one_memory_stands_alone():
    result = fit("llama-3.1-8b", on="m3-ultra", max_gpus=4)
    assert (result.node, {row.tp for row in result.rows}) == (1, {1})


@pytest.mark.parametrize(
    ("engine", "expected"),
    [
        ("vllm", lambda tp, dp: {1, tp * dp}),
        ("sglang", lambda tp, dp: {1, tp}),
        ("generic", lambda tp, dp: {1, tp, tp * dp}),
    ],
)
def test_experts_are_spread_as_the_engine_can(engine, expected):
    rows = fit("qwen3-235b-a22b", on=H100, engine=engine, max_gpus=8, concurrency=8).rows
    seen = {}
    for row in rows:
        if row.kv_pool is not None and row.pp == 1:
            seen.setdefault((row.tp, row.dp), set()).add(row.ep)
    assert seen == {(tp, dp): expected(tp, dp) for tp, dp in seen}
    # 128 experts over 8 ranks are 16 each; their bytes are 1/8 however they are cut.
    held = {row.ep: row.weights for row in rows if (row.tp, row.pp, row.dp) == (8, 1, 1)}
    assert held[1] == pytest.approx(held[8], rel=1e-6)


def test_experts_over_all_replicas_make_room():
    # 128 experts of 235e9 parameters: eight replicas of one GPU hold an eighth of the experts each.
    rows = by_division(fit("qwen3-235b-a22b", on="h200-sxm-141gb", engine="vllm", max_gpus=8, concurrency=8))
    alone, spread = rows[1, 1, 8, 1], rows[1, 1, 8, 8]
    assert alone.kv_pool == 0
    assert alone.weights > 470e9
    assert spread.weights < 75e9
    assert spread.fits


def test_llama_cpp_divides_by_layers_alone():
    rows = fit("llama-3.1-70b", on=H100, engine="llama.cpp", max_gpus=4).rows
    assert (
        "llama.cpp divides a model by layers, not by heads"
        in by_division(fit("llama-3.1-70b", on=H100, engine="llama.cpp", max_gpus=4))[2, 1, 1, 1].reason
    )
    assert {row.tp for row in rows if row.kv_pool is not None} == {1}


# What is said is kept


def test_parts_of_the_division_may_be_said():
    result = fit("llama-3.1-70b", on=H100, tp=4, pp=2, concurrency=16)
    assert {(row.tp, row.pp) for row in result.rows} == {(4, 2)}
    assert fit("llama-3.1-70b", on=H100, gpus=4, concurrency=4).best.gpus == 4
    assert fit("llama-3.1-70b", on=H100, tp=3).best is None


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"tp": 80}, "tp: 80 is more than --max-gpus 64"),
        ({"max_gpus": 0}, "--max-gpus: 0 must be 1 or more"),
        ({"max_gpus": 2000}, "--max-gpus: 2,000 are more than"),
        ({"ep": 8}, "--fit: no division of up to 64 GPUs has ep 8"),
        ({"gpu_layers": 10, "engine": "llama.cpp"}, "--gpu-layers: --fit looks for GPUs that hold the whole"),
        ({"target_rate": "5 GB/s"}, "--target-rate: .* which is not a token/second"),
    ],
)
def test_what_cannot_be_searched_is_refused(said, message):
    with pytest.raises((SettingsError, ValueError), match=message):
        fit("llama-3.1-70b", on=H100, **said)


# The command


@pytest.mark.parametrize("target", [None, "1000 token/s"])
def test_every_format(target):
    result = fit("llama-3.1-70b", on=H100, concurrency=8, target_rate=target)
    rules = json.loads((schema.FOLDER / "fit-1.json").read_text(encoding="utf-8"))
    body = json.loads(render(result, "json"))
    jsonschema.validate(body, rules)
    assert len(body["rows"]) == len(result.rows)
    assert render(result, "csv").count("\n") == len(result.rows) + 1
    assert max(map(len, render(result, terminal=Terminal(80)).splitlines())) <= 80
    page = render(result, "markdown")
    assert ("meet the target" if target is None else "No division of up to 64 GPUs meets the target") in page


def test_the_command_line(capsys):
    ask = ["plan", "llama-3.1-70b", "--on", H100, "--fit", "--max-gpus", "8"]
    assert run(ask) == 0
    assert "2 GPUs meet the target: TP 2, PP 1, DP 1" in capsys.readouterr().out
    assert run([*ask, "--check", "--target-rate", "1000 token/s"]) == 1
    assert run([*ask, "--explain"]) == 2
    assert run(["plan", "llama-3.1-70b", "--on", H100, "--target-rate", "50 token/s"]) == 2
    assert "--target-rate: only --fit looks for a division" in capsys.readouterr().err
