"""The graph of an answer: inputs, operations and constants, each of them once."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kvcalc.tracing.bounds import ANYTHING, Bounds, bounds_of
from kvcalc.tracing.current import current

NUMBER, TRUTH, TEXT, MAYBE = "number", "truth", "text", "maybe"
"""What a node gives; `MAYBE` is a number, a word or a truth where there is one at all, else None."""


@dataclass(frozen=True, eq=False, slots=True)
class Node:
    """One value of the graph; two equal expressions are one node."""

    op: str
    args: tuple["Node", ...] = ()
    value: Any = None  # of a constant; the name of an input
    kind: str = NUMBER
    bounds: Bounds = ANYTHING
    serial: int = 0

    def __repr__(self) -> str:
        if self.op in ("const", "input"):
            return repr(self.value)
        return f"{self.op}({', '.join(map(repr, self.args))})"


TRUE = Node("const", (), True, TRUTH, ANYTHING, 0)
FALSE = Node("const", (), False, TRUTH, ANYTHING, 1)
NOTHING = Node("const", (), None, MAYBE, ANYTHING, 2)
"""Nodes that every graph has from the start, so that code can ask for them by identity."""


def _first_nodes() -> dict[tuple[Any, ...], Node]:
    return {("const", type(node.value).__name__, node.value): node for node in (TRUE, FALSE, NOTHING)}


@dataclass
class Graph:
    """Makes nodes, and knows those that it has made."""

    made: dict[tuple[Any, ...], Node] = field(default_factory=_first_nodes)
    named: dict[int, Node] = field(default_factory=dict)  # nodes that stand in texts, by serial
    endless: dict[Node, bool] = field(default_factory=dict)  # whether an infinite constant can reach a node

    def node(self, op: str, args: tuple[Node, ...], kind: str) -> Node:
        """Return the node of an operation."""
        return self._kept((op, *(arg.serial for arg in args)), op, args, None, kind, bounds_of(op, args))

    def const(self, value: Any) -> Node:
        """Return the node of a constant."""
        kind = NUMBER
        if value is None:
            kind = MAYBE
        elif isinstance(value, bool):
            kind = TRUTH
        elif isinstance(value, str):
            kind = TEXT
        else:
            value = float(value) if not isinstance(value, int) else value
        number = kind == NUMBER
        bounds = Bounds(value, value, float(value).is_integer(), value > 0) if number else ANYTHING
        key = ("const", type(value).__name__, repr(value) if number else value)
        return self._kept(key, "const", (), value, kind, bounds)

    def input(self, name: str, bounds: Bounds, optional: bool = False) -> Node:
        """Return the node of an input; an optional one may be left blank."""
        key = ("input", name, bounds, optional)
        return self._kept(key, "input", (), name, MAYBE if optional else NUMBER, bounds)

    def _kept(
        self,
        key: tuple[Any, ...],
        op: str,
        args: tuple[Node, ...],
        value: Any,
        kind: str,
        bounds: Bounds,
    ) -> Node:
        found = self.made.get(key)
        if found is None:
            found = self.made[key] = Node(op, args, value, kind, bounds, len(self.made))
        return found


class NoValueError(Exception):
    """What a node has no value for: a division by nothing, a number that is blank or left out."""


def constant(value: Any) -> Node:
    """Return the node of a constant."""
    return current().graph.const(value)


_FOLDED: Mapping[str, Callable[..., Any]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "pow": lambda a, b: a**b,
    "neg": lambda a: -a,
    "abs": abs,
    "floor": lambda a: a if math.isinf(a) else math.floor(a),
    "ceil": lambda a: a if math.isinf(a) else math.ceil(a),
    "sqrt": math.sqrt,
    "exp": math.exp,
    "ln": math.log,
    "min": min,
    "max": max,
    "lt": lambda a, b: a < b,
    "eq": lambda a, b: a == b,
}
"""What an operation does to numbers."""


def evaluate(node: Node, inputs: Mapping[str, Any], known: dict[Node, Any] | None = None) -> Any:
    """Return the value of a node for values of the inputs, as a workbook computes it.

    Raises
    ------
    NoValueError
        If these inputs give it none.
    """
    known = {} if known is None else known
    pending = [node]
    while pending:
        at = pending[-1]
        if at in known:
            pending.pop()
            continue
        needed = [arg for arg in _needed(at, known) if arg not in known]
        if needed:
            pending.extend(needed)
            continue
        known[at] = _value(at, inputs, known)
        pending.pop()
    return known[node]


def _needed(node: Node, known: Mapping[Node, Any]) -> tuple[Node, ...]:
    """Return what a node's value takes: of a choice, the side that is chosen."""
    if node.op in ("and", "or"):
        first, second = node.args
        return (first, second) if known.get(first) is (node.op == "and") else (first,)
    if node.op != "if":
        return node.args
    cond, yes, no = node.args
    return (cond, yes if known[cond] else no) if cond in known else (cond,)


def _value(node: Node, inputs: Mapping[str, Any], known: Mapping[Node, Any]) -> Any:
    if node.op == "const":
        return node.value
    if node.op == "input":
        if node.value not in inputs:
            raise NoValueError(node.value)
        return inputs[node.value]
    args = [known[arg] for arg in _needed(node, known)]
    if node.op == "if":
        return args[1]
    if node.op in ("and", "or"):
        return args[-1]
    if node.op == "not":
        return not args[0]
    if node.op == "blank":
        return args[0] is None
    try:
        if node.op == "finite":
            return math.isfinite(args[0])
        return _FOLDED[node.op](*_with_blanks(node, args))
    except (ArithmeticError, ValueError):
        raise NoValueError(node.op) from None
    except TypeError:
        if any(value is None or isinstance(value, str) for value in args):
            raise NoValueError(node.op) from None
        raise


def _with_blanks(node: Node, args: list[Any]) -> list[Any]:
    """Return numbers as formulas take them: a blank cell counts as zero, and the least or most of it not."""
    blank = [arg.op == "input" and value is None for arg, value in zip(node.args, args, strict=True)]
    if node.op in ("min", "max") and not all(blank):
        filled = [value for value, is_blank in zip(args, blank, strict=True) if not is_blank]
        return [filled[0], filled[-1]]
    return [0 if is_blank else value for value, is_blank in zip(args, blank, strict=True)]


def fold(op: str, args: tuple[Node, ...]) -> Node | None:
    """Return the constant that an operation on constants gives; None where it must be kept."""
    if op not in _FOLDED or any(arg.op != "const" for arg in args):
        return None
    try:
        return constant(_FOLDED[op](*(arg.value for arg in args)))
    except (ArithmeticError, ValueError, TypeError):
        return None
