"""Distributions that inputs may have in files, and ranges that are written in another way."""

import json
import math

import numpy as np
import pytest

from kvcalc.api import plan, restore
from kvcalc.catalog.ranges import distribution
from kvcalc.cli import run
from kvcalc.errors import KvcalcError
from kvcalc.planning.uncertainty import draw

ON = ("llama-3.1-8b", "h100-sxm-80gb")


@pytest.mark.parametrize(
    ("said", "low", "middle", "high"),
    [
        # 1.6449 standard deviations on each side hold 90 % of a normal distribution
        ({"normal": [20.0, 2.0]}, 16.710, 20.0, 23.290),
        ({"lognormal": [20.0, 0.3]}, 20 * np.exp(-0.49346), 20.0, 20 * np.exp(0.49346)),
        ({"uniform": [10.0, 30.0]}, 11.0, 20.0, 29.0),
    ],
)
def test_the_range_of_a_distribution_is_its_central_ninety_percent(said, low, middle, high):
    found = distribution(said, "x", float)
    assert (found.low, found.middle, found.high) == pytest.approx((low, middle, high), rel=1e-4)
    values = draw({"x": found}, 200_000, seed=1)["x"]
    assert np.quantile(values, [0.05, 0.5, 0.95]) == pytest.approx([low, middle, high], rel=0.01)
    assert np.array_equal(values, draw({"x": found}, 200_000, seed=1)["x"])


def test_draws_follow_the_distribution_and_not_a_normal_of_its_range():
    uniform = draw({"x": distribution({"uniform": [10.0, 30.0]}, "x", float)}, 100_000, 1)["x"]
    assert 10 <= uniform.min() < 10.1
    assert 29.9 < uniform.max() <= 30
    skewed = draw({"x": distribution({"lognormal": [20.0, 0.8]}, "x", float)}, 100_000, 1)["x"]
    assert skewed.mean() == pytest.approx(20 * np.exp(0.8**2 / 2), rel=0.02)
    assert np.log(skewed).std() == pytest.approx(0.8, rel=0.01)


def test_a_file_may_say_distributions(tmp_path, capsys):
    file = tmp_path / "scenario.yaml"
    file.write_text(
        "model: llama-3.1-8b\non: h100-sxm-80gb\nsetup: {uniform: [5 ms, 20 ms]}\n"
        "workload: {prompt: 16k, hit: {normal: [0.6, 0.05]}}\n"
        "tiers: {nvme: {bandwidth: {lognormal: [6 GB/s, 0.3]}}}\n"
    )
    assert run(["plan", str(file), "--draws", "1000", "--format", "json"]) == 0
    told = capsys.readouterr().out
    assert '"tiers.nvme.bandwidth"' in told
    result = plan(str(file), draws=1000)
    assert result.inputs["ranges"]["setup"] == pytest.approx([0.00575, 0.01925])
    row = result.offload[0]
    assert row.gain.low < row.gain.middle < row.gain.high


def test_the_bandwidth_of_a_tier_is_drawn_from_its_distribution():
    # 1 GB takes 100 ms at 10 GB/s: faster above it, which is ln 2 / 0.3 = 2.31 sigma below the median
    share = 0.5 * (1 + math.erf(math.log(2) / 0.3 / math.sqrt(2)))
    found = restore("1 GB", "{lognormal: [20 GB/s, 0.3]}", prefill="100 ms", draws=100_000)
    assert found.rows[0].gain.faster == pytest.approx(share, abs=4 * math.sqrt(share * (1 - share) / 1e5))
    # the quantiles of B are 20 exp(+-1.6449 x 0.3) GB/s
    ends = [0.1 - 1 / (20 * math.exp(z * 0.3)) for z in (-1.6448536, 1.6448536)]
    assert [found.rows[0].gain.low, found.rows[0].gain.high] == pytest.approx(ends, abs=4e-4)


def test_a_distribution_is_the_same_in_a_file_in_python_and_on_the_command_line(tmp_path, capsys):
    file = tmp_path / "scenario.yaml"
    file.write_text(
        f"model: {ON[0]}\non: {ON[1]}\nsetup: {{uniform: [5 ms, 20 ms]}}\nengine: vllm\n"
        "workload: {prompt: 16k, hit: {normal: [0.6, 0.05]}}\n"
        "tiers: {nvme: {capacity: 4 TB, bandwidth: {lognormal: [6 GB/s, 0.3]}}}\n"
    )
    filed = plan(str(file), draws=5000)
    tier = {"capacity": "4 TB", "bandwidth": {"lognormal": ["6 GB/s", 0.3]}}
    more = {"setup": {"uniform": ["5 ms", "20 ms"]}, "hit": {"normal": [0.6, 0.05]}, "engine": "vllm"}
    passed = plan(ON[0], on=ON[1], prompt="16k", tiers={"nvme": tier}, draws=5000, **more)
    asked = [*("plan", ON[0], "--on", ON[1], "--prompt", "16k", "--engine", "vllm", "--draws", "5000")]
    asked += ["--setup", "{uniform: [5 ms, 20 ms]}", "--hit", "{normal: [0.6, 0.05]}", "--format", "json"]
    assert run([*asked, "--tier", "nvme=4 TB@{lognormal: [6 GB/s, 0.3]}"]) == 0
    typed = json.loads(capsys.readouterr().out)["offload"][0]
    first, second = filed.offload[0], passed.offload[0]
    assert (first.verdict, first.confidence, first.gain) == (second.verdict, second.confidence, second.gain)
    for name in ("low", "middle", "high", "faster"):
        assert typed["gain"][name] == getattr(first.gain, name)
    assert (typed["verdict"], typed["confidence"]) == (first.verdict, first.confidence)


@pytest.mark.parametrize(
    ("option", "said", "words"),
    [
        ("--tier", "dram=@{gamma: [20 GB/s, 1]}", "is no distribution; write one of"),
        ("--tier", "dram=@{lognormal: [20 GB/s, 3 GB/s]}", "sigma '3 GB/s' is not a positive number"),
        ("--tier", "dram=@{lognormal: [20 GB/s, 30]}", "sigma 30 is that of the logarithm, and 3 is"),
        (
            "--tier",
            "dram={lognormal: [20 GB/s, 0.3]}",
            "write for example 'dram=@{lognormal: [20 GB/s, 0.3]}'",
        ),
        ("--setup", "{uniform: [20 ms, 5 ms]}", "lower one first"),
        ("--set", "host_to_device.bandwidth={normal: [20 GB/s, 2 GB/s]}", "a profile value takes a range"),
        ("--set", "prefill_efficiency={normal: [0.5, 0.1]}", "a profile value takes a range"),
    ],
)
def test_what_is_no_distribution_is_refused_on_the_command_line_in_one_line(option, said, words, capsys):
    assert run(["plan", ON[0], "--on", ON[1], option, said]) == 2
    out, error = capsys.readouterr()
    assert out == ""
    assert words in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"lognormal": ["20 GB/s"]}, "two numbers"),
        ({"gamma": ["20 GB/s", 1]}, "write one of"),
        ({"lognormal": ["20 GB/s", "3 GB/s"]}, "without a unit"),
        ({"normal": ["20 GB/s", "30 GB/s"]}, "below zero"),
        ({"normal": [20, 3]}, "unit"),
        ({"uniform": ["30 GB/s", "20 GB/s"]}, "lower one first"),
    ],
)
def test_what_is_no_distribution_is_refused(tmp_path, said, words):
    file = tmp_path / "scenario.yaml"
    file.write_text(json.dumps({"model": ON[0], "on": ON[1], "tiers": {"nvme": {"bandwidth": said}}}))
    with pytest.raises(KvcalcError, match=words):
        plan(str(file))


@pytest.mark.parametrize(
    "rate", ["20 to 30 GB/s", "20-30 GB/s", "10 GB/s ± 20%", "10 GB/s +- 2 GB/s", "[20 GB/s, 30 GB/s]"]
)
def test_other_spellings_of_a_range_are_told_the_one(rate, capsys):
    asked = ["restore", "--bytes", "1 GB", "--prefill", "1 s"]
    assert run([*asked, "--bandwidth", rate]) == 2
    assert "LOW..HIGH" in capsys.readouterr().err
    assert run(["plan", ON[0], "--on", ON[1], "--tier", f"nvme=1 TB@{rate}"]) == 2
    assert "LOW..HIGH" in capsys.readouterr().err
    assert run([*asked, "--bandwidth", "20 GB/s", "--setup", rate.replace("GB/s", "ms")]) == 2
    assert "LOW..HIGH" in capsys.readouterr().err


def test_a_number_with_an_exponent_is_no_range():
    assert restore("1e9 B", "1e10 B/s", prefill="1e-1 s").rows[0].transfer == pytest.approx(0.1)


def test_what_loses_in_the_middle_of_its_range_is_said_to_lose():
    from kvcalc.output.pages.ranges import gain_text
    from kvcalc.results import GainRange

    for sign, word in ((-1, "loses"), (1, "saves")):
        low, high = sorted((sign * -0.02, sign * 0.5))
        found = gain_text(GainRange(low=low, middle=sign * 0.273, high=high, faster=None))
        assert found.startswith(f"{word} 273 ms (-20.0 to 500 ms")
