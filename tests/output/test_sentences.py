"""The verdict in words: each sentence with its numbers, in every case that a plan can end in."""

import math
from dataclasses import replace

import pytest

from kvcalc import api
from kvcalc.output.sentences import sentences
from kvcalc.results import Flip, Source

GB = 10**9


def said(result, start):
    """Return the one sentence that begins so."""
    (found,) = [sentence for sentence in sentences(result) if sentence.startswith(start)]
    return found


def fitting(result, **changes):
    values = {"need": 10 * GB, "budget": 40 * GB, "utilization": 0.25, "shortfall": 0.0, "sessions": 128}
    return replace(result, capacity=replace(result.capacity, **(values | changes)))


def test_a_plan_that_does_not_fit(plan_result):
    assert sentences(plan_result) == (
        "It does not fit: 32 sequences of 16,384 tokens each need 50.0 GB of KV on each GPU, 10.0 GB more"
        " than the 40.0 GB left for it; there is room for 25.",
        "It would fit with no more than 25 sequences at once or with kv_dtype fp8.",
        "Memory capacity is the first limit as load grows: 125 % of the KV memory is needed, while decoding "
        "1,140 token/s takes 50.0 % of the memory bandwidth.",
        "With a hit restored from dram (1.00 GB into each GPU) a prompt is ready after 135 ms, without it"
        " after 100 ms: restoring is 1.35 times slower; 10.0 GB/s is below the break-even of 15.4 GB/s.",
        "With a hit restored from =cmd|calc!A1 (1.00 GB into each GPU) a prompt is ready after 135 ms, "
        "without it after 100 ms: restoring would be 1.35 times slower, which is too close to call; 10.0 "
        "GB/s is below the break-even of 15.4 GB/s.",
        "If dram gave more than 15.4 GB/s, restoring would be faster.",
        "Losing a running sequence costs 2.56 s to recompute its 32,000 tokens; above 5 evictions per "
        "second, stop admitting.",
        "What is assumed: prefill.efficiency was not measured.",
    )


def test_a_plan_that_fits_says_by_how_many(plan_result):
    assert sentences(fitting(plan_result))[0] == (
        "It fits: 32 sequences of 16,384 tokens each need 10.0 GB of KV on each GPU, 25.0 % of the 40.0 "
        "GB left for it; there is room for 128, 96 more than asked."
    )
    assert sentences(fitting(plan_result, sessions=32))[0].endswith("there is room for 32, no more.")


def test_one_sequence_is_singular(plan_result):
    one = replace(plan_result, inputs=plan_result.inputs | {"concurrency": 1})
    assert sentences(fitting(one))[0].startswith(
        "It fits: 1 sequence of 16,384 tokens needs 10.0 GB of KV on each GPU, "
    )


def test_not_even_one_sequence_fits(plan_result):
    result = replace(plan_result, capacity=replace(plan_result.capacity, sessions=0), flips=())
    assert sentences(result)[0].endswith("; not even one fits.")
    assert sentences(result)[1] == "It would fit with 50.0 GB of KV memory on each GPU."


@pytest.mark.parametrize(
    ("weights", "start"),
    [
        (90 * GB, "It does not fit: the weights alone take 90.0 GB of the 80.0 GB that each GPU has."),
        (
            79 * GB,
            "It does not fit: the weights take 79.0 GB of the 80.0 GB that each GPU has, and what the engine "
            "keeps besides leaves nothing for KV.",
        ),
    ],
)
def test_without_any_memory_for_kv_nothing_infinite_is_said(plan_result, weights, start):
    memory = replace(plan_result.memory, weights=weights, kv_pool=0.0)
    capacity = replace(plan_result.capacity, budget=0.0, utilization=math.inf, sessions=0)
    streaming = replace(
        plan_result.offload[0], mode="active_working_set", recompute=math.inf, speedup=math.inf
    )
    result = replace(plan_result, memory=memory, capacity=capacity, offload=(streaming,))
    found = sentences(result)
    assert found[0] == start
    assert found[1].startswith("More GPUs or narrower weights (--weights-dtype) would make room;")
    assert said(result, "Memory capacity is the first limit, since none is left for KV;")
    assert not any(word in " ".join(found) for word in ("inf", "no limit", "never", "Streaming"))


def test_the_first_limit_names_the_use_of_the_other(plan_result):
    busy = replace(plan_result.bandwidth, utilization=1.5)
    result = replace(fitting(plan_result), first_limit="bandwidth", bandwidth=busy)
    assert said(result, "Memory bandwidth") == (
        "Memory bandwidth is the first limit as load grows: decoding 1,140 token/s takes 150 % of the memory "
        "bandwidth, so it would reach 1,140 token/s, while 25.0 % of the KV memory is needed."
    )
    assert said(replace(result, first_limit="tie"), "Memory capacity and bandwidth limit it alike: ")


def test_a_window_is_said_and_its_break_even_counts_it(plan_result):
    row = replace(
        plan_result.offload[0],
        overlapped_total=0.085,
        extra_wait=0.05,
        speedup=100 / 85,
        verdict="restore",
        break_even_bandwidth=1e9 / 0.115,
    )
    result = replace(plan_result, offload=(row,), inputs=plan_result.inputs | {"window": 0.05})
    assert said(result, "With a hit") == (
        "With a hit restored from dram (1.00 GB into each GPU, up to 50.0 ms of it under other work) a "
        "prompt is ready after 85.0 ms, without it after 100 ms: restoring is 1.18 times faster; 10.0 "
        "GB/s is above the break-even of 8.70 GB/s with that overlap."
    )
    layers = replace(result, inputs=result.inputs | {"window": None})
    assert "(1.00 GB into each GPU, layer by layer under the prefill)" in said(layers, "With a hit")


def test_without_a_break_even_the_reason_is_said(plan_result):
    row = replace(plan_result.offload[0], break_even_bandwidth=None, reason="the hit saves no time")
    result = replace(plan_result, offload=(row,))
    assert said(result, "With a hit").endswith(
        "; no bandwidth would break even, since the hit saves no time."
    )


def test_streaming_is_told_for_the_fastest_tier(plan_result):
    slow = replace(
        plan_result.offload[0], mode="active_working_set", tier="nvme", bytes=10 * GB, transfer=2.0,
        overlapped_total=2.0, recompute=0.5, speedup=0.25,
    )  # fmt: skip
    fast = replace(slow, tier="dram", transfer=0.4, overlapped_total=0.4, speedup=1.25, verdict="restore")
    result = replace(plan_result, offload=(slow, fast))
    assert said(result, "Streaming") == (
        "Streaming the 10.0 GB that do not fit from dram in every decode step makes a step last 400 ms, "
        "against 500 ms when sequences take turns: streaming is 1.25 times faster; 10.0 GB/s is below the"
        " break-even of 15.4 GB/s."
    )
    alone = replace(fast, recompute=math.inf, speedup=math.inf, break_even_bandwidth=None)
    assert said(replace(plan_result, offload=(alone,)), "Streaming").endswith(
        "makes a step last 400 ms; not one sequence fits without it, so there is nothing to compare with."
    )


@pytest.mark.parametrize(
    ("inputs", "start"),
    [
        ({"prompt": 4096, "cached": 0}, "No prompt tokens hit, so there is nothing to restore."),
        ({"prompt": 4096, "cached": 8}, "The hit is less than one block of 16 tokens, "),
        ({"prompt": 4096, "cached": None}, "CPU and GPU share one memory, "),
    ],
)
def test_without_offload_the_cause_is_said(plan_result, inputs, start):
    assert said(replace(plan_result, offload=(), inputs=plan_result.inputs | inputs), start)


def test_the_nearest_flip_of_each_kind_is_told(plan_result):
    flips = (
        Flip("concurrency", 32, 129, "does not fit", "1"),
        Flip("prompt + generate", 16_384, 17_001, "does not fit", "token"),
        Flip("tokens per second", 1139.0, 500.0, "first limit: capacity", "token/second"),
        Flip("tiers.dram.bandwidth", 54e9, 1.8e9, "recompute", "byte/second", "dram"),
        Flip("cached", 4096.0, 2048.0, "recompute", "token", "dram"),
    )
    assert said(replace(fitting(plan_result), flips=flips), "With 17,001") == (
        "With 17,001 or more tokens in each sequence it would no longer fit; if no more than 2,048 tokens"
        " hit, recomputing would be faster than restoring from dram; if it had to decode less than 500 "
        "token/s, memory capacity would be the first limit."
    )
    one = replace(fitting(plan_result), flips=flips[3:4])
    assert said(one, "If") == "If dram gave less than 1.80 GB/s, recomputing would be faster."
    share = Flip("prefill_efficiency", 0.55, 0.183, "restore", "1", "nvme")
    assert said(replace(plan_result, flips=(share,)), "If") == (
        "If prefill reached less than 18.3 % of the dense peak, restoring from nvme would be faster."
    )


def test_the_cheaper_way_to_lose_a_sequence_comes_first(plan_result):
    swap = replace(plan_result.eviction, swap_time=0.06, cheapest_mode="swap")
    assert said(replace(plan_result, eviction=swap), "Losing").startswith(
        "Losing a running sequence costs 60.0 ms to swap it out to dram and back, against 2.56 s to recompute"
    )
    slow = replace(plan_result.eviction, swap_time=9.0)
    assert said(replace(plan_result, eviction=slow), "Losing").startswith(
        "Losing a running sequence costs 2.56 s to recompute its 32,000 tokens, against 9.00 s to swap it"
        " out "
    )


def test_rare_evictions_are_told_by_the_time_between_them(plan_result):
    rare = replace(plan_result.eviction, thrash_evictions_per_second=0.0125)
    assert said(replace(plan_result, eviction=rare), "Losing").endswith(
        "; above one eviction every 80.0 s, stop admitting."
    )


def test_assumptions_are_named_with_their_values(plan_result):
    sources = {
        "model": Source("assumed", "recalled"),
        "decode_efficiency": Source("assumed", "a prior", "0.75"),
        "device.capacity": Source("nominal", "a sheet", "80 GB"),
    }
    inputs = plan_result.inputs | {"rate": None, "cached": None, "tiers": {}}
    assert said(replace(plan_result, sources=sources, inputs=inputs), "What is assumed") == (
        "What is assumed: the model's shape and decode_efficiency (0.75) were not measured; 35.6 token/s "
        "for each sequence (--rate), a hit of the whole prompt (--hit) and host DRAM as the slower tier "
        "(--tier) were not given."
    )
    assert said(replace(plan_result, sources={}), "No value that this rests on is assumed.")


@pytest.mark.parametrize(
    ("model", "on", "more"),
    [
        ("llama-3.1-8b", "l4", {"concurrency": 10}),
        ("llama-3.1-70b", "h100-sxm-80gb", {"gpus": 4, "concurrency": 64, "prompt": "16k"}),
        ("llama-3.1-70b", "h100-sxm-80gb", {"concurrency": 4}),
        ("deepseek-v3", "h200-sxm-141gb", {"gpus": 8, "tiers": {"nvme": {"bandwidth": "6.5 GB/s"}}}),
        ("gemma-3-27b", "gh200-96gb", {"window": "50 ms", "cached": "2k"}),
        ("qwen3.5-27b", "h100-sxm-80gb", {"rate": "2/s", "hit": 0.5}),
        ("llama-3.1-8b", "m3-max", {}),
        ("llama-3.1-8b", "h100-sxm-80gb", {"pool": "2 GB", "concurrency": 32}),
    ],
)
def test_real_plans_are_told_in_four_to_nine_sentences_with_numbers(model, on, more):
    found = sentences(api.plan(model, on=on, **more))
    assert 4 <= len(found) <= 9
    for sentence in found:
        assert sentence.endswith(".")
        assert sentence[0].isupper()
        assert any(character.isdigit() for character in sentence) or "share one memory" in sentence
        assert not any(word in sentence for word in ("None", "nan", "inf", "no answer", "no limit", "  "))


def test_a_restore_that_never_ends_is_said_in_words(plan_result):
    endless = replace(
        plan_result.offload[0],
        cached_total=math.inf,
        queue=math.inf,
        speedup=0.0,
        reason="its link is full",
        break_even_bandwidth=None,
    )
    told = said(replace(plan_result, offload=(endless,)), "Restores")
    assert told.startswith("Restores from dram (1.00 GB into each GPU) would wait without end, ")
    assert "never," not in told


def test_a_difference_that_does_not_show_is_no_multiple(plan_result):
    near = replace(plan_result.offload[0], speedup=1.002, verdict="restore")
    assert "restoring is less than 1 % faster" in said(replace(plan_result, offload=(near,)), "With a hit")
