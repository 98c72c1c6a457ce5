"""What is known while code runs on traced numbers: the answers given so far, and what follows from them."""

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from kvcalc.tracing.current import RUNNING
from kvcalc.tracing.expression import Graph, Node, NoValueError, constant, evaluate
from kvcalc.tracing.operations import equal, less


class DeadEndError(Exception):
    """A way that the graph cannot follow; the graph is valid only where it is not taken."""


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
    """What is known while code runs on traced numbers, and the graph that comes of it.

    Nodes belong to the trace that made them: what asks anything of them runs inside of `entered`.
    """

    inputs: Mapping[str, Any] = field(default_factory=dict)  # values now
    graph: Graph = field(default_factory=Graph)
    ways: list[Way] = field(default_factory=list)
    facts: Facts = field(default_factory=Facts)
    limits: list[Limit] = field(default_factory=list)
    values: dict[Node, Any] = field(default_factory=dict)  # of nodes, with the inputs as they are now
    found: dict[Any, Any] = field(default_factory=dict)  # results, by function, arguments and facts
    labels: dict[Node, tuple[str, str]] = field(default_factory=dict)  # what computed a node, and what it is
    tried: int = 0  # blocks around the place that take an error for an answer

    supposed: list[tuple[Node, bool]] = field(default_factory=list)  # beside what the ways were asked

    @contextmanager
    def entered(self) -> Iterator["Trace"]:
        """Make this the trace that runs here, in this thread or task alone."""
        before = RUNNING.set(self)
        try:
            yield self
        finally:
            RUNNING.reset(before)

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

    def now(self, node: Node) -> Any:
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

    def pinned(self, node: Node, what: str) -> Any:
        """Return the value of a node as it is now; the graph is valid only while it stays so."""
        node = self.resolved(node)
        if node.op == "const":
            return node.value
        try:
            value = self.now(node)
        except NoValueError:
            raise self.stop(f"{what} cannot follow the inputs here") from None
        same = equal(node, constant(value))
        known = self.known(same)
        if known is False:
            raise self.stop(f"{what} cannot follow the inputs here")
        if known is None:
            self.require(same, f"{what} is fixed at {value:g}")
        return value
