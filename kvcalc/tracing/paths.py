"""Follows every way that a function can take where an input decides, and joins the results.

A function runs once for each way.  A question on a traced value (`if demand > room`) is answered from
what is known on this way; where nothing says, both answers are tried.  Results that differ become
choices; where they cannot be joined (one way raises, or gives another number of rows) the question
moves to the caller, which then has two ways itself.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from kvcalc.errors import KvcalcError
from kvcalc.tracing.current import current
from kvcalc.tracing.depth import DEEPEST, deep
from kvcalc.tracing.expression import TRUE, Node, NoValueError
from kvcalc.tracing.joining import CannotJoinError, join
from kvcalc.tracing.operations import both, negate
from kvcalc.tracing.trace import DeadEndError, Limit, Trace, Way

MOST_WAYS = 4096
"""Ways of one function that are followed [1]; known plans have a few dozen at most."""


SAME_FORM = "the answer has the rows that it was exported with"
"""What a graph rests on where the results of two ways cannot be joined."""

_PLAIN = (bool, int, float, str, type(None))


def remembered(function: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """Return what a function gives over all its ways, without running it again for the same question."""
    trace = current()
    key = _key_of(trace, function, args, named)
    known = None if key is None else trace.found.get(key)
    if known is not None:
        for node, answer in known.learnt:
            trace.facts[node] = answer
        return known.result
    before, asked = trace.facts.copy(), sum(len(way.given) for way in trace.ways)
    result = follow(function, *args, **named)
    _label(trace, function, result)
    if key is not None and asked == sum(len(way.given) for way in trace.ways) and _is_kept(result):
        learnt = tuple(item for item in trace.facts.items() if item[0] not in before)
        trace.found[key] = _Found(result, learnt, (args, named))
    return result


@dataclass(frozen=True)
class _Found:
    """A result, what its ways have taken for granted, and its arguments, whose places in memory it names."""

    result: Any
    learnt: tuple[tuple[Node, bool], ...]
    arguments: Any


def _label(trace: Trace, function: Callable[..., Any], result: Any) -> None:
    """Note which function gave a number first, with the first line of what it says of itself."""
    name = f"{function.__module__}.{function.__qualname__}".removeprefix("kvcalc.")
    about = (function.__doc__ or "").strip().partition("\n")[0]
    if hasattr(type(result), "__traced__"):
        trace.labels.setdefault(result.node, (name, about))
    elif hasattr(result, "__dataclass_fields__"):
        for field_name, value in vars(result).items():
            if hasattr(type(value), "__traced__"):
                trace.labels.setdefault(value.node, (f"{name}: {field_name}", about))


def _key_of(trace: Trace, function: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any]) -> Any:
    found: list[Any] = [function, trace.facts.key, trace.tried]
    for value in (*args, *named.values()):
        node = getattr(type(value), "__traced__", None) and value.node
        if node:
            found.append(node)
        elif isinstance(value, _PLAIN):
            found.append((type(value), value))
        elif hasattr(value, "noted") or isinstance(value, (list, dict)):
            return None
        else:
            found.append(id(value))
    return (*found, *named)


def _is_kept(result: Any) -> bool:
    """Tell a result that nobody can change."""
    if isinstance(result, tuple):
        return all(map(_is_kept, result))
    frozen = getattr(getattr(type(result), "__dataclass_params__", None), "frozen", False)
    return isinstance(result, _PLAIN) or hasattr(type(result), "__traced__") or bool(frozen)


@dataclass(frozen=True)
class _Value:
    value: Any


@dataclass(frozen=True)
class _Raised:
    error: Exception


@dataclass(frozen=True)
class _Fork:
    cond: Node
    yes: Any
    no: Any


_DEAD = _Raised(DeadEndError("no way leads on"))


def follow(function: Callable[..., Any], *args: Any, **named: Any) -> Any:
    """Return what a function gives, over all the ways that it can take."""
    scripts: list[tuple[bool, ...]] = [()]
    ends: list[tuple[tuple[tuple[Node, bool], ...], Any]] = []
    trace = current()
    before = trace.facts
    while scripts:
        way = Way(scripts.pop())
        trace.ways.append(way)
        trace.facts = before.copy()
        try:
            end: Any = _Value(function(*args, **named))
        except (KvcalcError, DeadEndError) as error:
            end = _Raised(error)
        except (ZeroDivisionError, OverflowError) as error:
            trace.limits.append(Limit(trace.condition, f"a division has no answer ({error})"))
            end = _DEAD
        finally:
            trace.ways.pop()
            trace.facts = before
        if not way.given and not ends:
            return _outcome(end)
        ends.append((tuple(way.given), end))
        scripts.extend(way.others)
        if len(ends) > MOST_WAYS:
            raise trace.stop(f"{getattr(function, '__name__', 'a step')} has too many ways")
    return _outcome(_tree(ends, 0))


def _tree(ends: list[tuple[tuple[tuple[Node, bool], ...], Any]], depth: int) -> Any:
    """Join the ends of all ways, the last questions first."""
    if len(ends) == 1:
        return ends[0][1]
    cond = ends[0][0][depth][0]
    sides = {answer: [end for end in ends if end[0][depth][1] is answer] for answer in (True, False)}
    if not sides[True] or not sides[False]:
        return _tree(ends, depth + 1)
    yes, no = (_tree(sides[answer], depth + 1) for answer in (True, False))
    trace = current()
    if not trace.tried:
        path = (*trace.condition, *ends[0][0][:depth])
        yes, no = _settled(yes, (*path, (cond, True))), _settled(no, (*path, (cond, False)))
    return _joined(cond, yes, no)


def _settled(end: Any, path: tuple[tuple[Node, bool], ...]) -> Any:
    """Return one side of a fork that a further question stands before; the other is not followed."""
    while isinstance(end, _Fork):
        raises = [isinstance(side, _Raised) for side in (end.yes, end.no)]
        if any(raises):
            answer = raises[1]
            reason = str((end.no if answer else end.yes).error)
        else:
            answer, reason = _now(end.cond), SAME_FORM
        current().limits.append(Limit((*path, (end.cond, not answer)), reason))
        end = end.yes if answer else end.no
    return end


def _now(cond: Node) -> bool:
    """Return the answer to a question with the inputs as they are now."""
    try:
        return bool(current().now(cond))
    except NoValueError:
        return True


def _joined(cond: Node, yes: Any, no: Any) -> Any:
    if _is_dead(yes):
        return no
    if _is_dead(no):
        return yes
    if isinstance(yes, _Value) and isinstance(no, _Value):
        try:
            return _Value(join(cond, yes.value, no.value))
        except CannotJoinError:
            pass
    if isinstance(yes, _Raised) and isinstance(no, _Raised) and _same_error(yes.error, no.error):
        return yes
    return _Fork(cond, yes, no)


def _is_dead(end: Any) -> bool:
    return isinstance(end, _Raised) and isinstance(end.error, DeadEndError)


def _same_error(a: Exception, b: Exception) -> bool:
    return type(a) is type(b) and str(a) == str(b)


def _outcome(end: Any) -> Any:
    """Return or raise the end of this way; a fork asks the caller's own way."""
    while isinstance(end, _Fork):
        end = end.yes if _chosen(end) else end.no
    if isinstance(end, _Raised):
        raise end.error
    return end.value


def _chosen(fork: _Fork) -> bool:
    """Return which side of a fork to go on with: of results that cannot be joined, the one of now.

    Where an error is an answer, the caller follows both sides.  Elsewhere the graph ends at the error.
    """
    trace = current()
    if trace.known(fork.cond) is not None:
        return trace.holds(fork.cond)
    raises = [_raises(side) for side in (fork.yes, fork.no)]
    if any(raises):
        if trace.tried:
            return trace.holds(fork.cond)
        answer = raises[1]
        error = fork.no if answer else fork.yes
        trace.require(fork.cond if answer else negate(fork.cond), str(error.error))
        return answer
    try:
        answer = bool(trace.now(fork.cond))
    except NoValueError:
        raise trace.stop("the answer takes another form") from None
    trace.require(fork.cond if answer else negate(fork.cond), SAME_FORM)
    return answer


def _raises(side: Any) -> bool:
    """Tell a side on which every way ends in an error."""
    return isinstance(side, _Raised)


def graph_of(run: Callable[[], Any]) -> Any:
    """Return what `run` gives over all the ways that it can take: the whole of an answer.

    Raises
    ------
    DeadEndError
        If no graph says it: every way ends where none can follow, or in an error that the code has words
        for, or the equations are nested deeper than Python goes.  Any other error is a bug, and stays one.
    """
    try:
        with deep():
            return follow(run)
    except KvcalcError as error:
        raise DeadEndError(str(error)) from error
    except RecursionError:
        raise DeadEndError(f"its equations are nested more than {DEEPEST} deep") from None


def supposing(node: Node, run: Callable[[], Any]) -> Any:
    """Return what `run` gives where a condition holds."""
    trace = current()
    before = trace.facts
    trace.facts = before.copy()
    trace.supposed.append((node, True))
    trace.assume(node, True)
    try:
        return follow(run)
    finally:
        trace.supposed.pop()
        trace.facts = before


def condition_of(answers: Iterable[tuple[Node, bool]]) -> Node:
    """Return the node that holds where all of these answers are given."""
    found = TRUE
    for node, answer in answers:
        found = both(found, node if answer else negate(node))
    return found
