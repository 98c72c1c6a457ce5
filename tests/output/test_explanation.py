import json
import re

from kvcalc.explain import Explanation, Part, Symbol
from kvcalc.output import render
from kvcalc.output.explanation import Formulas
from kvcalc.output.table import Terminal


def told(bandwidth=None, result=None):
    return Explanation(
        name="burst_time",
        summary="How long does one fetch take?",
        equation="T = D / B₀",
        latex=r"T = \frac{D}{B_0}",
        symbols=(
            Symbol("size", "D", "D", "bytes of the fetch", "byte", 1e8 if bandwidth else None),
            Symbol("bandwidth", "B₀", "B_0", "rate of the link", "byte/second", bandwidth),
        ),
        results=(Part("burst_time", "second", result),),
        notes="No queue.",
        errors="DomainError if the bandwidth is not positive.",
        source="Definition of a rate.",
        example=">>> burst_time(1e8, 2e10)\n0.005",
    )


def test_a_formula_without_a_run_shows_units_limits_and_example():
    assert render(Formulas((told(),))) == (
        "burst_time\n"
        "  How long does one fetch take?\n"
        "  T = D / B₀\n"
        "\n"
        "  symbol         unit  name        meaning\n"
        "  D              byte  size        bytes of the fetch\n"
        "  B₀      byte/second  bandwidth   rate of the link\n"
        "  gives        second  burst_time\n"
        "  Holds: No queue.\n"
        "  Refuses: DomainError if the bandwidth is not positive.\n"
        "  Source: Definition of a rate.\n"
        "\n"
        "Example\n"
        "  >>> burst_time(1e8, 2e10)\n"
        "  0.005\n"
    )


def test_with_a_run_its_numbers_stand_in_the_formula(restore_result):
    page = render(restore_result, explanations=(told(2e10, 0.005),))  # 100 MB at 20 GB/s: 5 ms
    assert re.search(r"^  D +100 MB  size", page, re.MULTILINE)
    assert re.search(r"^  gives +5.00 ms  burst_time", page, re.MULTILINE)
    assert "Source: Definition of a rate." in page


def test_json_has_the_numbers_in_full(restore_result):
    body = json.loads(render(restore_result, "json", explanations=(told(2e10, 0.005),)))
    (formula,) = body["explanations"]
    assert [symbol["value"] for symbol in formula["symbols"]] == [1e8, 2e10]
    assert formula["results"] == [{"name": "burst_time", "unit": "second", "value": 0.005}]


def test_several_rates_are_listed():
    page = render(Formulas((told((7e9, 50e9), 0.005),)))
    assert "7.00 GB/s, 50.0 GB/s" in page


def test_equations_have_an_ascii_form():
    page = render(Formulas((told(),)), terminal=Terminal(100, unicode=False))
    assert "T = D / B_0" in page
    assert page.isascii()
