"""`explain` says what the docstring says, and puts in the numbers of a run."""

import pytest

from kvcalc import formulas
from kvcalc.errors import DomainError, UnknownProfileError
from kvcalc.explain import Part, Symbol, explain, explain_call, names
from kvcalc.readable import readable


def test_every_section_is_told():
    told = explain("burst_time")
    assert told.name == "burst_time"
    assert told.summary == "How long does one fetch take when it has the link for itself?"
    assert (told.equation, told.latex) == ("T = D / B", r"T = \frac{D}{B}")
    assert told.symbols == (
        Symbol("size", "D", "D", "bytes of one fetch", "byte"),
        Symbol("bandwidth", "B", "B", "sustained rate of the link", "byte/second"),
    )
    assert told.results == (Part("burst_time", "second"),)
    assert told.errors.startswith("DomainError If `size` is negative")
    assert "nominal rate" in told.notes
    assert told.source == "Definition: bytes over bytes per second."
    assert told.example == ">>> print(burst_time(100e6, 20e9))\n0.005"


def test_a_sum_tells_its_parts_and_total():
    assert [part.name for part in explain("restore_time").results] == [
        "queue",
        "setup",
        "transfer",
        "convert",
        "sync",
        "total",
    ]


@pytest.mark.parametrize("formula", [formulas.restore_time, "restore_time"], ids=["function", "name"])
def test_a_run_puts_its_numbers_in_defaults_included(formula):
    arguments = {"size": 1e9, "bandwidth": 2e10, "setup": 0.012}
    told = explain_call(formula, arguments, formulas.restore_time(**arguments))
    assert {symbol.name: symbol.value for symbol in told.symbols} == {
        "size": 1e9,
        "bandwidth": 2e10,
        "queue": 0.0,
        "setup": 0.012,
        "convert": 0.0,
        "sync": 0.0,
    }
    parts = {part.name: part.value for part in told.results}
    assert parts["transfer"] == pytest.approx(0.05)
    assert parts["total"] == pytest.approx(0.062)
    assert {part.unit for part in told.results} == {"second"}


def test_an_argument_that_the_formula_lacks_is_an_error():
    with pytest.raises(TypeError, match="speed"):
        explain_call(formulas.burst_time, {"size": 1.0, "bandwidth": 1.0, "speed": 1.0}, 1.0)


def test_a_misspelt_name_gets_the_nearest_one():
    with pytest.raises(
        UnknownProfileError, match=r"no formula is named 'break_even_bandwith'.*'break_even_bandwidth'"
    ):
        explain("break_even_bandwith")


def test_names_are_sorted_and_hold_no_constants_or_classes():
    assert names() == sorted(names())
    assert "burst_time" in names()
    assert not {"RestoreTime", "THRASH_SHARE"} & set(names())


@pytest.mark.parametrize(
    ("latex", "text"),
    [
        (r"R = \frac{C}{B}", "R = C / B"),
        (r"\frac{a + b}{c d}", "(a + b) / (c d)"),
        (r"\frac{a}{b / c}", "a / (b / c)"),
        (r"\max\left(0, T_{io} - W\right)", "max(0, T_io - W)"),
        (r"s_{1/2} = t_0 B^2", "s_(1/2) = t₀ B²"),
        (r"\left\lceil \frac{D}{s} \right\rceil t_0", "⌈D / s⌉ t₀"),
        (r"x^{n + 1} \cdot \eta", "x^(n + 1) · η"),
        (r"\frac{(a + b) c}{d}", "(a + b) c / d"),
    ],
)
def test_equations_become_one_line_of_text(latex, text):
    assert readable(latex) == text


@pytest.mark.parametrize("latex", [r"\int x", r"\frac{a}{b", "a}"])
def test_an_equation_that_cannot_be_shown_is_refused(latex):
    with pytest.raises(DomainError):
        readable(latex)
