"""Functions can be read at once: none is longer than a screen, beside its docstring."""

import ast
from pathlib import Path

import kvcalc

ROOT = Path(kvcalc.__file__).parent

MOST = 50
"""Lines of a function, signature included and docstring left out [1]: what a screen shows."""

LONGER = {
    "cli/probe.py: probe": "an option on each line",
    "planning/offload/rows.py: restore_row": "a field of the row on each line",
}
"""Functions that are a list of one thing on each line, and of what."""


def lines_of(function: ast.FunctionDef) -> int:
    """Return the lines of a function without its docstring."""
    first = function.body[0]
    told = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and str(first.value.value)
    docstring = first.end_lineno - first.lineno + 1 if told else 0
    return function.end_lineno - function.lineno + 1 - docstring


def test_no_function_is_longer_than_a_screen():
    long = {
        f"{file.relative_to(ROOT)}: {node.name}"
        for file in sorted(ROOT.rglob("*.py"))
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef) and lines_of(node) > MOST
    }
    assert long <= set(LONGER)


def test_a_long_function_would_be_seen():
    body = "    pass\n" * MOST
    assert lines_of(ast.parse(f'def long():\n    """Say."""\n{body}').body[0]) == MOST + 1
