"""Follows every way that a function can take where an input decides, and joins the results.

A function runs once for each way.  A question on a traced value (`if demand > room`) is answered from
what is known on this way; where nothing says, both answers are tried.  Results that differ become
choices; where they cannot be joined (one way raises, or gives another number of rows) the question
moves to the caller, which then has two ways itself.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from kvcalc.errors import KvcalcError
from kvcalc.tracing.expression import FALSE, TRUE, Node, constant, evaluate
from kvcalc.tracing.operations import both, choose, equal, less, negate

MOST_WAYS = 4096
"""Ways of one function that are followed [1]; known plans have a few dozen at most."""


class DeadEndError(Exception):
    """A way that the graph cannot follow; the graph is valid only where it is not taken."""


class CannotJoinError(Exception):
    """Two results that are not of one form."""


class Facts(dict[Node, bool]):
    """Conditions that are known on a way; two ways with the same answers have the same key."""

    _key: frozenset[tuple[Node, bool]] | None = None

    def __setitem__(self, node: Node, answer: bool) -> None:
        if self.get(node) is not answer:
            self._key = None
            super().__setitem__(node, answer)

    def copy(self) -> "Facts":
        """Return facts to add to."""
        made = Facts(self)
        made._key = self._key
        return made

    @property
    def key(self) -> frozenset[tuple[Node, bool]]:
        """What tells these facts from others."""
        if self._key is None:
            self._key = frozenset(self.items())
        return self._key


@dataclass
class Way:
    """One run of a function: the answers to give first, and those that were given."""

    script: tuple[bool, ...]
    given: list[tuple[Node, bool]] = field(default_factory=list)
    others: list[tuple[bool, ...]] = field(default_factory=list)


@dataclass
class Limit:
    """Where the graph stops being valid, and why."""

    where: tuple[tuple[Node, bool], ...]
    reason: str


@dataclass
class Trace:
    """What is known while code runs on traced numbers."""

    inputs: Mapping[str, Any] = field(default_factory=dict)  # values now
    ways: list[Way] = field(default_factory=list)
    facts: Facts = field(default_factory=Facts)
    limits: list[Limit] = field(default_factory=list)
    values: dict[Node, Any] = field(default_factory=dict)  # of nodes, with the inputs as they are now
    found: dict[Any, Any] = field(default_factory=dict)  # results, by function, arguments and facts
    labels: dict[Node, tuple[str, str]] = field(default_factory=dict)  # what computed a node, and what it is
    tried: int = 0  # blocks around the place that take an error for an answer

    supposed: list[tuple[Node, bool]] = field(default_factory=list)  # beside what the ways were asked

    def supposing(self, node: Node, run: Callable[[], Any]) -> Any:  # noqa: ANN401
        """Return what `run` gives where a condition holds."""
        before = self.facts
        self.facts = before.copy()
        self.supposed.append((node, True))
        self.assume(node, True)
        try:
            return follow(run)
        finally:
            self.supposed.pop()
            self.facts = before

    @contextmanager
    def trying(self) -> Iterator[None]:
        """Mark a block whose errors are answers."""
        self.tried += 1
        try:
            yield
        finally:
            self.tried -= 1

    def require(self, node: Node, reason: str) -> None:
        """Take a condition for granted; the graph is valid only where it holds."""
        self.limits.append(Limit((*self.condition, (node, False)), reason))
        self.assume(node, True)

    @property
    def condition(self) -> tuple[tuple[Node, bool], ...]:
        """What has been answered on the way to here."""
        return (*self.supposed, *(answer for way in self.ways for answer in way.given))

    def now(self, node: Node) -> Any:  # noqa: ANN401
        """Return the value of a node with the inputs as they are now."""
        return evaluate(node, self.inputs, self.values)

    def stop(self, reason: str) -> DeadEndError:
        """Note that this way is not followed."""
        self.limits.append(Limit(self.condition, reason))
        return DeadEndError(reason)

    def holds(self, node: Node) -> bool:
        """Return whether a condition holds on this way; try both answers where nothing says."""
        known = self.known(node)
        if known is not None:
            return known
        if not self.ways:
            raise self.stop("a question outside of any function")
        way = self.ways[-1]
        place = len(way.given)
        if place < len(way.script):
            answer = way.script[place]
        else:
            answer = True
            way.others.append((*(answer for _, answer in way.given), False))
        way.given.append((node, answer))
        self.assume(node, answer)
        return answer

    def assume(self, node: Node, answer: bool) -> None:
        """Take a condition for granted from here on, and what follows from it."""
        if node.op == "not":
            self.assume(node.args[0], not answer)
            return
        self.facts[node] = answer
        if (node.op, answer) in (("and", True), ("or", False)):
            for part in node.args:
                self.assume(part, answer)
        if node.op == "lt" and answer:
            first, second = node.args
            self.facts[less(second, first)] = False
            self.facts[equal(first, second)] = False

    def known(self, node: Node) -> bool | None:
        """Return the answer that is known on this way, if there is one."""
        if node.op == "const":
            return bool(node.value)
        if node in self.facts:
            return self.facts[node]
        if node.op == "not":
            inner = self.known(node.args[0])
            return None if inner is None else not inner
        if node.op in ("and", "or"):
            return self._known_of_two(node)
        if node.op == "if":
            chosen = self.known(node.args[0])
            if chosen is None:
                yes, no = self.known(node.args[1]), self.known(node.args[2])
                return yes if yes == no else None
            return self.known(node.args[1] if chosen else node.args[2])
        if node.op in ("lt", "eq"):
            return self._known_of_numbers(node)
        return None

    def _known_of_two(self, node: Node) -> bool | None:
        answers = [self.known(part) for part in node.args]
        decisive = node.op == "or"
        if decisive in answers:
            return decisive
        return None if None in answers else not decisive

    def _known_of_numbers(self, node: Node) -> bool | None:
        first, second = (self.resolved(part) for part in node.args)
        if (first, second) != node.args:
            simpler = less(first, second) if node.op == "lt" else equal(first, second)
            return self.known(simpler)
        low, high = self._ends(first), self._ends(second)
        if node.op == "eq":
            apart = low[1] < high[0] or high[1] < low[0]
            return False if apart else None
        if low[1] < high[0]:
            return True
        if low[0] >= high[1]:
            return False
        # Zero or more, and not zero.
        if first.op == "const" and first.value == 0 and second.bounds.not_negative:
            return True if self.facts.get(equal(first, second)) is False else None
        return None

    def _ends(self, node: Node) -> tuple[float, float]:
        """Return the ends of a number on this way: its own, tightened by what was answered of it."""
        low, high = node.bounds.low, node.bounds.high
        if node.bounds.positive:
            low = max(low, math.ulp(0.0))
        for fact, answer in self.facts.items():
            if fact.op != "lt" or node not in fact.args:
                continue
            first, second = fact.args
            if first is node and second.op == "const":
                if answer:
                    high = min(high, math.nextafter(second.value, -math.inf))
                else:
                    low = max(low, second.value)
            elif second is node and first.op == "const":
                if answer:
                    low = max(low, math.nextafter(first.value, math.inf))
                else:
                    high = min(high, first.value)
        return low, high

    def resolved(self, node: Node) -> Node:
        """Return what a choice is on this way."""
        while node.op == "if":
            known = self.known(node.args[0])
            if known is None:
                return node
            node = node.args[1] if known else node.args[2]
        return node

    def pinned(self, node: Node, what: str) -> Any:  # noqa: ANN401
        """Return the value of a node as it is now; the graph is valid only while it stays so."""
        node = self.resolved(node)
        if node.op == "const":
            return node.value
        try:
            value = self.now(node)
        except (ArithmeticError, ValueError, TypeError, KeyError):
            raise self.stop(f"{what} cannot follow the inputs here") from None
        same = equal(node, constant(value))
        known = self.known(same)
        if known is False:
            raise self.stop(f"{what} cannot follow the inputs here")
        if known is None:
            self.require(same, f"{what} is fixed at {value:g}")
        return value


TRACE = Trace()
"""The trace in progress; code runs on traced numbers for one answer at a time."""


def started(inputs: Mapping[str, Any]) -> Trace:
    """Begin a trace with these values of the inputs."""
    TRACE.inputs, TRACE.ways, TRACE.facts, TRACE.limits = inputs, [], Facts(), []
    TRACE.values, TRACE.found, TRACE.labels = {}, {}, {}
    return TRACE


_PLAIN = (bool, int, float, str, type(None))


def remembered(function: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any]) -> Any:  # noqa: ANN401
    """Return what a function gives over all its ways, without running it again for the same question."""
    key = _key_of(function, args, named)
    known = None if key is None else TRACE.found.get(key)
    if known is not None:
        for node, answer in known.learnt:
            TRACE.facts[node] = answer
        return known.result
    before, asked = TRACE.facts.copy(), sum(len(way.given) for way in TRACE.ways)
    result = follow(function, *args, **named)
    _label(function, result)
    if key is not None and asked == sum(len(way.given) for way in TRACE.ways) and _is_kept(result):
        learnt = tuple(item for item in TRACE.facts.items() if item[0] not in before)
        TRACE.found[key] = _Found(result, learnt, (args, named))
    return result


@dataclass(frozen=True)
class _Found:
    """A result, what its ways have taken for granted, and its arguments, whose places in memory it names."""

    result: Any
    learnt: tuple[tuple[Node, bool], ...]
    arguments: Any


def _label(function: Callable[..., Any], result: Any) -> None:  # noqa: ANN401
    """Note which function gave a number first, with the first line of what it says of itself."""
    name = f"{function.__module__}.{function.__qualname__}".removeprefix("kvcalc.")
    about = (function.__doc__ or "").strip().partition("\n")[0]
    if hasattr(type(result), "__traced__"):
        TRACE.labels.setdefault(result.node, (name, about))
    elif hasattr(result, "__dataclass_fields__"):
        for field_name, value in vars(result).items():
            if hasattr(type(value), "__traced__"):
                TRACE.labels.setdefault(value.node, (f"{name}: {field_name}", about))


def _key_of(function: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any]) -> Any:  # noqa: ANN401
    found: list[Any] = [function, TRACE.facts.key, TRACE.tried]
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


def _is_kept(result: Any) -> bool:  # noqa: ANN401
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


def follow(function: Callable[..., Any], *args: Any, **named: Any) -> Any:  # noqa: ANN401
    """Return what a function gives, over all the ways that it can take."""
    scripts: list[tuple[bool, ...]] = [()]
    ends: list[tuple[tuple[tuple[Node, bool], ...], Any]] = []
    before = TRACE.facts
    while scripts:
        way = Way(scripts.pop())
        TRACE.ways.append(way)
        TRACE.facts = before.copy()
        try:
            end: Any = _Value(function(*args, **named))
        except (KvcalcError, DeadEndError) as error:
            end = _Raised(error)
        except (ZeroDivisionError, OverflowError) as error:
            TRACE.limits.append(Limit(TRACE.condition, f"a division has no answer ({error})"))
            end = _DEAD
        finally:
            TRACE.ways.pop()
            TRACE.facts = before
        if not way.given and not ends:
            return _outcome(end)
        ends.append((tuple(way.given), end))
        scripts.extend(way.others)
        if len(ends) > MOST_WAYS:
            raise TRACE.stop(f"{getattr(function, '__name__', 'a step')} has too many ways")
    return _outcome(_tree(ends, 0), getattr(function, "__qualname__", ""))


def _tree(ends: list[tuple[tuple[tuple[Node, bool], ...], Any]], depth: int) -> Any:  # noqa: ANN401
    """Join the ends of all ways, the last questions first."""
    if len(ends) == 1:
        return ends[0][1]
    cond = ends[0][0][depth][0]
    sides = {answer: [end for end in ends if end[0][depth][1] is answer] for answer in (True, False)}
    if not sides[True] or not sides[False]:
        return _tree(ends, depth + 1)
    yes, no = (_tree(sides[answer], depth + 1) for answer in (True, False))
    if not TRACE.tried:
        path = (*TRACE.condition, *ends[0][0][:depth])
        yes, no = _settled(yes, (*path, (cond, True))), _settled(no, (*path, (cond, False)))
    return _joined(cond, yes, no)


def _settled(end: Any, path: tuple[tuple[Node, bool], ...]) -> Any:  # noqa: ANN401
    """Return one side of a fork that a further question stands before; the other is not followed."""
    while isinstance(end, _Fork):
        raises = [isinstance(side, _Raised) for side in (end.yes, end.no)]
        if any(raises):
            answer = raises[1]
            reason = str((end.no if answer else end.yes).error)
        else:
            answer, reason = _now(end.cond), "the answer has other rows"
        TRACE.limits.append(Limit((*path, (end.cond, not answer)), reason))
        end = end.yes if answer else end.no
    return end


def _now(cond: Node) -> bool:
    """Return the answer to a question with the inputs as they are now."""
    try:
        return bool(TRACE.now(cond))
    except (ArithmeticError, ValueError, TypeError, KeyError):
        return True


def _joined(cond: Node, yes: Any, no: Any) -> Any:  # noqa: ANN401
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


def _is_dead(end: Any) -> bool:  # noqa: ANN401
    return isinstance(end, _Raised) and isinstance(end.error, DeadEndError)


def _same_error(a: Exception, b: Exception) -> bool:
    return type(a) is type(b) and str(a) == str(b)


def _outcome(end: Any, where: str = "") -> Any:  # noqa: ANN401
    """Return or raise the end of this way; a fork asks the caller's own way."""
    while isinstance(end, _Fork):
        end = end.yes if _chosen(end, where) else end.no
    if isinstance(end, _Raised):
        raise end.error
    return end.value


def _chosen(fork: _Fork, where: str) -> bool:
    """Return which side of a fork to go on with: of results that cannot be joined, the one of now.

    Where an error is an answer, the caller follows both sides.  Elsewhere the graph ends at the error.
    """
    if TRACE.known(fork.cond) is not None:
        return TRACE.holds(fork.cond)
    raises = [_raises(side) for side in (fork.yes, fork.no)]
    if any(raises):
        if TRACE.tried:
            return TRACE.holds(fork.cond)
        answer = raises[1]
        error = fork.no if answer else fork.yes
        TRACE.require(fork.cond if answer else negate(fork.cond), str(error.error))
        return answer
    try:
        answer = bool(TRACE.now(fork.cond))
    except (ArithmeticError, ValueError, TypeError, KeyError):
        raise TRACE.stop("the answer takes another form") from None
    TRACE.require(fork.cond if answer else negate(fork.cond), f"the answer has other rows ({where})")
    return answer


def _raises(side: Any) -> bool:  # noqa: ANN401
    """Tell a side on which every way ends in an error."""
    return isinstance(side, _Raised)


def join(cond: Node, yes: Any, no: Any) -> Any:  # noqa: ANN401
    """Return one value that is `yes` where the condition holds, else `no`.

    Raises
    ------
    CannotJoinError
        If they are not of one form.
    """
    from kvcalc.tracing.number import Traced, is_leaf, node_of, plain

    if yes is no:
        return yes
    if is_leaf(yes) and is_leaf(no):
        return plain(choose(cond, node_of(yes), node_of(no)))
    for part, other in ((yes, no), (no, yes)):
        if part is None and type(other).__module__ in RESULTS:
            empty = object.__new__(type(other))
            empty.__dict__.update(_emptied(vars(other)))
            return join(cond, other, empty) if part is no else join(cond, empty, other)
    if isinstance(yes, Traced) or isinstance(no, Traced) or type(yes) is not type(no):
        raise CannotJoinError
    if isinstance(yes, (tuple, list)):
        if len(yes) != len(no):
            raise CannotJoinError
        items = [join(cond, *pair) for pair in zip(yes, no, strict=True)]
        return _sequence(yes, items)
    if isinstance(yes, Mapping):
        if list(yes) != list(no):
            raise CannotJoinError
        return type(yes)({key: join(cond, yes[key], no[key]) for key in yes})  # type: ignore[call-arg]
    return _joined_object(cond, yes, no)


RESULTS = ("kvcalc.results", "kvcalc.offload_results")
"""Modules of parts of an answer, which nothing is computed from: one that is missing has empty fields."""


def _emptied(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _empty(value) for name, value in fields.items()}


def _empty(value: Any) -> Any:  # noqa: ANN401
    if isinstance(value, (tuple, list)):
        return type(value)(_empty(item) for item in value)
    if type(value).__module__ in RESULTS:
        made = object.__new__(type(value))
        made.__dict__.update(_emptied(vars(value)))
        return made
    return None


def _sequence(like: Any, items: list[Any]) -> Any:  # noqa: ANN401
    if isinstance(like, list):
        return items
    return type(like)(*items) if hasattr(like, "_fields") else tuple(items)


def _joined_object(cond: Node, yes: Any, no: Any) -> Any:  # noqa: ANN401
    """Join two objects of one kind, field by field."""
    if callable(yes) or not hasattr(yes, "__dict__") or vars(yes).keys() != vars(no).keys():
        if _equal(yes, no):
            return yes
        raise CannotJoinError
    made = object.__new__(type(yes))
    made.__dict__.update({name: join(cond, vars(yes)[name], vars(no)[name]) for name in vars(yes)})
    return made


def _equal(yes: Any, no: Any) -> bool:  # noqa: ANN401
    try:
        return bool(yes == no)
    except Exception:
        return False


def condition_of(answers: Iterable[tuple[Node, bool]]) -> Node:
    """Return the node that holds where all of these answers are given."""
    found = TRUE
    for node, answer in answers:
        found = both(found, node if answer else negate(node))
    return found


__all__ = ["FALSE", "TRACE", "DeadEndError", "Trace", "condition_of", "follow", "join", "started"]
