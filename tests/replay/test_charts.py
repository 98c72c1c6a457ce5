"""The miss-ratio curve as characters and as a picture."""

import pytest

from kvcalc.errors import SettingsError
from kvcalc.output.hit_chart import drawing, misses_of, sign
from kvcalc.output.hit_picture import picture
from kvcalc.replay.answer import replay_trace
from kvcalc.replay.trace import build_trace


@pytest.fixture(scope="module")
def result():
    """Chains of two blocks, four of them in turn and each twice, then again: reuse near and far."""
    chains = [[2 * one, 2 * one + 1] for one in range(4) for _ in range(2)]
    return replay_trace(build_trace(chains * 2, 16), [2, 4, 8], ["arc"])


def test_misses_are_what_rows_and_curve_say(result):
    found = misses_of(result)
    assert found.unit == "token"
    assert set(found.policies) == {"lru", "fifo", "belady", "arc"}
    # 16 requests: 8 repeat at once, 4 more come back after all four chains.
    assert found.floor == pytest.approx(4 / 16)
    assert dict(found.policies["lru"]) == {32.0: 0.5, 64.0: 0.5, 128.0: 0.25}
    curve = dict(found.line)
    for capacity, miss in found.policies["lru"]:
        assert capacity not in curve or curve[capacity] == pytest.approx(miss)


def test_the_drawing_has_every_policy_the_floor_and_the_knee(result):
    chart = drawing(result)
    text = "\n".join(chart.lines)
    for mark in ("* lru", "o fifo", "B belady", "a arc", "_ an infinite cache", ": knee at"):
        assert mark in text
    assert "25.0 %" in text
    assert max(map(len, chart.lines)) <= 80
    # LRU stands at 128 tokens, where it misses no more than an infinite cache: at the bottom right.
    bottom = next(line for line in chart.lines if line.startswith("25.0 %"))
    assert bottom.endswith("*")


def test_signs_of_other_policies_differ():
    names = ["lru", "arc", "gdsf", "sieve"]
    assert len({sign(name, names) for name in names}) == 4


@pytest.mark.parametrize(("file", "begin"), [("x.png", b"\x89PNG"), ("x.svg", b"<?xml")])
def test_a_picture_is_of_its_file_s_kind_and_the_same_each_time(result, file, begin):
    pytest.importorskip("matplotlib", reason="the extra chart is not installed")
    found = picture(result, file)
    assert found.startswith(begin)
    assert picture(result, file) == found


def test_bytes_are_drawn_where_they_are_known():
    chains = [[0, 1], [2, 3], [0, 1], [2, 3]]
    found = replay_trace(build_trace(chains, 16), [2, 4], bytes_per_token=1e6)
    assert misses_of(found).unit == "byte"
    assert "64.0 MB" in "\n".join(drawing(found).lines)


def test_one_capacity_is_no_curve():
    found = replay_trace(build_trace([[0], [1]], 16), [1])
    assert misses_of(found) is None
    assert drawing(found) is None
    with pytest.raises(SettingsError, match="nothing to draw"):
        picture(found, "x.png")
