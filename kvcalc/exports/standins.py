"""What stands in place of a few functions in the mirror: searches, messages and notes that no graph has.

Each gives what the function gives; where that rests on a condition, the condition is checked.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from types import MappingProxyType
from typing import Any

from kvcalc.catalog.scenarios import Said, read_value
from kvcalc.keys import Key
from kvcalc.tracing.current import current
from kvcalc.tracing.expression import Node, constant
from kvcalc.tracing.number import MaybePair, Traced, node_of, plain
from kvcalc.tracing.operations import either, equal, negate, operate, truth
from kvcalc.tracing.paths import follow

EXPERT_BATCH = "with experts it is found by iteration; `kvcalc plan` has it"


class Book:
    """Stands for the notebook of a plan: what it notes holds where its code ran."""

    sources: Mapping[str, Any] = MappingProxyType({})
    calls: tuple[Any, ...] = ()

    def __init__(self) -> None:
        self.kept = False
        self.noted: list[tuple[str, str, tuple[tuple[Node, bool], ...]]] = []

    @property
    def warnings(self) -> tuple[str, ...]:
        """Nothing; that it is asked for says that this book is the plan's own."""
        self.kept = True
        return ()

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Nothing, as `warnings`."""
        return self.warnings

    def source(self, key: str, source: Any) -> None:
        """Pass over a source: the real plan has them all."""

    def warn(self, text: str) -> None:
        """Note a warning."""
        self.noted.append(("warning", text, current().condition))

    def assume(self, text: str) -> None:
        """Note an assumption."""
        self.noted.append(("assumption", text, current().condition))

    def run(self, formula: Callable[..., Any], **arguments: Any) -> Any:
        """Call a formula."""
        return formula(**arguments)


def noting(books: list[Book]) -> type[Book]:
    """Return the class of notebooks that are told apart later: the plan's own is one of these."""

    class Listed(Book):
        """A notebook in the list."""

        def __init__(self) -> None:
            super().__init__()
            books.append(self)

    return Listed


def read_said(key: Key, said: Said) -> Any:
    """Return a value that was said; a traced one has been read before."""
    return said.value if isinstance(said.value, Traced) else read_value(key, said)


def fullest_stage(own: Callable[..., Any]) -> Callable[..., Any]:
    """Return what one stage holds without looking at each layer, so that their number may be traced."""

    def standing(components: Any, layers: Any, pp: int, convert: Any, tokens: Any) -> Any:
        return tuple(components) if pp == 1 else own(components, layers, pp, convert, tokens)

    return standing


def largest(layout: Any, size: Any, step: Any) -> Any:
    """Return the largest context of llama.cpp whose buffers fit: where its windows are full, by a division.

    What the search of the real layout looks for is checked for the result, whatever led to it.
    """
    far = 2**24 * step
    slope = (layout.total(2 * far) - layout.total(far)) / far
    count = (size - (layout.total(far) - slope * far)) / slope // step
    low = plain(operate("max", constant(0), node_of(count))) * step
    fits = either(equal(node_of(low), constant(0)), node_of(layout.total(low) <= size))
    for node in (fits, node_of(layout.total(low + step) > size)):
        if current().known(node) is None:
            current().require(node, "the context is longer than every window")
    return low


def pace_input(gains: Any) -> Callable[..., Any]:
    """Return the range of the share that leads, also where its ends are the same and change nothing."""

    def standing(paces: Any) -> Any:
        trace, open_ends = current(), []
        for item in fields(gains.Pace):
            low, middle, high = gains._ends(paces, item.name)
            same = equal(node_of(low), node_of(high))
            if trace.known(same) is not True:
                open_ends.append((item.name, low, middle, high, same))
        if not open_ends:
            return {}
        name, low, middle, high, same = open_ends[0]
        for *_, other in open_ends[1:]:
            # Shares that lead have a width wherever those behind them have one.
            if trace.known(either(negate(same), other)) is None:
                trace.require(either(negate(same), other), "prefill_efficiency is a range if the others are")
        most = 1.0 if name in gains._SHARES else math.inf
        return {gains._pace_key(name): gains.Range(low, middle, high, most)}

    return standing


def bandwidth_input(gains: Any) -> Callable[..., Any]:
    """Return the range of a tier's bandwidth, also where its ends are the same and change nothing."""
    own = gains.bandwidth_input

    def standing(tier: Any, uncertain: Any) -> Any:
        pair = tier.bandwidth_range
        if not isinstance(pair, MaybePair):
            return own(tier, uncertain)
        stated = own(replace(tier, bandwidth_range=tuple(pair)), uncertain)
        rate = tier.bandwidth
        exact = own(replace(tier, bandwidth_range=None), uncertain)
        exact = exact or {key: gains.Range(rate, rate, rate) for key in stated}
        return follow(lambda: exact if current().holds(pair.missing) else stated)

    return standing


def cannot_hold(capacity: Any, whole: Any) -> bool:
    """Return whether a tier is too small for one prefix, as it is now: a graph has one form."""
    trace, node = current(), node_of(whole > capacity)
    known = trace.known(node)
    if known is not None:
        return known
    answer = bool(trace.now(node))
    trace.require(node if answer else negate(node), "each tier holds a whole prefix, or none, as before")
    return answer


def check_ranks(divides: Callable[..., Any]) -> Callable[..., None]:
    """Return the check of tensor parallelism by the engine's rule, without the list of what is valid."""

    def standing(shape: Any, settings: Any, ranks: Any) -> None:
        heads = [part.kv_heads for part in shape.components_for(settings.engine) if part.kv_heads]
        good = follow(lambda: plain(truth(node_of(divides(ranks, shape.query_heads, heads)))))
        node = either(equal(node_of(ranks), constant(1)), node_of(good))
        if current().known(node) is None:
            current().require(node, "tp divides the heads")

    return standing


def compute_bound(own: Callable[..., Any]) -> Callable[..., Any]:
    """Return the search for a compute-bound batch, which is none where experts make it an iteration."""

    def standing(self: Any, context: Any, book: Any) -> Any:
        if self.parameters is not None and self.parameters.experts:
            return None, EXPERT_BATCH
        return own(self, context, book)

    return standing
