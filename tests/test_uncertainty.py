"""Ranges of inputs: how they are read, and what they say of a verdict, against arithmetic by hand."""

import math
import time
from dataclasses import replace

import numpy as np
import pytest

import kvcalc
from kvcalc.api import load_hardware, load_model, restore
from kvcalc.catalog.ranges import ends
from kvcalc.engines import EngineSettings
from kvcalc.errors import KvcalcError
from kvcalc.planning.plan import answer
from kvcalc.planning.uncertainty import draw
from kvcalc.profiles import Band
from kvcalc.scenario import Range, Scenario, TierUse, Workload

BARE = {"prefill": "100 ms", "remaining": "30 ms", "setup": "5 ms"}


def test_the_middle_of_a_range_is_planned_with_and_its_ends_are_kept():
    # 1 GB at 15 GB/s, 30 ms and the middle of 2 and 8 ms
    result = restore("1 GB", "15 GB/s", **BARE | {"setup": "2..8 ms"})
    assert result.rows[0].setup == pytest.approx(0.005)
    assert result.rows[0].cached_total == pytest.approx(1 / 15 + 0.030 + 0.005)
    assert result.inputs["ranges"] == {"setup": pytest.approx([0.002, 0.008])}


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        pytest.param("5..20 ms", ("5 ms", "20 ms"), id="one unit for both"),
        pytest.param("500 us..20 ms", ("500 us", "20 ms"), id="each its own"),
        pytest.param("40..70%", ("40%", "70%"), id="percent"),
        pytest.param("4..16k", ("4k", "16k"), id="tokens"),
        pytest.param("0.4..0.7", ("0.4", "0.7"), id="no unit"),
        pytest.param("12 ms", None, id="one value"),
        pytest.param((0.005, 0.02), (0.005, 0.02), id="a pair of numbers"),
    ],
)
def test_ends_of_a_range(written, expected):
    assert ends(written, "here") == expected


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"setup": "20..5 ms"}, "setup: '20..5 ms' begins with its higher end"),
        ({"setup": "5.. ms"}, "no unit|is not a number"),
        ({"setup": "..5 ms"}, "no range"),
        ({"setup": "1..2..3 ms"}, "no range"),
        ({"setup": (1, 2, 3)}, "two ends"),
        ({"prefill": "0..100 ms"}, "more than zero"),
    ],
)
def test_what_is_no_range_is_refused(said, message):
    with pytest.raises(KvcalcError, match=message):
        restore("1 GB", "15 GB/s", **BARE | said)


def test_a_range_holds_nine_tenths_of_the_draws_and_never_leaves_what_is_possible():
    # Far from zero the normal distribution is whole, so a twentieth lies beyond each end.
    drawn = draw({"a": Range(80.0, 100.0, 120.0), "b": Range(0.0, 0.5, 1.0, 1.0)}, 200_000, seed=3)
    assert np.mean(drawn["a"] < 80) == pytest.approx(0.05, abs=0.002)
    assert np.mean(drawn["a"] > 120) == pytest.approx(0.05, abs=0.002)
    assert drawn["b"].min() > 0
    assert drawn["b"].max() <= 1


def test_a_lopsided_range_has_its_middle_in_the_middle():
    (values,) = draw({"a": Range(90.0, 100.0, 150.0)}, 200_000, seed=3).values()
    low, middle, high = np.quantile(values, [0.05, 0.5, 0.95])
    assert (low, middle, high) == (
        pytest.approx(90, rel=0.005),
        pytest.approx(100, rel=0.005),
        pytest.approx(150, rel=0.005),
    )


def test_one_more_range_does_not_change_the_draws_of_the_others():
    one = draw({"a": Range(1.0, 2.0, 3.0)}, 100, seed=5)
    two = draw({"b": Range(1.0, 2.0, 3.0), "a": Range(1.0, 2.0, 3.0)}, 100, seed=5)
    assert (one["a"] == two["a"]).all()
    assert (two["a"] != two["b"]).any()
    assert (draw({"a": Range(1.0, 2.0, 3.0)}, 100, seed=6)["a"] != one["a"]).any()


def test_draws_agree_with_the_sum_of_normal_distributions():
    # The gain is prefill - 30 ms - 1 GB / 25 GB/s - setup: normal, if prefill and setup are.
    # Means 100 - 30 - 40 - 20 = 10 ms; 90 % half widths 12 and 5 ms, together 13 ms.
    said = BARE | {"prefill": "88..112 ms", "setup": "15..25 ms"}
    (row,) = restore("1 GB", "25 GB/s", draws=200_000, **said).rows
    assert row.gain.middle == pytest.approx(0.010, abs=1e-4)
    assert row.gain.low == pytest.approx(0.010 - 0.013, abs=2e-4)
    assert row.gain.high == pytest.approx(0.010 + 0.013, abs=2e-4)
    # 10 ms are 1.6449 x 10 / 13 = 1.2653 standard deviations: Phi = 0.8971
    share = 0.5 * (1 + math.erf(1.6448536 * 10 / 13 / math.sqrt(2)))
    assert row.gain.faster == pytest.approx(share, abs=0.003)
    assert row.confidence == pytest.approx(2 * share - 1, abs=0.006)
    assert row.verdict == "too_close"
    assert row.reason == "the range of prefill straddles the break-even"


DRAWS = 40_000


def normal_share(z):
    return 0.5 * (1 + math.erf(z / math.sqrt(2)))


@pytest.mark.parametrize("seed", [11, 2026])
def test_draws_of_any_seed_agree_with_the_confidence_in_closed_form(seed):
    # One uncertain input: 100 - 30 - 40 - 20 = 10 ms, and the prefill's 90 % are 12 ms to either side.
    said = BARE | {"prefill": "88..112 ms", "setup": "20 ms"}
    closed = restore("1 GB", "25 GB/s", **said).rows[0]
    share = normal_share(1.6448536 * 10 / 12)
    assert closed.gain.faster is None
    assert closed.confidence == pytest.approx(2 * share - 1, abs=1e-6)
    (drawn,) = restore("1 GB", "25 GB/s", draws=DRAWS, seed=seed, **said).rows
    error = math.sqrt(share * (1 - share) / DRAWS)
    assert drawn.gain.faster == pytest.approx(share, abs=4 * error)
    assert drawn.confidence == pytest.approx(closed.confidence, abs=8 * error)
    assert drawn.verdict == closed.verdict == "too_close"


def test_two_seeds_give_a_plan_one_verdict_and_a_confidence_within_the_error_of_counting():
    said = {"on": "h100-sxm-80gb", "engine": "vllm", "prompt": "16k", "cached": "12k", "rate": "1/s"}
    tiers = {"nvme": {"bandwidth": "3..9 GB/s", "mechanism": "plain"}}
    rows = [
        kvcalc.plan("llama-3.1-8b", tiers=tiers, draws=DRAWS, seed=seed, **said).offload[0] for seed in (3, 4)
    ]
    first, second = (row.gain.faster for row in rows)
    assert first != second
    assert 0.05 < first < 0.95  # else there would be nothing to agree on
    error = math.sqrt(2 * first * (1 - first) / DRAWS)
    assert first == pytest.approx(second, abs=4 * error)
    assert rows[0].verdict == rows[1].verdict
    assert rows[0].confidence == pytest.approx(rows[1].confidence, abs=8 * error)


def test_the_same_seed_gives_the_same_answer():
    said = BARE | {"prefill": "88..112 ms"}
    first, second, other = (restore("1 GB", "25 GB/s", draws=1000, seed=seed, **said) for seed in (1, 1, 2))
    assert first == second
    assert first.rows[0].gain != other.rows[0].gain


def test_the_tornado_moves_one_input_at_a_time():
    # 1 GB at 20 GB/s in the middle: 100 - 30 - 50 - 5 = 15 ms.  At 10 GB/s 100 ms to move: -35 ms; at 30
    # GB/s 33.3 ms: 31.7 ms.  Prefill 90 and 110 ms: 5 and 25 ms.
    said = BARE | {"prefill": "90..110 ms"}
    result = restore("1 GB", "10..30 GB/s", **said)
    bandwidth, prefill = result.tornado
    assert (bandwidth.key, prefill.key) == ("tiers.10..30 GB/s.bandwidth", "prefill")
    assert bandwidth.gain_low == pytest.approx(-0.035)
    assert bandwidth.gain_high == pytest.approx(0.065 - 1 / 30)
    assert bandwidth.decides
    assert (prefill.gain_low, prefill.gain_high) == (pytest.approx(0.005), pytest.approx(0.025))
    assert prefill.swing == pytest.approx(0.020)
    assert not prefill.decides
    assert result.rows[0].verdict == "too_close"


def test_without_draws_all_ranges_go_to_their_worse_ends_together():
    said = BARE | {"prefill": "90..110 ms", "setup": "4..6 ms"}
    (row,) = restore("1 GB", "40 GB/s", **said).rows
    # 90 - 30 - 25 - 6 = 29 ms to 110 - 30 - 25 - 4 = 51 ms
    assert (row.gain.low, row.gain.high) == (pytest.approx(0.029), pytest.approx(0.051))
    assert row.gain.faster is None
    assert row.verdict == "restore"


MANY = tuple(
    TierUse(name, bandwidth, (0.7 * bandwidth, 1.3 * bandwidth), setup=0.01)
    for name, bandwidth in zip("abcde", (54e9, 20e9, 6.5e9, 3e9, 1e9), strict=True)
)


def asked(**changes):
    values = {
        "model": load_model("llama-3.1-8b"),
        "hardware": load_hardware("h100-sxm-80gb"),
        "gpus": 1,
        "settings": EngineSettings(),
        "workload": Workload(prompt=16_000, cached=12_000),
        "tiers": MANY,
    }
    return Scenario(**values | changes)


@pytest.mark.alone
def test_a_hundred_thousand_draws_of_five_tiers_take_less_than_two_seconds():
    ranges = {"hit": Range(0.6, 0.75, 0.9, 1.0), "queue": Range(0.001, 0.002, 0.003)}
    scenario = asked(draws=100_000, ranges=ranges, given=frozenset({"hit"}))
    began = time.perf_counter()
    rows = answer(scenario).offload
    assert time.perf_counter() - began < 2
    assert len(rows) == 5
    assert all(row.gain.faster is not None for row in rows)


def test_the_middle_of_the_draws_is_the_point_and_its_ends_those_of_the_formula():
    for row in answer(asked()).offload:
        assert row.gain.middle == pytest.approx(row.recompute - row.cached_total, abs=1e-12)
    machine = replace(
        load_hardware("h100-sxm-80gb"), prefill_efficiency=Band(0.4, 0.5, 0.6), attention_efficiency=None
    )
    (row,) = answer(asked(hardware=machine, tiers=MANY[3:4])).offload
    # verdict and confidence come from the same interval: both ends in the row's own closed form
    from kvcalc.formulas.breakeven import confidence

    assert row.confidence == pytest.approx(float(confidence(row.gain.low, row.gain.high)), abs=1e-9)


def test_a_hit_as_a_range_is_drawn_in_whole_blocks_of_the_prompt():
    # Half of the draws hit less than the middle; the gain at both ends is that of a plan with that hit.
    said = {"on": "h100-sxm-80gb", "prompt": "16k", "tiers": {"dram": {"bandwidth": "50 GB/s"}}}
    ranged = kvcalc.plan("llama-3.1-8b", hit="0.4..0.7", **said)
    (swing,) = (swing for swing in ranged.tornado if swing.key == "hit")
    for end, gain in ((0.4, swing.gain_low), (0.7, swing.gain_high)):
        (row,) = kvcalc.plan("llama-3.1-8b", hit=end, **said).offload
        assert gain == pytest.approx(row.recompute - row.cached_total, rel=1e-9)


def test_a_range_that_enters_no_verdict_is_told():
    result = kvcalc.plan(
        "llama-3.1-8b", on="h100-sxm-80gb", pool="40..60 GB", tiers={"dram": {"bandwidth": "50 GB/s"}}
    )
    assert result.capacity.budget == 50e9
    assert "the range of pool enters no verdict on offload; it is planned at 5e+10" in result.assumptions


def test_queueing_follows_the_drawn_bandwidth():
    # At the low end of the range the path cannot carry the rate: the restore never ends.
    tier = TierUse("slow", 4e9, (2e9, 6e9))
    scenario = asked(tiers=(tier,), workload=Workload(prompt=16_000, cached=12_000, rate=2.0))
    result = answer(scenario)
    size = 12_000 * 131_072  # 1.573 GB: 0.786 s at 2 GB/s, twice a second
    assert 2 * size / 2e9 > 1 > 2 * size / 4e9
    assert result.offload[0].gain.low == -math.inf
    assert result.to_dict()["offload"][0]["gain"]["low"] is None


def test_a_profile_value_that_is_set_as_a_range_is_the_tiers_range():
    result = kvcalc.plan("llama-3.1-8b", on="h100-sxm-80gb", set={"host_to_device.bandwidth": "40..50 GB/s"})
    assert result.offload[0].bandwidth == 45e9
    (swing,) = (swing for swing in result.tornado if swing.key == "tiers.dram.bandwidth")
    assert (swing.low, swing.high) == (40e9, 50e9)


def test_ranges_are_said_alike_in_a_file_and_on_the_command_line(tmp_path, capsys):
    import json

    from kvcalc.cli import run

    file = tmp_path / "scenario.yaml"
    file.write_text(
        "model: llama-3.1-8b\non: h100-sxm-80gb\nsetup: 5..20 ms\nworkload: {prompt: 16k, hit: 0.4..0.7}\n"
        "tiers:\n  dram: {capacity: 512 GB, bandwidth: 40..54 GB/s}\n"
    )
    line = ["plan", "llama-3.1-8b", "--on", "h100-sxm-80gb", "--prompt", "16k", "--hit", "0.4..0.7"]
    line += ["--setup", "5..20 ms", "--tier", "dram=512 GB@40..54 GB/s"]
    bodies = []
    for command in (["plan", str(file)], line):
        assert run([*command, "--draws", "2000", "--seed", "7", "--format", "json"]) == 0
        bodies.append(json.loads(capsys.readouterr().out))
    assert bodies[0]["offload"] == bodies[1]["offload"]
    assert bodies[0]["tornado"] == bodies[1]["tornado"]
    assert set(bodies[0]["inputs"]["ranges"]) == {"hit", "setup", "tiers.dram.bandwidth"}
    assert (bodies[0]["inputs"]["draws"], bodies[0]["inputs"]["seed"]) == (2000, 7)


def test_the_pace_of_routed_experts_is_drawn_along():
    # With both efficiencies given, the experts' share of a dense product's pace is what is left uncertain.
    said = {"on": "h100-sxm-80gb", "prompt": "16k", "cached": "12k", "draws": 2000}
    said["set"] = {"prefill_efficiency": "0.5"}
    result = kvcalc.plan("gpt-oss-120b", tiers={"s": {"bandwidth": "2.9999..3.0001 GB/s"}}, **said)
    swing, _ = result.tornado
    assert swing.key == "expert_efficiency"
    assert swing.gain_low > swing.gain_high  # a slow prefill makes restoring worth more
    (row,) = result.offload
    # The gain falls with the share, so its percentiles are the gains at the ends, but for the sampling.
    assert row.gain.low == pytest.approx(swing.gain_high, rel=0.04)
    assert row.gain.high == pytest.approx(swing.gain_low, rel=0.04)
