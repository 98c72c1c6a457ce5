"""docs/formulas.md, which lists every formula by topic, and a page with a plot for each."""

import inspect
import re
from collections.abc import Mapping
from importlib import import_module
from typing import Any

import numpy as np

from docs.writers.markdown import anchor, code, document, escape, fence, prose, table
from docs.writers.pictures import Picture
from docs.writers.sampling import Series, example_call, series
from docs.writers.scales import Scale
from kvcalc import formulas
from kvcalc.explain import Explanation, Symbol, explain, names

ROWS = 6
"""Rows of the table under a plot."""
DASHES = ("-", "--", ":", "-.")
"""How the lines of a plot are drawn."""


def pages() -> dict[str, str]:
    """Return the list of formulas and a page for each, by file name."""
    topics = by_topic()
    found = {"formulas.md": _index(topics)}
    for told in (told for group in topics.values() for told in group):
        found[f"formulas/{told.name}.md"] = _formula(told)
    return found


def pictures() -> dict[str, Picture]:
    """Return the plot of every formula by file name."""
    return {f"formulas/{name}.svg": _picture(series(name)) for name in names()}


def by_topic() -> dict[str, list[Explanation]]:
    """Return the formulas of each module of `kvcalc.formulas`, by the module's name."""
    found: dict[str, list[Explanation]] = {}
    for name in names():
        found.setdefault(getattr(formulas, name).__module__, []).append(explain(name))
    return dict(sorted(found.items()))


def topic(module: str) -> str:
    """Return what a module's topic is called."""
    words = module.rpartition(".")[2].replace("_", " ")
    return {"kv": "KV", "breakeven": "Break-even"}.get(words, words[:1].upper() + words[1:])


def _index(topics: Mapping[str, list[Explanation]]) -> str:
    contents = [f"[{topic(module)}](#{anchor(topic(module))})" for module in topics]
    blocks = [
        f"{len(names())} formulas in {len(topics)} topics. Each is a function of `kvcalc.formulas`: "
        "numbers, numpy arrays and pandas Series in base units go in, the same come out. `kvcalc explain "
        "NAME` prints one, and `--explain` prints those that an answer used with its numbers put in.",
        "Topics: " + ", ".join(contents) + ".",
    ]
    for module, told in topics.items():
        rows = [
            [f"[{formula.name}](formulas/{formula.name}.md)", escape(formula.summary), code(formula.equation)]
            for formula in told
        ]
        blocks.append(f"## {topic(module)}")
        blocks.append(prose(inspect.getdoc(import_module(module)) or ""))
        blocks.append(table(["formula", "question", "equation"], rows))
    return document("Formulas", "the docstrings of `kvcalc/formulas`", *blocks)


def _formula(told: Explanation) -> str:
    gives = ", ".join(f"{code(part.name)}{f' [{part.unit}]' if part.unit else ''}" for part in told.results)
    module = getattr(formulas, told.name).__module__
    file = f"{module.replace('.', '/')}.py"
    arguments, _ = example_call(told.name)
    rows = [
        [code(one.symbol), code(one.name), code(one.unit), prose(one.meaning), _given(one, arguments)]
        for one in told.symbols
    ]
    return document(
        told.name,
        f"the docstring in `{file}`",
        escape(told.summary),
        fence(told.latex, "math"),
        fence(told.equation),
        table(["symbol", "argument", "unit", "meaning", "in the example"], rows),
        f"It gives {gives}.",
        f"**Valid range and limits:** {prose(told.notes)}",
        f"**Errors:** {_errors(told.errors)}",
        f"**Source:** {prose(told.source)}",
        f"**Code:** [{file}](../../{file})",
        "## Example",
        fence(_example(told), "python"),
        "## Over one argument",
        *_plot(series(told.name)),
    )


def _example(told: Explanation) -> str:
    """Return the docstring's example with its imports, and its sentences as comments."""
    used = [name for name in names() if re.search(rf"\b{name}\(", told.example)]
    lines = [">>> import numpy as np"] if "np." in told.example else []
    lines.append(f">>> from kvcalc.formulas import {', '.join(used)}")
    lines += [""] if not told.example.startswith(">>>") else []
    output = False
    for line in told.example.splitlines():
        is_code = line.startswith((">>>", "..."))
        output = (output or is_code) and bool(line.strip())
        lines.append(line if output or not line.strip() else f"# {line}")
    return "\n".join(lines)


def _errors(text: str) -> str:
    """Return the Raises section with each error's name as code before its condition."""
    return prose(re.sub(r"(\w+Error) If ", r"`\1` if ", text))


def _given(symbol: Symbol, arguments: Mapping[str, Any]) -> str:
    """Return an argument of the example with a prefix that suits it."""
    value = arguments[symbol.name]
    values = [float(one) for one in np.atleast_1d(np.asarray(value, dtype=float)).flat]
    if values == [float("inf")]:
        return "no limit"
    scale = Scale.of(symbol.unit, values)
    shown = ", ".join(scale.show(one) for one in values)
    return escape(f"{shown} {scale.unit}".strip())


def _plot(found: Series) -> list[str]:
    label = f"{found.argument} [{found.scale.unit}]" if found.scale.unit else found.argument
    header = [label]
    header += [f"{part} [{found.unit.unit}]" if found.unit.unit else part for part in found.results]
    picked = sorted({round(i * (len(found.points) - 1) / (ROWS - 1)) for i in range(ROWS)})
    rows = [
        [found.scale.show(found.points[i]), *(found.unit.show(v[i]) for v in found.results.values())]
        for i in picked
    ]
    return [
        _varies(found),
        f"![{found.formula} over {found.argument}]({found.formula}.svg)",
        table(header, rows, "r" * len(header)),
    ]


def _varies(found: Series) -> str:
    other = ", ".join(f"{code(name)} = {value:g}" for name, value in found.given.items())
    what = code(found.argument) if found.symbol else found.argument
    but = f", but {other}" if other else ""
    return f"{what[:1].upper()}{what[1:]} varies, and all else is as in the example{but}."


def _picture(found: Series) -> Picture:
    data = {
        "x": [point / found.scale.factor for point in found.points],
        "x_label": f"{found.argument} {found.symbol}"
        + (f" [{found.scale.unit}]" if found.scale.unit else ""),
        "is_log": found.is_log,
        "lines": {
            part: [v if v is None or isinstance(v, str) else v / found.unit.factor for v in values]
            for part, values in found.results.items()
        },
        "y_label": found.unit.unit,
    }
    return Picture(f"formulas/{found.formula}", _rounded(data), draw_curve)


def _rounded(item: Any) -> Any:  # noqa: ANN401 - any JSON value
    if isinstance(item, float):
        return float(f"{item:.4g}")
    if isinstance(item, dict):
        return {key: _rounded(value) for key, value in item.items()}
    return [_rounded(value) for value in item] if isinstance(item, list) else item


def draw_curve(figure: Any, data: Mapping[str, Any]) -> None:  # noqa: ANN401 - matplotlib is an extra
    """Draw the lines of a formula over its argument."""
    axes = figure.subplots()
    numbers = [v for values in data["lines"].values() for v in values if isinstance(v, float) and v > 0]
    is_words = any(isinstance(v, str) for values in data["lines"].values() for v in values)
    for number, (part, values) in enumerate(data["lines"].items()):
        shown = values if is_words else [float("nan") if v is None else v for v in values]
        dense = len(shown) > 40 and not is_words
        marker, style = "" if dense else ".", DASHES[number % len(DASHES)]  # lines may lie on each other
        axes.plot(data["x"], shown, label=part, linewidth=1.8, linestyle=style, marker=marker, markersize=5)
    if data["is_log"]:
        axes.set_xscale("log")
    if (
        numbers
        and data["is_log"]
        and max(numbers) > 50 * min(numbers)
        and len(numbers) > 0.8 * len(data["x"])
    ):
        axes.set_yscale("log")
    elif numbers and not is_words:
        axes.set_ylim(bottom=min(0, axes.get_ylim()[0]))
    axes.set_xlabel(data["x_label"])
    one = next(iter(data["lines"])) if len(data["lines"]) == 1 else ""
    axes.set_ylabel(f"{one} [{data['y_label']}]" if one and data["y_label"] else one or data["y_label"])
    axes.grid(True)
    if not one:
        axes.legend(frameon=False, fontsize=8)
