"""Values of a formula over one argument, around the call that its docstring shows."""

import doctest
import inspect
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from docs.writers.scales import Scale
from kvcalc import formulas
from kvcalc.documents import read
from kvcalc.errors import DomainError
from kvcalc.explain import Explanation, explain

FILE = Path(__file__).resolve().parents[1] / "formula_plots.yaml"
"""Which argument a plot runs over and between which values, where the first that matters is not it."""

COUNT = 81
"""Points of a curve."""


LONGEST_WORD = 20
"""Letters up to which a word is a verdict and no sentence."""


@dataclass(frozen=True)
class Series:
    """The results of a formula over one argument, all others as in the example."""

    formula: str
    argument: str
    symbol: str
    scale: Scale  # of the argument
    is_log: bool
    points: list[float]
    unit: Scale  # of the results
    results: dict[str, list[float | str | None]]  # by the name of the part
    given: Mapping[str, float]  # values that differ from the example's


@cache
def example_call(name: str) -> tuple[Mapping[str, Any], object]:
    """Return the arguments of the first call in the docstring's example, and its result."""
    calls: list[tuple[Mapping[str, Any], object]] = []
    formula = getattr(formulas, name)

    def recorded(*given: object, **named: object) -> object:
        bound = inspect.signature(formula).bind(*given, **named)
        bound.apply_defaults()
        result = formula(*given, **named)
        calls.append((dict(bound.arguments), result))
        return result

    names = {other: getattr(formulas, other) for other in formulas.__all__} | {"np": np, name: recorded}
    test = doctest.DocTestParser().get_doctest(explain(name).example, names, name, None, None)
    doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=lambda _: None, clear_globs=False)
    if not calls:
        raise LookupError(f"the example of {name} does not call it")
    return calls[0]


@cache
def series(name: str) -> Series:
    """Return the values of a formula over the argument that its plot shows."""
    told, asked = explain(name), _asked().get(name, {})
    arguments, _ = example_call(name)
    if "shift" in asked:
        return _shifted(told, arguments, asked)
    base = {key: _first(value) for key, value in arguments.items()}
    free = "from" in asked  # the example's value need not say between which ends
    choices = [asked["over"]] if "over" in asked else [k for k, v in base.items() if free or _can_vary(v)]
    base |= asked.get("with", {})
    for argument in choices:
        points, is_log = _range(base[argument], told, argument, asked)
        results = _results(name, told, base, argument, points)
        if any(len(set(values)) > 1 for values in results.values()):
            return replace(_series(told, argument, points, is_log, results), given=asked.get("with", {}))
    raise LookupError(f"{name}: no argument changes the result; say one in {FILE.name}")


def _shifted(told: Explanation, arguments: Mapping[str, Any], asked: Mapping[str, Any]) -> Series:
    """Return the results with a number added to every value of one argument."""
    name, formula = asked["shift"], getattr(formulas, told.name)
    points = [float(f"{point:.6g}") for point in np.linspace(asked["from"], asked["to"], COUNT)]
    values: list[float | str | None] = []
    for point in points:
        try:
            values.append(_value(formula(**{**arguments, name: np.asarray(arguments[name]) + point})))
        except DomainError:
            values.append(None)
    found = _series(told, name, points, False, {told.results[0].name: values})
    return replace(found, argument=f"what is added to {name}", symbol="")


@cache
def _asked() -> Mapping[str, dict[str, Any]]:
    found: Any = read(FILE)
    return found


def _first(value: object) -> Any:  # noqa: ANN401 - a number, or a tuple of them
    return float(value.flat[0]) if isinstance(value, np.ndarray) else value


def _can_vary(value: object) -> bool:
    return isinstance(value, (int, float, np.number)) and math.isfinite(value) and value > 0


def _range(
    value: float, told: Explanation, argument: str, asked: Mapping[str, Any]
) -> tuple[list[float], bool]:
    """Return the points, and whether they are evenly spaced in powers."""
    unit = next(symbol.unit for symbol in told.symbols if symbol.name == argument)
    is_share = unit == "1" and isinstance(value, float) and value <= 1
    low = asked.get("from", 0.0 if is_share else value / 10)
    high = asked.get("to", 1.0 if is_share else value * 10)
    is_log = bool(low > 0 and high / low >= 20)
    points = np.geomspace(low, high, COUNT) if is_log else np.linspace(low, high, COUNT)
    if asked.get("whole") or ("from" not in asked and isinstance(value, int) and unit in ("1", "token")):
        points = np.unique(np.round(points))
    return [float(f"{point:.6g}") for point in points], is_log


def _results(
    name: str, told: Explanation, base: Mapping[str, Any], argument: str, points: list[float]
) -> dict[str, list[float | str | None]]:
    """Return the values of each part of the result, those of the largest unit alone where units differ."""
    found = getattr(formulas, name)(**{**base, argument: np.array(points)})
    units = [part.unit for part in told.results]
    parts = [part for part in told.results if part.unit == units[0]]
    values = {part.name: found if len(told.results) == 1 else getattr(found, part.name) for part in parts}
    return {
        part: [_value(one) for one in np.broadcast_to(np.asarray(given), len(points))]
        for part, given in values.items()
        if len(values) == 1 or np.any(np.asarray(given) != 0)
    }


def _value(one: object) -> float | str | None:
    if isinstance(one, (bool, np.bool_)):
        return "yes" if one else "no"
    if isinstance(one, str):
        return (str(one) if len(one) <= LONGEST_WORD else "a reason") or "none"
    number = float(one)  # type: ignore[arg-type]
    return float(f"{number:.5g}") if math.isfinite(number) else None


def _series(
    told: Explanation,
    argument: str,
    points: list[float],
    is_log: bool,
    results: dict[str, list[float | str | None]],
) -> Series:
    symbol = next(symbol for symbol in told.symbols if symbol.name == argument)
    numbers = [value for values in results.values() for value in values if isinstance(value, float)]
    return Series(
        formula=told.name,
        argument=argument,
        symbol=symbol.symbol,
        scale=Scale.of(symbol.unit, points),
        is_log=is_log,
        points=points,
        unit=Scale.of(told.results[0].unit, numbers),
        results=results,
        given={},
    )
