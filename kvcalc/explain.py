"""What a formula says: equation, symbols, units, limits and source, read from its docstring.

The docstring of a formula is its contract; nothing is written down a second time for the people who
ask `kvcalc explain`, and the tests hold every docstring to this form.
"""

import inspect
import re
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from kvcalc import formulas
from kvcalc.errors import UnknownProfileError, did_you_mean
from kvcalc.readable import readable

_SECTION = re.compile(r"^(\w+)\n-{3,}$", re.MULTILINE)
_PARAMETER = re.compile(r"^(\w+) : (.+?), (.+?) \[([^\]]+)\]$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Symbol:
    """One argument of a formula, with its value once there is a run."""

    name: str  # the parameter as the library spells it
    symbol: str  # as it stands in the readable equation
    latex: str
    meaning: str
    unit: str
    value: object = None


@dataclass(frozen=True)
class Part:
    """One number that a formula gives; a sum that matters gives its parts and the total."""

    name: str
    unit: str  # empty for words and yes or no
    value: object = None


@dataclass(frozen=True)
class Explanation:
    """All that a formula's docstring tells, and in a run the numbers that went in and came out."""

    name: str
    summary: str
    equation: str  # one line of plain text
    latex: str
    symbols: tuple[Symbol, ...]
    results: tuple[Part, ...]
    notes: str  # where it is valid, and what it leaves out
    errors: str
    source: str
    example: str


def names() -> list[str]:
    """Return the names of all formulas, sorted."""
    return [name for name in formulas.__all__ if isinstance(getattr(formulas, name), types.FunctionType)]


def explain(name: str) -> Explanation:
    """Explain a formula by name.

    Raises
    ------
    UnknownProfileError
        If no formula has this name; the message lists near ones.

    Examples
    --------
    >>> explain("break_even_bandwidth").equation
    'B_break = D / (T_prefill - T_remaining - T_overhead + W)'
    """
    return _explained(_named(name))


def explain_call(
    formula: Callable[..., object] | str, arguments: Mapping[str, object], result: object
) -> Explanation:
    """Explain a formula with the numbers of one run put in; defaults count as numbers of the run.

    Raises
    ------
    UnknownProfileError
        If no formula has this name.
    TypeError
        If the arguments do not fit the formula's signature.

    Examples
    --------
    >>> told = explain_call(formulas.burst_time, {"size": 1e8, "bandwidth": 2e10}, 0.005)
    >>> [f"{s.symbol} = {s.value:g} {s.unit}" for s in told.symbols]
    ['D = 1e+08 byte', 'B = 2e+10 byte/second']
    """
    function = _named(formula) if isinstance(formula, str) else formula
    told = _explained(function)
    bound = inspect.signature(function).bind(**arguments)
    bound.apply_defaults()
    return replace(
        told,
        symbols=tuple(replace(symbol, value=bound.arguments[symbol.name]) for symbol in told.symbols),
        results=tuple(
            replace(part, value=getattr(result, part.name) if is_dataclass(result) else result)
            for part in told.results
        ),
    )


def unit_of(annotation: Any) -> str:  # noqa: ANN401 - annotations have no common type
    """Return the unit that an annotation names, also inside ``Sequence[...]``; empty without one.

    >>> from kvcalc.quantity import Seconds
    >>> unit_of(Seconds)
    'second'
    """
    if get_origin(annotation) is Annotated:
        return str(get_args(annotation)[1])
    return next((unit for part in get_args(annotation) if (unit := unit_of(part))), "")


def _named(name: str) -> Callable[..., object]:
    known = names()
    if name not in known:
        raise UnknownProfileError(f"no formula is named {name!r}{did_you_mean(name, known)}")
    function: Callable[..., object] = getattr(formulas, name)
    return function


def _explained(function: Callable[..., object]) -> Explanation:
    head, sections = _sections(inspect.getdoc(function) or "")
    summary, _, latex = head.partition(".. math::")
    latex = " ".join(latex.split())
    return Explanation(
        name=function.__name__,
        summary=" ".join(summary.split()),
        equation=readable(latex),
        latex=latex,
        symbols=_symbols(sections.get("Parameters", "")),
        results=_results(function),
        notes=_prose(sections.get("Notes", "")),
        errors=_prose(sections.get("Raises", "")),
        source=_prose(sections.get("References", "")),
        example=sections.get("Examples", ""),
    )


def _sections(docstring: str) -> tuple[str, dict[str, str]]:
    """Split a numpy docstring into what stands before the first section and the sections."""
    head, *rest = _SECTION.split(docstring)
    return head, {name: text.strip("\n") for name, text in zip(rest[::2], rest[1::2], strict=True)}


def _symbols(section: str) -> tuple[Symbol, ...]:
    return tuple(
        Symbol(name, readable(latex), latex, " ".join(meaning.split()), unit)
        for name, latex, meaning, unit in _PARAMETER.findall(section)
    )


def _results(function: Callable[..., object]) -> tuple[Part, ...]:
    annotation = get_type_hints(function, include_extras=True)["return"]
    if not is_dataclass(annotation):
        return (Part(function.__name__, unit_of(annotation)),)
    hints = get_type_hints(annotation, include_extras=True)
    parts = [Part(field.name, unit_of(hints[field.name])) for field in fields(annotation)]
    for name, member in vars(annotation).items():
        if isinstance(member, property):
            hint = get_type_hints(member.fget, include_extras=True)["return"]
            parts.append(Part(name, unit_of(hint)))
    return tuple(parts)


def _prose(section: str) -> str:
    """Return a section as one flowing text."""
    return " ".join(section.split())
