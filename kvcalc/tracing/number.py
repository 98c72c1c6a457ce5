"""A number, word or truth without a value: what is done to it becomes the graph."""

import itertools
from typing import Any

from kvcalc.tracing.current import current
from kvcalc.tracing.expression import MAYBE, NUMBER, TEXT, TRUTH, Node, constant
from kvcalc.tracing.operations import both, either, equal, less, negate, operate, truth

_LEAVES = (bool, int, float, str, type(None))

MARK = "\x00"
"""Encloses a traced number in a text: MARK serial | format MARK."""


def is_leaf(value: Any) -> bool:
    """Tell a single value from a structure."""
    return isinstance(value, (Traced, *_LEAVES)) or _is_numpy_scalar(value)


def _is_numpy_scalar(value: Any) -> bool:
    return hasattr(value, "item") and getattr(value, "ndim", None) == 0


def node_of(value: Any) -> Node:
    """Return the node of a single value."""
    if isinstance(value, Traced):
        return current().resolved(value.node)
    if _is_numpy_scalar(value):
        value = value.item()
    if not isinstance(value, _LEAVES):
        raise current().stop(f"a {type(value).__name__} cannot follow the inputs")
    return constant(value)


def plain(node: Node) -> Any:
    """Return a constant as Python has it, anything else traced."""
    return node.value if node.op == "const" else Traced(node)


def _operated(op: str, *values: Any) -> Any:
    if any(getattr(value, "ndim", 0) for value in values if not isinstance(value, Traced)):
        raise current().stop("a table of numbers does not follow the inputs")
    return plain(operate(op, *map(node_of, values)))


class Traced:
    """Stands where a number would."""

    __slots__ = ("node",)
    __traced__ = True
    __array_ufunc__ = None  # numpy leaves operators to this class
    ndim = 0
    shape = ()

    def __init__(self, node: Node) -> None:
        self.node = node

    def __add__(self, other: Any) -> Any:
        return _operated("add", self, other)

    def __radd__(self, other: Any) -> Any:
        return _operated("add", other, self)

    def __sub__(self, other: Any) -> Any:
        return _operated("sub", self, other)

    def __rsub__(self, other: Any) -> Any:
        return _operated("sub", other, self)

    def __mul__(self, other: Any) -> Any:
        return _operated("mul", self, other)

    def __rmul__(self, other: Any) -> Any:
        return _operated("mul", other, self)

    def __truediv__(self, other: Any) -> Any:
        return _divided(self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return _divided(other, self)

    def __floordiv__(self, other: Any) -> Any:
        return _operated("floor", _divided(self, other))

    def __rfloordiv__(self, other: Any) -> Any:
        return _operated("floor", _divided(other, self))

    def __mod__(self, other: Any) -> Any:
        return self - self // other * other

    def __rmod__(self, other: Any) -> Any:
        return other - other // self * self

    def __pow__(self, other: Any) -> Any:
        return _operated("pow", self, other)

    def __rpow__(self, other: Any) -> Any:
        return _operated("pow", other, self)

    def __neg__(self) -> Any:
        return _operated("neg", self)

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return _operated("abs", self)

    def __floor__(self) -> Any:
        return _operated("floor", self)

    def __ceil__(self) -> Any:
        return _operated("ceil", self)

    def __lt__(self, other: Any) -> Any:
        return _compared(self, other, strict=True)

    def __gt__(self, other: Any) -> Any:
        return _compared(other, self, strict=True)

    def __le__(self, other: Any) -> Any:
        return _compared(self, other, strict=False)

    def __ge__(self, other: Any) -> Any:
        return _compared(other, self, strict=False)

    def __eq__(self, other: object) -> Any:
        return plain(equal(node_of(self), node_of(other))) if is_leaf(other) else False

    def __ne__(self, other: object) -> Any:
        return plain(negate(equal(node_of(self), node_of(other)))) if is_leaf(other) else True

    def __and__(self, other: Any) -> Any:
        return plain(both(truth(node_of(self)), truth(node_of(other))))

    __rand__ = __and__

    def __or__(self, other: Any) -> Any:
        return plain(either(truth(node_of(self)), truth(node_of(other))))

    __ror__ = __or__

    def __invert__(self) -> Any:
        return plain(negate(truth(node_of(self))))

    def __bool__(self) -> bool:
        return current().holds(truth(node_of(self)))

    def __hash__(self) -> int:
        node = _one_of(node_of(self))
        return hash(node.value) if node.op == "const" else node.serial

    def __getattr__(self, name: str) -> Any:
        """Do as words do: of a choice between words, the one of this way."""
        node = _one_of(node_of(self))
        if name.startswith("__") or node.op != "const" or not isinstance(node.value, str):
            raise AttributeError(name)
        return getattr(node.value, name)

    def __index__(self) -> int:
        value = current().pinned(self.node, "a count that the layout is made of")
        if not isinstance(value, int) and not float(value).is_integer():
            raise TypeError("a number that is not whole cannot be a count")  # as Python says of a float
        return int(value)

    def __int__(self) -> int:
        return int(float(self))

    __trunc__ = __int__

    def __float__(self) -> float:
        return float(current().pinned(self.node, "a number that the answer is made of"))

    def __round__(self, digits: int | None = None) -> Any:
        raise current().stop("rounding to digits does not follow the inputs")

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def __format__(self, form: str) -> str:
        node = node_of(self)
        if node.op == "const":
            return format(node.value, form)
        current().graph.named[node.serial] = node
        return f"{MARK}{node.serial}|{form}{MARK}"

    def __str__(self) -> str:
        return format(self, "")

    __repr__ = __str__

    def __getitem__(self, place: Any) -> Any:
        if place == ():
            return self
        raise current().stop("one of a table of numbers does not follow the inputs")

    def item(self) -> Any:
        """Return the number itself."""
        return self

    def is_integer(self) -> Any:
        """Tell a whole number."""
        return self == _operated("floor", self)


class MaybePair(tuple[Any, ...]):
    """Two numbers that there are only where a condition holds, else None."""

    missing: Node

    @classmethod
    def of(cls, low: Any, high: Any, missing: Node) -> "MaybePair":
        """Return the pair, which is None where `missing` holds."""
        made = cls((low, high))
        made.missing = missing
        return made


class Counted(tuple[Any, ...]):
    """A tuple of which only the number of items counts, and that number is traced."""

    count_of: Any

    @classmethod
    def of(cls, items: Any, count: Any) -> "Counted":
        """Return the items with their traced number."""
        made = cls(items)
        made.count_of = count
        return made


def _one_of(node: Node) -> Node:
    """Return the side of a choice that is taken on this way, unless it is between numbers."""
    while node.op == "if" and node.kind != NUMBER:
        current().holds(node.args[0])
        node = current().resolved(node)
    return node


def _divided(a: Any, b: Any) -> Any:
    if not isinstance(b, Traced) and getattr(b, "ndim", 0) == 0 and b == 0:
        raise ZeroDivisionError("division by zero")
    return _operated("div", a, b)


def _compared(a: Any, b: Any, strict: bool) -> Any:
    if any(getattr(value, "ndim", 0) for value in (a, b) if not isinstance(value, Traced)):
        raise current().stop("a table of numbers does not follow the inputs")
    first, second = node_of(a), node_of(b)
    return plain(less(first, second) if strict else negate(less(second, first)))


def parts_of_text(text: str) -> list[str | tuple[Node, str]]:
    """Return the pieces of a text: words, and traced numbers with their formats."""
    pieces: list[str | tuple[Node, str]] = []
    for inside, piece in zip(itertools.cycle((False, True)), text.split(MARK), strict=False):
        if inside:
            serial, _, form = piece.partition("|")
            pieces.append((current().graph.named[int(serial)], form))
        elif piece:
            pieces.append(piece)
    return pieces


__all__ = [
    "MAYBE",
    "NUMBER",
    "TEXT",
    "TRUTH",
    "Counted",
    "MaybePair",
    "Traced",
    "is_leaf",
    "node_of",
    "parts_of_text",
    "plain",
]
