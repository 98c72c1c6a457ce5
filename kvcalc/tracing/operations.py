"""Makes nodes in their simplest form: constants folded, comparisons decided, choices of one kind joined."""

import math
from collections.abc import Callable, Mapping

from kvcalc.tracing.bounds import is_part
from kvcalc.tracing.current import current
from kvcalc.tracing.expression import (
    FALSE,
    MAYBE,
    NOTHING,
    NUMBER,
    TEXT,
    TRUE,
    TRUTH,
    Node,
    constant,
    fold,
)


def operate(op: str, *args: Node) -> Node:
    """Return an operation on numbers."""
    found = fold(op, args)
    if found is not None:
        return found
    rule = _SIMPLER.get(op)
    simpler = rule(*args) if rule is not None else None
    return simpler if simpler is not None else current().graph.node(op, args, NUMBER)


def _is(node: Node, value: float) -> bool:
    return node.op == "const" and node.kind == NUMBER and node.value == value


def _add(a: Node, b: Node) -> Node | None:
    if _is(a, 0):
        return b
    if _is(b, 0):
        return a
    if b.op == "neg":
        return operate("sub", a, b.args[0])
    return _without_end(a, b)


def _without_end(a: Node, b: Node) -> Node | None:
    for one in (a, b):
        if _is(one, math.inf):
            return one
    return None


def _sub(a: Node, b: Node) -> Node | None:
    if _is(b, 0):
        return a
    if _is(a, 0):
        return operate("neg", b)
    return _nothing(a, b) if a is b and a.kind == NUMBER else None


def _nothing(a: Node, b: Node) -> Node:
    """Return zero, a whole number where Python would give one."""
    return constant(0 if a.bounds.whole and b.bounds.whole else 0.0)


def _mul(a: Node, b: Node) -> Node | None:
    if _is(a, 1):
        return b
    if _is(b, 1):
        return a
    if _is(a, 0) or _is(b, 0):
        return _nothing(a, b)
    return None


def _div(a: Node, b: Node) -> Node | None:
    if _is(b, 1):
        return a
    if _is(a, 0) and b.bounds.positive:
        return constant(0.0)
    if _is(b, math.inf):
        return constant(0.0)
    return constant(1.0) if a is b and b.bounds.positive else None


def _neg(a: Node) -> Node | None:
    if a.op == "neg":
        return a.args[0]
    if a.op == "floor" and a.args[0].op == "neg":
        return operate("ceil", a.args[0].args[0])
    if a.op == "sub":
        return operate("sub", a.args[1], a.args[0])
    return None


def _whole(a: Node) -> Node | None:
    return a if a.bounds.whole else None


def _floor(a: Node) -> Node | None:
    if a.op == "div" and a.args[0].op == "neg":  # -(-a // b) rounds up; keep the sign outside
        negative = operate("neg", operate("div", a.args[0].args[0], a.args[1]))
        return current().graph.node("floor", (negative,), NUMBER)
    return _whole(a)


def _abs(a: Node) -> Node | None:
    return a if a.bounds.not_negative else None


def _min(a: Node, b: Node) -> Node | None:
    if a is b or a.bounds.high <= b.bounds.low:
        return a
    return b if b.bounds.high <= a.bounds.low else None


def _max(a: Node, b: Node) -> Node | None:
    if a is b or a.bounds.low >= b.bounds.high:
        return a
    return b if b.bounds.low >= a.bounds.high else None


def _pow(a: Node, b: Node) -> Node | None:
    return a if _is(b, 1) else None


_SIMPLER: Mapping[str, Callable[..., Node | None]] = {
    "add": _add,
    "sub": _sub,
    "mul": _mul,
    "div": _div,
    "neg": _neg,
    "floor": _floor,
    "ceil": _whole,
    "abs": _abs,
    "min": _min,
    "max": _max,
    "pow": _pow,
}


def less(a: Node, b: Node) -> Node:
    """Return whether `a` is below `b`."""
    found = fold("lt", (a, b))
    if found is not None:
        return found
    if a.op == "if" and a.kind == NUMBER and b.op == "const" and _has_constants(a):
        return choose(a.args[0], less(a.args[1], b), less(a.args[2], b))
    if a is b or a.bounds.low >= b.bounds.high:
        return FALSE
    if _is(b, 0) and a.bounds.not_negative:
        return FALSE
    if a.bounds.high < b.bounds.low or (_is(a, 0) and b.bounds.positive):
        return TRUE
    if a.bounds.high <= 0 and b.bounds.positive:
        return TRUE
    if a.bounds.not_negative and is_part(b, a):
        return FALSE
    return current().graph.node("lt", (a, b), TRUTH)


def _has_constants(node: Node) -> bool:
    """Tell a choice between constants, of which a comparison says which one it is."""
    return node.op == "const" or (node.op == "if" and all(map(_has_constants, node.args[1:])))


def equal(a: Node, b: Node) -> Node:
    """Return whether two values are the same."""
    if a is b:
        return TRUE
    if a.op == b.op == "const":
        return constant(bool(a.value == b.value))
    if NOTHING in (a, b):
        return missing(b if a is NOTHING else a)
    if TRUTH in (a.kind, b.kind):
        for one, other in ((a, b), (b, a)):
            if one.op == "const" and one.kind == TRUTH:
                return other if one.value else negate(other)
    for one, other in ((a, b), (b, a)):
        if one.op == "if" and other.op == "const" and (other.kind != NUMBER or _has_constants(one)):
            return choose(one.args[0], equal(one.args[1], other), equal(one.args[2], other))
    for one in (a, b):
        if one.op == "input" and one.kind == MAYBE:  # a blank cell would be equal to zero
            return both(negate(missing(one)), _same(a, b))
    return _same(a, b)


def _same(a: Node, b: Node) -> Node:
    if {a.kind, b.kind} <= {NUMBER, MAYBE} and (
        a.bounds.low > b.bounds.high
        or b.bounds.low > a.bounds.high
        or (_is(a, 0) and b.bounds.positive)
        or (_is(b, 0) and a.bounds.positive)
    ):
        return FALSE
    first, second = (a, b) if a.serial < b.serial else (b, a)
    return current().graph.node("eq", (first, second), TRUTH)


def negate(a: Node) -> Node:
    """Return the opposite of a truth."""
    if a.op == "const":
        return constant(not a.value)
    return a.args[0] if a.op == "not" else current().graph.node("not", (a,), TRUTH)


def both(a: Node, b: Node) -> Node:
    """Return whether two truths hold."""
    if FALSE in (a, b) or negate(a) is b:
        return FALSE
    if a is TRUE or a is b:
        return b
    if b is TRUE or (a.op == "and" and b in a.args):
        return a
    return b if b.op == "and" and a in b.args else current().graph.node("and", (a, b), TRUTH)


def either(a: Node, b: Node) -> Node:
    """Return whether one of two truths holds."""
    if TRUE in (a, b) or negate(a) is b:
        return TRUE
    if a is FALSE or a is b:
        return b
    if b is FALSE or (a.op == "or" and b in a.args):
        return a
    return b if b.op == "or" and a in b.args else current().graph.node("or", (a, b), TRUTH)


def choose(cond: Node, yes: Node, no: Node) -> Node:
    """Return `yes` where the condition holds, else `no`."""
    if cond.op == "const":
        return yes if cond.value else no
    if cond.op == "not":
        return choose(cond.args[0], no, yes)
    if yes is no:
        return yes
    if yes.op == "if" and yes.args[0] is cond:
        yes = yes.args[1]
    if no.op == "if" and no.args[0] is cond:
        no = no.args[2]
    if yes.kind == no.kind == TRUTH:
        return _chosen_truth(cond, yes, no)
    if yes.op == no.op == "if" and yes.args[2] is no.args[2] and yes.args[1] is no.args[1]:
        return choose(choose(cond, yes.args[0], no.args[0]), yes.args[1], yes.args[2])
    kind = yes.kind if yes.kind == no.kind else MAYBE
    return current().graph.node("if", (cond, yes, no), kind)


def _chosen_truth(cond: Node, yes: Node, no: Node) -> Node:
    if yes is TRUE:
        return either(cond, no)
    if no is TRUE:
        return either(negate(cond), yes)
    if yes is FALSE:
        return both(negate(cond), no)
    if no is FALSE:
        return both(cond, yes)
    return current().graph.node("if", (cond, yes, no), TRUTH)


def missing(a: Node) -> Node:
    """Return whether there is no value."""
    if a is NOTHING:
        return TRUE
    if a.kind != MAYBE:
        return FALSE
    if a.op == "if":
        return choose(a.args[0], missing(a.args[1]), missing(a.args[2]))
    return current().graph.node("blank", (a,), TRUTH)


def finite(a: Node) -> Node:
    """Return whether a number has an end; where there is none, a choice does not lead there."""
    if a is NOTHING:
        return FALSE
    if a.op == "const":
        return constant(math.isfinite(a.value))
    if a.op == "if":
        return choose(a.args[0], finite(a.args[1]), finite(a.args[2]))
    if not may_be_endless(a):
        return TRUE
    return current().graph.node("finite", (a,), TRUTH)


def may_be_endless(a: Node) -> bool:
    """Tell whether an infinite constant can reach a value."""
    known = current().graph.endless
    if a not in known:
        if a.op == "const":
            known[a] = a.kind == NUMBER and math.isinf(a.value)
        else:
            args = a.args[1:] if a.op == "if" else a.args
            known[a] = any(may_be_endless(arg) for arg in args)
    return known[a]


def truth(a: Node) -> Node:
    """Return whether Python takes a value for true."""
    if a.kind == TRUTH:
        return a
    if a.op == "const":
        return constant(bool(a.value))
    if a.op == "if":
        return choose(a.args[0], truth(a.args[1]), truth(a.args[2]))
    if a.kind == TEXT:
        return negate(equal(a, constant("")))
    if a.kind == MAYBE:
        return both(negate(missing(a)), negate(equal(a, constant(0))))
    return negate(equal(a, constant(0)))
