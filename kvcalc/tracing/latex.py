"""A formula's equation as it is computed: LaTeX from the run of the function itself."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from kvcalc.explain import explain
from kvcalc.tracing.bounds import ANYTHING
from kvcalc.tracing.builtin import refuse
from kvcalc.tracing.current import current
from kvcalc.tracing.expression import Node
from kvcalc.tracing.mirror import Mirror
from kvcalc.tracing.number import Traced, node_of
from kvcalc.tracing.trace import Trace

_LOOSE, _SUM, _PRODUCT, _TIGHT = range(4)
"""How tightly an operation holds what it joins: a comparison, a sum, a product, a power."""


def traced_formula(formula: Callable[..., Any]) -> Any:
    """Return what a formula gives for traced arguments: the inputs of the trace that runs here."""
    name, trace = formula.__name__, current()
    mirror = Mirror({"kvcalc.formulas._domain": {"refuse": refuse}})
    arguments = {key: Traced(trace.graph.input(key, ANYTHING)) for key in trace.inputs}
    return getattr(mirror.load(formula.__module__), name)(**arguments)


def latex_of(formula: Callable[..., Any]) -> str:
    r"""Return the equation of a formula as its code computes it, in the symbols of its docstring.

    A formula with several parts gives one line a part; an argument that may be missing is.

    Raises
    ------
    DeadEndError
        If the formula works on tables of numbers, which have no equation.

    >>> from kvcalc.formulas import burst_time
    >>> latex_of(burst_time)
    '\\frac{D}{B}'
    """
    told = explain(formula.__name__)
    symbols = {symbol.name: symbol.latex for symbol in told.symbols}
    wanted = inspect.signature(formula).parameters.values()
    needed = [item.name for item in wanted if item.default is not None]
    with Trace(dict.fromkeys(needed, 1.0)).entered():
        return _lines(traced_formula(formula), symbols)


def _lines(found: Any, symbols: Mapping[str, str]) -> str:
    if is_dataclass(found):
        lines = [
            rf"\text{{{item.name}}} &= {_line(getattr(found, item.name), symbols)}" for item in fields(found)
        ]
        return r"\begin{aligned}" + r" \\ ".join(lines) + r"\end{aligned}"
    return _line(found, symbols)


def _line(value: Any, symbols: Mapping[str, str]) -> str:
    return _told(node_of(value), symbols, _LOOSE)


def _told(node: Node, symbols: Mapping[str, str], around: int) -> str:
    """Return a node in LaTeX, in brackets where what stands around it holds tighter."""
    if node.op == "input":
        return symbols.get(node.value, rf"\mathrm{{{node.value}}}")
    if node.op == "const":
        return _constant(node.value)
    rule, holds = _RULES[node.op]
    text = rule(*(_told(arg, symbols, inner) for arg, inner in zip(node.args, _INNER[node.op], strict=True)))
    return rf"\left({text}\right)" if holds < around else text


def _constant(value: Any) -> str:
    if isinstance(value, str):
        return rf"\text{{{value}}}"
    if value is None or isinstance(value, bool):
        return rf"\text{{{value}}}"
    if value == float("inf"):
        return r"\infty"
    mantissa, _, exponent = f"{value:.6g}".partition("e")
    return rf"{mantissa} \cdot 10^{{{int(exponent)}}}" if exponent else mantissa


def _cases(cond: str, yes: str, no: str) -> str:
    return rf"\begin{{cases}} {yes} & {cond} \\ {no} & \text{{otherwise}} \end{{cases}}"


_RULES: Mapping[str, tuple[Callable[..., str], int]] = {
    "add": (lambda a, b: f"{a} + {b}", _SUM),
    "sub": (lambda a, b: f"{a} - {b}", _SUM),
    "mul": (lambda a, b: rf"{a}\, {b}", _PRODUCT),
    "div": (lambda a, b: rf"\frac{{{a}}}{{{b}}}", _PRODUCT),
    "neg": (lambda a: f"-{a}", _SUM),
    "pow": (lambda a, b: f"{{{a}}}^{{{b}}}", _PRODUCT),
    "min": (lambda a, b: rf"\min\left({a}, {b}\right)", _TIGHT),
    "max": (lambda a, b: rf"\max\left({a}, {b}\right)", _TIGHT),
    "floor": (lambda a: rf"\left\lfloor {a} \right\rfloor", _TIGHT),
    "ceil": (lambda a: rf"\left\lceil {a} \right\rceil", _TIGHT),
    "abs": (lambda a: rf"\left|{a}\right|", _TIGHT),
    "sqrt": (lambda a: rf"\sqrt{{{a}}}", _TIGHT),
    "exp": (lambda a: rf"\exp\left({a}\right)", _TIGHT),
    "ln": (lambda a: rf"\ln\left({a}\right)", _TIGHT),
    "if": (_cases, _TIGHT),
    "lt": (lambda a, b: f"{a} < {b}", _LOOSE),
    "eq": (lambda a, b: f"{a} = {b}", _LOOSE),
    "not": (lambda a: rf"\neg \left({a}\right)", _TIGHT),
    "and": (lambda a, b: rf"{a} \wedge {b}", _LOOSE),
    "or": (lambda a, b: rf"{a} \vee {b}", _LOOSE),
    "finite": (lambda a: rf"{a} < \infty", _LOOSE),
    "blank": (lambda a: rf"{a} = \varnothing", _LOOSE),
}
"""Operation -> how it is written, and how tightly it holds."""

_INNER: Mapping[str, tuple[int, ...]] = {
    **{"add": (_SUM, _SUM), "sub": (_SUM, _PRODUCT), "mul": (_PRODUCT, _PRODUCT), "div": (_LOOSE, _LOOSE)},
    **{"neg": (_PRODUCT,), "pow": (_TIGHT, _LOOSE), "min": (_LOOSE, _LOOSE), "max": (_LOOSE, _LOOSE)},
    **dict.fromkeys(("floor", "ceil", "abs", "sqrt", "exp", "ln", "not", "finite", "blank"), (_LOOSE,)),
    **{"if": (_LOOSE, _LOOSE, _LOOSE), "lt": (_SUM, _SUM), "eq": (_SUM, _SUM)},
    **{"and": (_SUM, _SUM), "or": (_SUM, _SUM)},
}
"""Operation -> how tightly it holds each of its arguments."""
