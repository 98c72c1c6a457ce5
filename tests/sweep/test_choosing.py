"""The best row and the Pareto front, against looking at every pair of rows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kvcalc
from kvcalc.errors import SettingsError
from kvcalc.sweeping.choosing import front, goal

VARY = {"tp": [1, 2, 4, 8], "concurrency": [1, 8, 64, 400], "prompt": [1000, 8000]}
ASKED = {"model": "llama-3.1-8b", "on": "h100-sxm-80gb", "price": "2 USD/hour", "vary": VARY}


def beaten_by_none(points):
    """Return the first of all points that no other one beats, by comparing all pairs."""
    found = []
    for index, own in enumerate(points):
        worse = any(
            all(b <= a for a, b in zip(own, other, strict=True)) and (other != own or place < index)
            for place, other in enumerate(points)
            if place != index
        )
        if not worse:
            found.append(index)
    return found


values = st.integers(0, 6).map(float) | st.just(float("nan"))


@given(st.integers(2, 4).flatmap(lambda n: st.lists(st.tuples(*[values] * n), min_size=1, max_size=40)))
def test_a_front_is_what_no_other_row_beats(points):
    known = [index for index, point in enumerate(points) if not np.isnan(point).any()]
    wanted = [known[place] for place in beaten_by_none([points[index] for index in known])]
    assert front([np.array(column) for column in zip(*points, strict=True)]).tolist() == wanted


def test_a_page_with_a_front_says_where_the_rows_are():
    from kvcalc.output import render

    page = render(kvcalc.sweep(**ASKED, pareto=["tp", "decode.step_time"]), "table")
    assert "All 32 rows: with --format csv or json, or --save FILE." in page


def test_the_best_row_fits_and_no_fitting_row_is_better():
    result = kvcalc.sweep(**ASKED, best="cost_per_million_tokens")
    fitting = [row for row in result.rows if row["fits"]]
    assert result.best in [dict(row) for row in fitting]
    assert result.best["cost_per_million_tokens"] == min(row["cost_per_million_tokens"] for row in fitting)
    assert len(fitting) < len(result.rows)


def test_a_way_may_be_said():
    most = kvcalc.sweep(**ASKED, best="max:decode.step_time")
    assert most.best_by == "max:decode.step_time"
    assert most.best["decode.step_time"] == max(r["decode.step_time"] for r in most.rows if r["fits"])


def test_the_front_of_a_sweep_is_that_of_its_fitting_rows():
    result = kvcalc.sweep(**ASKED, pareto=["tp", "decode.tokens_per_second", "decode.step_time"])
    rows = [dict(row) for row in result.rows if row["fits"]]
    points = [(r["tp"], -r["decode.tokens_per_second"], r["decode.step_time"]) for r in rows]
    wanted = [rows[place] for place in beaten_by_none(points)]
    assert sorted(result.pareto, key=str) == sorted(wanted, key=str)
    assert result.pareto_by == ("min:tp", "max:decode.tokens_per_second", "min:decode.step_time")


def test_a_front_does_not_depend_on_the_chunks(monkeypatch):
    whole = kvcalc.sweep(**ASKED, pareto=["tp", "decode.step_time"], best="decode.tokens_per_second")
    monkeypatch.setattr("kvcalc.sweeping.grid.CHUNK_ROWS", 3)
    pieces = kvcalc.sweep(**ASKED, pareto=["tp", "decode.step_time"], best="decode.tokens_per_second")
    assert (pieces.best, pieces.pareto) == (whole.best, whole.pareto)


def test_where_nothing_fits_there_is_no_best_row():
    result = kvcalc.sweep("llama-3.1-70b", "l4", vary={"concurrency": [1, 2]}, best="decode.step_time")
    assert (result.best, result.fitting, result.answered) == (None, 0, 2)


@pytest.mark.parametrize(
    ("text", "words"),
    [("decode.stp_time", "'decode.step_time'"), ("first_limit", "words"), ("max:nothing", "no such column")],
)
def test_a_goal_that_has_no_order_is_refused(text, words):
    with pytest.raises(SettingsError, match=words):
        goal(text, ["decode.step_time", "first_limit"], ["first_limit"], "--best")


def test_one_column_is_no_front():
    with pytest.raises(SettingsError, match="two columns"):
        kvcalc.sweep(**ASKED, pareto=["tp"])
