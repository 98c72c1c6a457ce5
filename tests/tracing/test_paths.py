"""Ways that code takes over traced numbers, joined: small functions whose graphs are known by hand."""

import pytest

from kvcalc.errors import DomainError
from kvcalc.tracing.bounds import ANYTHING, COUNT, NOT_NEGATIVE, POSITIVE
from kvcalc.tracing.builtin import BUILTINS
from kvcalc.tracing.current import current
from kvcalc.tracing.expression import evaluate
from kvcalc.tracing.number import Traced, node_of
from kvcalc.tracing.paths import follow
from kvcalc.tracing.rewriting import rewritten
from kvcalc.tracing.trace import DeadEndError, Trace


def mirrored(source, name):
    """Return a function of a source text as the mirror runs it."""
    scope = {"__builtins__": BUILTINS}
    exec(compile(rewritten(source, "<test>"), "<test>", "exec"), scope)
    return scope[name]


def number(name, bounds=ANYTHING, optional=False):
    return Traced(current().graph.input(name, bounds, optional))


def value(found, **inputs):
    return evaluate(node_of(found), inputs)


@pytest.fixture(autouse=True)
def trace():
    with Trace({"x": 2.0, "y": 3.0}).entered() as running:
        yield running


def test_a_statement_becomes_a_choice():
    larger = mirrored("def f(a, b):\n    if a > b:\n        return a\n    return b\n", "f")
    found = larger(number("x"), number("y"))
    assert value(found, x=5.0, y=1.0) == 5.0
    assert value(found, x=1.0, y=7.0) == 7.0


def test_a_blank_input_is_none_and_not_zero():
    source = "def f(a):\n    if a is None:\n        return -1.0\n    return 1.0 if a == 0 else a\n"
    found = mirrored(source, "f")(number("x", NOT_NEGATIVE, optional=True))
    assert [value(found, x=given) for given in (None, 0.0, 4.0)] == [-1.0, 1.0, 4.0]


def test_rounding_up_by_floor_division_is_one_operation():
    found = mirrored("def f(a, b):\n    return -(-a // b)\n", "f")(number("x", COUNT), 16)
    assert node_of(found).op == "ceil"
    assert value(found, x=33) == 3


def test_an_error_is_a_limit_of_the_graph_and_not_a_way(trace):
    source = "def f(a, stop):\n    if a > 9:\n        raise stop('too much')\n    return a + 1\n"
    found = follow(lambda: mirrored(source, "f")(number("x"), DomainError))
    assert value(found, x=2.0) == 3.0
    assert [limit.reason for limit in trace.limits] == ["too much"]


def test_a_caught_error_is_a_way():
    source = (
        "def g(a, stop):\n    if a > 9:\n        raise stop('too much')\n    return a + 1\n"
        "def f(a, stop):\n    try:\n        return g(a, stop)\n    except stop:\n        return 0.0\n"
    )
    found = mirrored(source, "f")(number("x"), DomainError)
    assert [value(found, x=given) for given in (2.0, 20.0)] == [3.0, 0.0]


def test_what_code_that_is_not_followed_reads_is_the_number_of_now(trace):
    half = number("x") / 4  # x is 2.0 now
    assert float(half) == 0.5
    assert int(half) == 0
    assert {limit.reason for limit in trace.limits} == {"a number that the answer is made of is fixed at 0.5"}
    assert range(number("y"))[-1] == 2  # y is 3.0 now
    with pytest.raises(TypeError, match="not whole"):
        range(half)
    with pytest.raises(DeadEndError, match="rounding"):
        round(half, 2)


def test_a_trace_ends_with_its_block():
    with Trace().entered() as inner:
        assert current() is inner
        assert node_of(1.5) is node_of(1.5)
    assert current() is not inner


def test_words_and_numbers_in_words_follow():
    source = "def f(a):\n    return f'{a:.1f} left' if a < 2 else 'enough'\n"
    found = mirrored(source, "f")(number("x", POSITIVE))
    assert value(found, x=5.0) == "enough"
    assert "\0" in value(found, x=1.0)  # a place for the number, which the cell's TEXT() fills
