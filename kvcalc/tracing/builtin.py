"""What the mirror puts in place of Python's builtins, `math` and `functools`: the same for plain numbers."""

import builtins
import functools
import inspect
import math
import types
from collections.abc import Callable, Iterable
from typing import Any

from kvcalc.errors import DomainError
from kvcalc.tracing.current import current
from kvcalc.tracing.expression import TRUTH
from kvcalc.tracing.number import MAYBE, NUMBER, TEXT, Counted, MaybePair, Traced, node_of, plain
from kvcalc.tracing.operations import both, either, finite, missing, negate, operate, truth
from kvcalc.tracing.paths import follow, remembered
from kvcalc.tracing.rewriting import PREFIX


class _Kind(type):
    """A builtin type of numbers or words, of which traced ones are instances too."""

    base: type = object
    kinds: tuple[str, ...] = ()

    def __instancecheck__(cls, value: object) -> bool:
        if isinstance(value, Traced):
            node = current().resolved(value.node)
            if node.op == "input" and node.kind == MAYBE:
                return NUMBER in cls.kinds and not current().holds(missing(node))
            return node.kind in cls.kinds
        return isinstance(value, cls.base)

    def __subclasscheck__(cls, kind: type) -> bool:
        return issubclass(kind, cls.base)

    def __eq__(cls, other: object) -> bool:
        return other is cls or other is cls.base

    def __hash__(cls) -> int:
        return hash(cls.base)


class Float(metaclass=_Kind):
    """`float`."""

    base, kinds = float, (NUMBER,)

    def __new__(cls, value: Any = 0.0) -> Any:
        """Return the number; a traced one stays what it is."""
        return plain(node_of(value)) if isinstance(value, Traced) else float(value)


class Int(metaclass=_Kind):
    """`int`."""

    base, kinds = int, (NUMBER,)

    def __new__(cls, value: Any = 0, *base: Any) -> Any:
        """Return the whole number towards zero."""
        if not isinstance(value, Traced):
            return int(value, *base)
        if node_of(value).bounds.not_negative:
            return plain(operate("floor", node_of(value)))
        return _choice(value < 0, lambda: math.ceil(value), lambda: math.floor(value))


class Bool(metaclass=_Kind):
    """`bool`."""

    base, kinds = bool, (TRUTH,)

    def __new__(cls, value: Any = False) -> Any:
        """Return whether a value counts as true."""
        return plain(truth(node_of(value))) if isinstance(value, Traced) else bool(value)


class Str(metaclass=_Kind):
    """`str`."""

    base, kinds = str, (TEXT,)
    join, lower, startswith = str.join, str.lower, str.startswith

    def __new__(cls, value: Any = "", *how: Any) -> Any:
        """Return the words; traced words stay what they are."""
        if isinstance(value, Traced) and node_of(value).kind != NUMBER:
            return plain(node_of(value))
        return str(value, *how)


def _choice(cond: Any, yes: Callable[[], Any], no: Callable[[], Any]) -> Any:
    """Return `yes()` if the condition holds, else `no()`; both of them, joined, where nothing says."""
    if not isinstance(cond, Traced):
        return yes() if cond else no()
    node = truth(node_of(cond))
    trace = current()
    known = trace.known(node)
    if known is None:
        return follow(lambda: yes() if trace.holds(node) else no())
    return yes() if known else no()


def _all(*values: Callable[[], Any]) -> Any:
    """Return `a and b and ...`."""
    first, *rest = values
    found = first()
    if not rest:
        return found
    return _choice(found, lambda: _all(*rest), lambda: found)


def _any(*values: Callable[[], Any]) -> Any:
    """Return `a or b or ...`."""
    first, *rest = values
    found = first()
    if not rest:
        return found
    return _choice(found, lambda: found, lambda: _any(*rest))


def _not(value: Any) -> Any:
    return plain(negate(truth(node_of(value)))) if isinstance(value, Traced) else not value


def _is(a: Any, b: Any) -> Any:
    """Return `a is b`."""
    if isinstance(a, Traced) and b is None:
        return plain(missing(node_of(a)))
    if isinstance(a, MaybePair) and b is None:
        return plain(a.missing)
    if isinstance(a, Traced) and isinstance(b, bool):
        return a == b
    return a is b


def _followed(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that follows every way of another."""
    if inspect.isgeneratorfunction(function):

        @functools.wraps(function)
        def generated(*args: Any, **named: Any) -> Any:
            return iter(follow(lambda: list(function(*args, **named))))

        return generated

    @functools.wraps(function)
    def run(*args: Any, **named: Any) -> Any:
        return remembered(function, args, named)

    return run


def _extreme(op: str) -> Callable[..., Any]:
    own: Callable[..., Any] = getattr(builtins, op)

    def found(*values: Any, **how: Any) -> Any:
        items = list(values[0]) if len(values) == 1 else list(values)
        if not items or (not any(_is_traced(item) for item in items) and "key" not in how):
            return own(items, **how)
        best, *rest = items
        key = how.get("key") or (lambda item: item)
        for item in rest:
            best = _better(op, key, best, item)
        return best

    return found


def _better(op: str, key: Callable[[Any], Any], best: Any, item: Any) -> Any:
    a, b = key(best), key(item)
    if a is best and b is item and not isinstance(a, tuple):
        return plain(operate(op, node_of(a), node_of(b)))
    wins = _before(b, a) if op == "min" else _before(a, b)
    return _choice(wins, lambda: item, lambda: best)


def _before(a: Any, b: Any) -> Any:
    """Return `a < b`, of tuples by their first item that differs."""
    if not isinstance(a, tuple):
        return a < b
    if not a or not b:
        return len(a) < len(b)
    rest = _all(lambda: a[0] == b[0], lambda: _before(a[1:], b[1:]))
    return _any(lambda: a[0] < b[0], lambda: rest)


def _is_traced(item: Any) -> bool:
    return isinstance(item, Traced) or (isinstance(item, tuple) and any(map(_is_traced, item)))


def _sorted(items: Iterable[Any], **how: Any) -> list[Any]:
    found = list(items)
    if how or len(found) != 2 or not any(map(_is_traced, found)) or isinstance(found[0], tuple):
        return sorted(found, **how)
    return [_extreme("min")(*found), _extreme("max")(*found)]


def _every(values: Iterable[Any]) -> Any:
    return _gathered(values, both, True)


def _some(values: Iterable[Any]) -> Any:
    return _gathered(values, either, False)


def _gathered(values: Iterable[Any], how: Callable[..., Any], empty: bool) -> Any:
    found: Any = empty
    for value in values:
        if isinstance(value, Traced) or isinstance(found, Traced):
            found = plain(how(truth(node_of(found)), truth(node_of(value))))
        else:
            found = bool(value)
        if found is (not empty):
            return found
    return found


def _round(value: Any, *digits: Any) -> Any:
    if not isinstance(value, Traced):
        return round(value, *digits)
    if digits and digits[0]:
        raise current().stop("rounding to digits does not follow the inputs")
    return math.floor(value + 0.5)


def _len(value: Any) -> Any:
    return value.count_of if isinstance(value, Counted) else len(value)


BUILTINS: dict[str, Any] = {
    **vars(builtins),
    "float": Float,
    "int": Int,
    "bool": Bool,
    "str": Str,
    "min": _extreme("min"),
    "max": _extreme("max"),
    "all": _every,
    "any": _some,
    "sorted": _sorted,
    "round": _round,
    "len": _len,
    PREFIX + "choice": _choice,
    PREFIX + "all": _all,
    PREFIX + "any": _any,
    PREFIX + "not": _not,
    PREFIX + "is": _is,
    PREFIX + "followed": _followed,
    PREFIX + "tried": lambda: current().trying(),
}
"""Names that code in the mirror finds without importing them."""


@functools.cache
def answers() -> frozenset[str]:
    """Return the errors that are answers: those that the formulas have a name for."""
    from kvcalc import formulas

    named = [getattr(formulas, name) for name in formulas.__all__ if name.isupper()]
    return frozenset(value for value in named if isinstance(value, str))


def refuse(value: Any, bad: Any, message: str) -> Any:
    """Stand for the check of every formula (`kvcalc.formulas._domain.refuse`).

    Where an error would be an answer, both ways are followed; elsewhere the graph is valid only for
    numbers that the formula takes.
    """
    if not isinstance(bad, Traced):
        if bad:
            raise DomainError(message)
        return value
    node = truth(node_of(bad))
    trace = current()
    if trace.known(node) is None and not (trace.tried and message in answers()):
        trace.require(negate(node), message)
    if trace.holds(node):
        raise DomainError(message)
    return value


def _of_one(op: str, own: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def found(value: Any) -> Any:
        return plain(operate(op, node_of(value))) if isinstance(value, Traced) else own(value)

    return found


def _isfinite(value: Any) -> Any:
    return plain(finite(node_of(value))) if isinstance(value, Traced) else math.isfinite(value)


class Math(types.ModuleType):
    """`math`."""

    ceil = staticmethod(_of_one("ceil", math.ceil))
    floor = staticmethod(_of_one("floor", math.floor))
    sqrt = staticmethod(_of_one("sqrt", math.sqrt))
    exp = staticmethod(_of_one("exp", math.exp))
    isfinite = staticmethod(_isfinite)

    @staticmethod
    def isinf(value: Any) -> Any:
        """Tell a number without an end."""
        return _not(_isfinite(value))

    @staticmethod
    def isnan(value: Any) -> bool:
        """Tell a missing number, which no traced one is."""
        return False if isinstance(value, Traced) else math.isnan(value)

    def __getattr__(self, name: str) -> Any:
        return getattr(math, name)


class Functools(types.ModuleType):
    """`functools`, whose cached properties are computed anew: what they give depends on the way."""

    cached_property = property

    def __getattr__(self, name: str) -> Any:
        return getattr(functools, name)
