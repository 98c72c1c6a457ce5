"""Break-even in every variable: the curve crosses where the equation says, and is drawn there."""

import importlib.util

import numpy as np
import pytest

from kvcalc.api import restore
from kvcalc.cli import run
from kvcalc.errors import SettingsError
from kvcalc.output import render
from kvcalc.output.crossing import crossing

BARE = {"prefill": "100 ms", "remaining": "30 ms", "setup": "5 ms"}
TIER = {"dram": {"bandwidth": "50 GB/s", "capacity": "100 GB", "setup": "10 ms", "price": "0.3 USD/GB/month"}}
MODEL = {
    "model": "llama-3.1-8b",
    "on": "h100-sxm-80gb",
    "prompt": "16k",
    "cached": "12k",
    "prefill": "500 ms",
    "price": "3.6 USD/hour",
    "rate": "0.5/s",
    "tiers": TIER,
}
VARIABLES = ("bandwidth", "prefix", "hit", "interval", "piece")


def curve_over(variable, **said):
    return restore(curve=variable, **MODEL | said).break_even_curve


def crossing_of(curve):
    """Return where the two lines of a curve cross, from the points alone."""
    first, second = (np.array(line.values, dtype=float) for line in curve.lines)
    # No value where the wait never ends: longer than any.
    sign = np.sign(np.where(np.isnan(first), np.inf, first) - second)
    at = np.nonzero(sign[1:] != sign[:-1])[0][0]
    return curve.points[at], curve.points[at + 1]


def test_the_bandwidth_curve_by_hand():
    curve = restore("1 GB", "10 GB/s", curve="bandwidth", **BARE).break_even_curve
    assert curve.break_even == pytest.approx(1e9 / 0.065)
    low, high = crossing_of(curve)
    assert low <= curve.break_even <= high
    total = np.array(curve.lines[0].values)
    assert total == pytest.approx(1e9 / np.array(curve.points) + 0.035)
    assert set(curve.lines[1].values) == {0.1}


@pytest.mark.parametrize("variable", VARIABLES)
def test_the_lines_cross_at_the_break_even(variable):
    slow = {"dram": TIER["dram"] | {"setup": "150 ms"}} if variable == "prefix" else TIER
    curve = curve_over(variable, tiers=slow)
    low, high = crossing_of(curve)
    assert low <= curve.break_even <= high
    assert (curve.variable, curve.tier) == (variable, "dram")


def test_the_reuse_interval_is_the_five_minute_rule():
    result = restore(curve="interval", **MODEL)
    saved = 0.001 * (0.5 - result.rows[0].remaining)  # USD
    month = 365.25 / 12 * 86_400
    per_second = 12_000 * 131_072 / 1e9 * 0.3 / month
    assert result.break_even_curve.break_even == pytest.approx(saved / per_second, rel=1e-9)


def test_the_hit_rate_pays_for_the_whole_tier():
    result = restore(curve="hit", **MODEL)
    saved = 0.001 * (0.5 - result.rows[0].remaining)
    month = 365.25 / 12 * 86_400
    assert result.break_even_curve.break_even == pytest.approx(100 * 0.3 / month / (0.5 * saved), rel=1e-9)
    dear = {"dram": TIER["dram"] | {"price": "300 USD/GB/month"}}
    never = curve_over("hit", tiers=dear)
    assert never.break_even is None
    assert never.reason.startswith("even if every request hit")


def test_the_piece_size_reaches_the_break_even_bandwidth():
    # 50 GB/s and 3.5 us a piece: at the break-even rate B* a piece is t0 B* / (1 - B* / B)
    result = restore(curve="piece", **MODEL)
    rate = result.break_even_bandwidth
    assert result.break_even_curve.break_even == pytest.approx(3.5e-6 * rate / (1 - rate / 50e9), rel=1e-9)


def test_a_tier_below_its_break_even_has_no_piece_that_helps():
    slow = curve_over("piece", rate=None, tiers={"s3": {"bandwidth": "1 GB/s", "setup": "0 ms"}})
    assert slow.break_even is None
    assert "no piece is large enough" in slow.reason


@pytest.mark.parametrize(
    ("variable", "said", "message"),
    [
        ("hit", {"price": None}, "needs --price"),
        ("hit", {"rate": None}, "needs --rate"),
        ("interval", {"tiers": {"slow": {"bandwidth": "50 GB/s"}}}, "needs the price of slow"),
        (
            "hit",
            {"tiers": {"dram": {"bandwidth": "50 GB/s", "price": "1 USD/GB/month"}}},
            "needs the capacity",
        ),
        ("width", {}, "unknown variable 'width'"),
    ],
)
def test_what_a_curve_needs_is_asked_for(variable, said, message):
    with pytest.raises(SettingsError, match=message):
        curve_over(variable, **said)


def test_a_kind_of_tier_has_a_price_where_none_is_said():
    # The same prefix, kept for 0.02 USD/GB/month by an object store and for 0.2 in host memory.
    found = {
        name: curve_over("interval", tiers={name: {"bandwidth": "50 GB/s", "setup": "0 ms"}})
        for name in ("object", "dram")
    }
    assert found["object"].break_even == pytest.approx(10 * found["dram"].break_even)
    assert "0.2 USD/GB/month, which price= of the tier replaces" in found["dram"].reason
    said = {"bandwidth": "50 GB/s", "setup": "0 ms", "price": "0.2 USD/GB/month"}
    told = curve_over("interval", tiers={"dram": said})
    assert told.break_even == pytest.approx(found["dram"].break_even)
    assert "replaces" not in told.reason


def test_bare_numbers_have_no_prefix_curve():
    with pytest.raises(SettingsError, match="needs MODEL and --on"):
        restore("1 GB", "10 GB/s", curve="prefix", **BARE)


@pytest.mark.parametrize("variable", VARIABLES)
def test_the_drawing_marks_the_break_even(variable):
    curve = curve_over(variable)
    drawing = crossing(curve)
    plot = [line.split("|", 1)[1] for line in drawing.lines if "|" in line]
    assert len(plot) == 16
    assert any(":" in row for row in plot)
    assert any(line.startswith(":  break-even at ") for line in drawing.lines)
    assert all(len(line) <= 90 for line in drawing.lines)


def test_the_page_and_json_have_the_curve(capsys):
    asked = ["restore", "--bytes", "1 GB", "--bandwidth", "10 GB/s", "--prefill", "100 ms"]
    assert run([*asked, "--curve", "bandwidth"]) == 0
    assert "break-even at 10.0 GB/s" in capsys.readouterr().out
    result = restore("1 GB", "10 GB/s", curve="bandwidth", prefill="100 ms")
    assert '"break_even_curve": {' in render(result, "json")


@pytest.mark.skipif(importlib.util.find_spec("matplotlib") is None, reason="matplotlib is not installed")
def test_the_picture_is_written(tmp_path, capsys):
    file = tmp_path / "curve.svg"
    asked = ["restore", "--bytes", "1 GB", "--bandwidth", "10 GB/s", "--prefill", "100 ms"]
    assert run([*asked, "--curve", "bandwidth", "--curve-file", str(file)]) == 0
    assert "<svg" in file.read_text()
    assert run([*asked, "--curve-file", str(tmp_path / "curve.gif")]) == 2


def test_a_curve_of_one_of_several_tiers_says_whose_it_is():
    tiers = {"dram": {"bandwidth": "50 GB/s"}, "nvme": {"bandwidth": "6 GB/s"}}
    asked = {"model": "llama-3.1-8b", "on": "h100-sxm-80gb", "prompt": 16_000, "cached": 8_000}
    told = "the curve is that of dram; each other tier has its own, were it named alone"
    assert told in restore(curve="bandwidth", tiers=tiers, **asked).assumptions
    assert told not in restore(tiers=tiers, **asked).assumptions
    alone = restore(curve="bandwidth", tiers={"nvme": tiers["nvme"]}, **asked)
    assert not [text for text in alone.assumptions if "the curve" in text]
