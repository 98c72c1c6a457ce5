"""Between which ends a value of the graph lies whatever the inputs, so that fewer questions are asked."""

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from kvcalc.tracing.expression import Node


class Bounds(NamedTuple):
    """The ends of a value, and whether it is whole and above zero for sure."""

    low: float = -math.inf
    high: float = math.inf
    whole: bool = False
    positive: bool = False

    @property
    def not_negative(self) -> bool:
        """Whether the value is zero or more."""
        return self.low >= 0 or self.positive


DEEPEST = 6
"""Steps into an expression after which a proof is given up [1]."""

ANYTHING = Bounds()
POSITIVE = Bounds(0.0, math.inf, False, True)
NOT_NEGATIVE = Bounds(0.0)
SHARE = Bounds(0.0, 1.0)
POSITIVE_SHARE = Bounds(0.0, 1.0, False, True)
COUNT = Bounds(1.0, math.inf, True, True)
COUNT_OR_NONE = Bounds(0.0, math.inf, True)


def bounds_of(op: str, args: "tuple[Node, ...]") -> Bounds:
    """Return the bounds of an operation."""
    found = [arg.bounds for arg in args]
    rule = _RULES.get(op)
    bounds = ANYTHING if rule is None else rule(*found)
    if op == "sub" and not bounds.not_negative and args[0].bounds.not_negative and is_part(args[1], args[0]):
        return Bounds(0.0, found[0].high, bounds.whole, _is_part_below(args[1], args[0]))
    return bounds


def is_part(part: "Node", whole: "Node", deep: int = DEEPEST) -> bool:
    """Tell what is never more than a number of zero or more: its minimum with another, its whole blocks."""
    if part is whole:
        return True
    if not deep:
        return False
    if whole.op == "max" and any(is_part(part, side, deep - 1) for side in whole.args):
        return True
    if part.op == "min":
        return any(is_part(side, whole, deep - 1) for side in part.args)
    if part.op == "floor":
        return part.bounds.not_negative and is_part(part.args[0], whole, deep - 1)
    if part.op == "div":
        return part.args[1].bounds.low >= 1 and is_part(part.args[0], whole, deep - 1)
    if part.op == "if":
        return all(is_part(side, whole, deep - 1) for side in part.args[1:])
    if part.op == "max":
        return all(is_part(side, whole, deep - 1) for side in part.args) or _is_part_below(
            part, whole, deep - 1
        )
    if part.op == "const" and part.bounds.low <= 0:
        return True
    if part.op == "mul":
        count, block = part.args
        if block.bounds.high <= 1 and block.bounds.not_negative:
            return is_part(count, whole, deep - 1)
        if count.bounds.high <= 1 and count.bounds.not_negative:
            return is_part(block, whole, deep - 1)
        if count.op == "floor" and block.bounds.positive and count.args[0].op == "div":
            inner, unit = count.args[0].args
            return unit is block and is_part(inner, whole, deep - 1)
    return _is_part_below(part, whole, deep - 1)


def _is_part_below(part: "Node", whole: "Node", deep: int = DEEPEST) -> bool:
    """Tell all but the last of the blocks that cover a number: never as much as the number itself."""
    if not deep:
        return False
    if part.op == "sub" and part.args[0] is whole and part.args[1].bounds.positive:
        return True
    if part.op == "max":
        return (
            whole.bounds.positive
            and any(_is_part_below(side, whole, deep - 1) for side in part.args)
            and all(
                (side.op == "const" and side.bounds.high <= 0) or _is_part_below(side, whole, deep - 1)
                for side in part.args
            )
        )
    if part.op == "min":
        return any(_is_part_below(side, whole, deep - 1) for side in part.args)
    if part.op != "mul" or not whole.bounds.positive:
        return False
    steps, block = part.args
    if steps.op == "max":
        steps = next((side for side in steps.args if side.op != "const"), steps)
    if steps.op != "sub" or steps.args[1].op != "const" or steps.args[1].bounds.low < 1:
        return False
    covered = steps.args[0]
    if covered.op != "ceil" or covered.args[0].op != "div":
        return False
    inner, unit = covered.args[0].args
    return unit is block and inner is whole


def _times(low: float, high: float) -> float:
    """Return a product of two ends, where nothing times no end is nothing."""
    return 0.0 if low == 0 or high == 0 else low * high


def _add(a: Bounds, b: Bounds) -> Bounds:
    positive = (a.positive and b.not_negative) or (b.positive and a.not_negative)
    return Bounds(a.low + b.low, a.high + b.high, a.whole and b.whole, positive or a.low + b.low > 0)


def _sub(a: Bounds, b: Bounds) -> Bounds:
    low = a.low - b.high if math.isfinite(b.high) and math.isfinite(a.low) else -math.inf
    high = a.high - b.low if math.isfinite(a.high) and math.isfinite(b.low) else math.inf
    return Bounds(low, high, a.whole and b.whole, low > 0)


def _mul(a: Bounds, b: Bounds) -> Bounds:
    ends = [_times(x, y) for x in a[:2] for y in b[:2]]
    return Bounds(min(ends), max(ends), a.whole and b.whole, a.positive and b.positive)


def _div(a: Bounds, b: Bounds) -> Bounds:
    if not b.positive:
        return ANYTHING
    if a.not_negative:
        low = a.low / b.high if math.isfinite(a.low) and b.high > 0 else 0.0
        high = a.high / b.low if b.low > 0 and math.isfinite(a.high) else math.inf
        return Bounds(max(0.0, low), high, False, a.positive)
    return Bounds(-math.inf, 0.0) if a.high <= 0 else ANYTHING


def _neg(a: Bounds) -> Bounds:
    return Bounds(-a.high, -a.low, a.whole, a.high < 0)


def _floor(a: Bounds) -> Bounds:
    low = math.floor(a.low) if math.isfinite(a.low) else a.low
    high = math.floor(a.high) if math.isfinite(a.high) else a.high
    return Bounds(low, high, True, low > 0)


def _ceil(a: Bounds) -> Bounds:
    low = math.ceil(a.low) if math.isfinite(a.low) else a.low
    high = math.ceil(a.high) if math.isfinite(a.high) else a.high
    return Bounds(max(low, 1.0) if a.positive else low, high, True, a.positive)


def _min(a: Bounds, b: Bounds) -> Bounds:
    low = min(a.low, b.low)
    return Bounds(low, min(a.high, b.high), a.whole and b.whole, a.positive and b.positive)


def _max(a: Bounds, b: Bounds) -> Bounds:
    return Bounds(max(a.low, b.low), max(a.high, b.high), a.whole and b.whole, a.positive or b.positive)


def _if(_: Bounds, a: Bounds, b: Bounds) -> Bounds:
    return Bounds(min(a.low, b.low), max(a.high, b.high), a.whole and b.whole, a.positive and b.positive)


def _abs(a: Bounds) -> Bounds:
    return Bounds(0.0, max(abs(a.low), abs(a.high)), a.whole, a.positive or a.high < 0)


def _sqrt(a: Bounds) -> Bounds:
    return Bounds(0.0, math.inf, False, a.positive)


def _exp(a: Bounds) -> Bounds:
    return Bounds(0.0, 1.0 if a.high <= 0 else math.inf, False, False)


def _pow(a: Bounds, b: Bounds) -> Bounds:
    if not a.not_negative:
        return ANYTHING
    high = 1.0 if a.high <= 1 and b.low >= 0 else math.inf
    return Bounds(0.0, high, False, a.positive)


def _ln(a: Bounds) -> Bounds:
    return Bounds(math.log(a.low) if a.low > 0 and math.isfinite(a.low) else -math.inf)


_RULES: Mapping[str, Callable[..., Bounds]] = {
    "add": _add,
    "sub": _sub,
    "mul": _mul,
    "div": _div,
    "neg": _neg,
    "floor": _floor,
    "ceil": _ceil,
    "min": _min,
    "max": _max,
    "if": _if,
    "abs": _abs,
    "sqrt": _sqrt,
    "exp": _exp,
    "pow": _pow,
    "ln": _ln,
}
