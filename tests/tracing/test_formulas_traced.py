"""Each formula run on traced numbers: its graph gives what the formula gives, and LaTeX comes from it."""

import dataclasses
import importlib.util
from pathlib import Path

import pytest

from kvcalc import formulas
from kvcalc.explain import explain, names
from kvcalc.tracing.expression import evaluate
from kvcalc.tracing.latex import latex_of, traced_formula
from kvcalc.tracing.number import node_of
from kvcalc.tracing.trace import Trace

_FILE = Path(__file__).parents[1] / "formulas" / "test_every_formula.py"
_SPEC = importlib.util.spec_from_file_location("every_formula", _FILE)
_EVERY = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(_EVERY)

ON_TABLES = {"shortest_worthwhile": "searches an array", "path_time": "adds up any number of hops"}
"""Formulas without an equation in single numbers, with the reason."""

SCALAR = [name for name in names() if name not in ON_TABLES]


def parts(result):
    if dataclasses.is_dataclass(result):
        return [getattr(result, item.name) for item in dataclasses.fields(result)]
    return [result]


@pytest.mark.parametrize("name", SCALAR)
@pytest.mark.parametrize("scale", [1.0, 1.07])
def test_the_graph_of_a_formula_gives_what_the_formula_gives(name, scale):
    sample = _EVERY.SAMPLES[name]
    formula = getattr(formulas, name)
    with Trace(sample).entered():
        traced = [node_of(part) for part in parts(traced_formula(formula))]
    # The graph is made at one set of numbers and read at another, unless that would leave a share's range.
    values = {key: value * scale if value > 1 else value for key, value in sample.items()}
    for node, expected in zip(traced, parts(formula(**values)), strict=True):
        value = evaluate(node, values)
        if isinstance(expected, str) or isinstance(value, bool):
            assert value == expected
        else:
            assert value == pytest.approx(float(expected), rel=1e-12)


@pytest.mark.parametrize("name", SCALAR)
def test_latex_comes_from_the_code_and_names_the_symbols_of_the_docstring(name):
    told = latex_of(getattr(formulas, name))
    needed = [symbol for symbol in explain(name).symbols if symbol.name in _EVERY.SAMPLES[name]]
    assert any(symbol.latex in told for symbol in needed) or name in {"verdict"}
    assert told.count("{") == told.count("}")


def test_latex_of_a_sum_and_of_a_rounding():
    # burst_time is bytes over bandwidth, block_count rounds tokens up to whole blocks
    assert latex_of(formulas.burst_time) == r"\frac{D}{B}"
    assert latex_of(formulas.block_count) == r"\left\lceil \frac{n}{b} \right\rceil"
