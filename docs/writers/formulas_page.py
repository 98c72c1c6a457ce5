"""docs/formulas.md: every formula by topic, from its docstring."""

import inspect
import re
from importlib import import_module

from docs.writers.markdown import anchor, code, document, escape, fence, prose, table
from kvcalc import formulas
from kvcalc.explain import Explanation, explain, names


def page() -> str:
    """Return the page."""
    topics: dict[str, list[Explanation]] = {}
    for name in names():
        topics.setdefault(getattr(formulas, name).__module__, []).append(explain(name))
    blocks = [
        f"{len(names())} formulas in {len(topics)} topics. Each is a function of `kvcalc.formulas`: "
        "numbers, numpy "
        "arrays and pandas Series in base units go in, the same come out. `kvcalc explain NAME` prints "
        "one, and "
        "`--explain` prints those that an answer used with its numbers put in.",
        "\n".join(_contents(module, told) for module, told in sorted(topics.items())),
    ]
    for module, told in sorted(topics.items()):
        blocks.append(f"## {_topic(module)}")
        blocks.append(prose(inspect.getdoc(import_module(module)) or ""))
        blocks += [block for formula in told for block in _formula(formula)]
    return document("Formulas", "the docstrings of `kvcalc/formulas`", *blocks)


def _topic(module: str) -> str:
    words = module.rpartition(".")[2].replace("_", " ")
    return words[:1].upper() + words[1:]


def _contents(module: str, told: list[Explanation]) -> str:
    links = ", ".join(f"[{formula.name}](#{anchor(formula.name)})" for formula in told)
    return f"- [{_topic(module)}](#{anchor(_topic(module))}): {links}"


def _formula(told: Explanation) -> list[str]:
    rows = [
        [code(symbol.symbol), code(symbol.name), code(symbol.unit), prose(symbol.meaning)]
        for symbol in told.symbols
    ]
    gives = ", ".join(f"{code(part.name)}{f' [{part.unit}]' if part.unit else ''}" for part in told.results)
    remarks = (
        ("Gives", gives),
        ("Holds", prose(told.notes)),
        ("Refuses", _errors(told.errors)),
        ("Source", prose(told.source)),
    )
    return [
        f"### {told.name}",
        escape(told.summary),
        fence(told.latex, "math"),
        fence(told.equation),
        table(["symbol", "argument", "unit", "meaning"], rows),
        "\n".join(f"- **{word}:** {text}" for word, text in remarks if text),
        fence(told.example, "python") if told.example else "",
    ]


def _errors(text: str) -> str:
    """Return the Raises section with each error's name as code before its condition."""
    return prose(re.sub(r"(\w+Error) If ", r"`\1` if ", text))
