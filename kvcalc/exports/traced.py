"""One plan on traced numbers: every figure of its answer as a graph over the inputs."""

import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType
from typing import Any

from kvcalc.api import plan_calls
from kvcalc.catalog import models
from kvcalc.catalog.scenarios import Question, Said, read_value
from kvcalc.errors import SettingsError
from kvcalc.exports.inputs import (
    Input,
    Inputs,
    collected,
    hardware_leaf,
    kv_formats,
    maybe_range,
    model_leaf,
    traced_range,
    traced_said,
    with_optional,
)
from kvcalc.keys import TIER_UNITS, Key
from kvcalc.results import PlanResult
from kvcalc.tracing.builtin import refuse
from kvcalc.tracing.expression import FALSE, TRUE, Node, constant
from kvcalc.tracing.lifting import lifted
from kvcalc.tracing.mirror import Mirror
from kvcalc.tracing.number import MaybePair, Traced, node_of, plain
from kvcalc.tracing.operations import both, either, equal, less, negate, operate, truth
from kvcalc.tracing.paths import TRACE, DeadEndError, condition_of, follow, join, started

NOT_LIVE: Mapping[str, str] = MappingProxyType(
    {
        "flips": "searched on a grid of values",
        "tornado": "sorted by what they do; the sheet Sensitivity has its own table",
        "offload.split": "searched over all ways to divide a prefix",
        "offload.layer_group": "searched over all numbers of layers",
        "offload.layerwise_total": "searched over all numbers of layers",
        "offload.break_even_tokens": "searched on a grid of lengths",
    }
)
"""Figures of a plan that no cell computes, with the reason."""

EXPERT_BATCH = "with experts it is found by iteration; `kvcalc plan` has it"


@dataclass(frozen=True)
class Note:
    """A warning or an assumption, and where it holds."""

    kind: str  # warning or assumption
    text: str  # with marks of traced numbers
    where: Node


@dataclass(frozen=True)
class Check:
    """A condition that the whole workbook rests on."""

    reason: str
    holds: Node


@dataclass(frozen=True)
class TracedPlan:
    """What a workbook is made of."""

    real: PlanResult
    result: Any  # a PlanResult whose numbers are traced
    rows: tuple[tuple[Node, Any], ...]  # of offload, and where there is one: by a hit, or by a missing room
    inputs: tuple[Input, ...]
    notes: tuple[Note, ...]
    checks: tuple[Check, ...]
    model: str
    machine: str
    labels: Mapping[Node, tuple[str, str]]


class Book:
    """Stands for the notebook of a plan: what it notes holds where its code ran."""

    sources: Mapping[str, Any] = MappingProxyType({})
    calls: tuple[Any, ...] = ()

    def __init__(self) -> None:
        self.kept = False
        self.noted: list[tuple[str, str, tuple[tuple[Node, bool], ...]]] = []
        _BOOKS.append(self)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Nothing; that it is asked for says that this book is the plan's own."""
        self.kept = True
        return ()

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Nothing, as `warnings`."""
        return self.warnings

    def source(self, key: str, source: Any) -> None:  # noqa: ANN401
        """Pass over a source: the real plan has them all."""

    def warn(self, text: str) -> None:
        """Note a warning."""
        self.noted.append(("warning", text, TRACE.condition))

    def assume(self, text: str) -> None:
        """Note an assumption."""
        self.noted.append(("assumption", text, TRACE.condition))

    def run(self, formula: Callable[..., Any], **arguments: Any) -> Any:  # noqa: ANN401
        """Call a formula."""
        return formula(**arguments)


_BOOKS: list[Book] = []


@dataclass
class _Run:
    """One trace in progress."""

    inputs: Inputs
    hits: Node = TRUE  # whether a request restores anything
    streaming: list[tuple[Node, tuple[Any, ...]]] = field(default_factory=list)

    def mirror(self) -> Mirror:
        """Return the mirror, with what a graph cannot follow left out by name."""
        mirror = Mirror(
            {
                "kvcalc.formulas._domain": {"refuse": refuse},
                "kvcalc.planning.notebook": {"Notebook": Book},
                "kvcalc.planning.uncertainty": {"tornado": lambda gains: ()},
                "kvcalc.planning.offload.prefix": {"_shortest": lambda *_: None},
                "kvcalc.planning.offload.rows": {"_layerwise": lambda *_: (None, None)},
                "kvcalc.catalog.scenarios": {"read_value": _read},
            }
        )
        formats = mirror.load("kvcalc.shapes.formats")
        formats.find_format = kv_formats(self.inputs, formats.find_format)
        sizing = mirror.load("kvcalc.engines.sizing")
        sizing.fullest_stage = _fullest_stage(sizing.fullest_stage)
        checks = mirror.load("kvcalc.engines.checks")
        checks.check_ranks = _check_ranks(checks._divides)
        mirror.load("kvcalc.engines.llamacpp").LlamaCppLayout._largest = _largest
        gains = mirror.load("kvcalc.planning.gains")
        gains.pace_input = _pace_input(gains)
        gains.bandwidth_input = _bandwidth_input(gains)
        plan = mirror.load("kvcalc.planning.plan")
        plan.flips_of = lambda *_: ()
        plan.with_splits = lambda speed, rows: rows
        cached_tokens = mirror.load("kvcalc.planning.offload.prefix").cached_tokens
        plan.offload_rows = self._offload(plan.offload_rows, cached_tokens)
        plan.eviction_of = self._by_hits(plan.eviction_of, 2)
        plan._fleet = self._by_hits(plan._fleet, 2)
        plan.judged_plan = self._judged(plan.judged_plan)
        decode = mirror.load("kvcalc.planning.decode").DecodeModel
        decode.compute_bound = _compute_bound(decode.compute_bound)
        scenarios = mirror.load("kvcalc.catalog.scenarios")
        scenarios.tier_of = self._tier(scenarios.tier_of)
        return mirror

    def _tier(self, own: Callable[..., Any]) -> Callable[..., Any]:
        """Read a tier, and trace its numbers."""

        def tier_of(name: str, said: Mapping[str, Said]) -> Any:  # noqa: ANN401
            made = own(name, said)
            live = [key for key in said if key in TIER_UNITS and key != "shared_by"]
            return replace(made, **{key: self.inputs.tier(name, key, getattr(made, key)) for key in live})

        return tier_of

    def _offload(self, own: Callable[..., Any], cached_tokens: Callable[..., Any]) -> Callable[..., Any]:
        """Answer the tiers twice: where something is restored, and for what streams where the load does not fit."""

        def offload_rows(scenario: Any, speed: Any, capacity: Any, decode: Any, book: Any) -> Any:  # noqa: ANN401
            short = less(constant(0), node_of(capacity.shortfall))
            self.hits = less(constant(0), node_of(cached_tokens(scenario, speed, Book())))

            def rows() -> Any:  # noqa: ANN401
                return own(scenario, speed, capacity, decode, book)

            stored = TRACE.supposing(both(self.hits, negate(short)), rows)
            more = TRACE.supposing(both(self.hits, short), rows)
            self.streaming = [(short, tuple(row for row in more if row.mode != "prefix_store"))]
            return tuple(row for row in stored if row.mode == "prefix_store")

        return offload_rows

    def _by_hits(self, own: Callable[..., Any], place: int) -> Callable[..., Any]:
        """Answer what depends on the rows twice: with them, and where nothing is restored."""

        def answered(*args: Any) -> Any:  # noqa: ANN401
            without = (*args[:place], (), *args[place + 1 :])
            hit = TRACE.supposing(self.hits, lambda: own(*args))
            miss = TRACE.supposing(negate(self.hits), lambda: own(*without))
            return join(self.hits, hit, miss)

        return answered

    def _judged(self, own: Callable[..., Any]) -> Callable[..., Any]:
        """Judge the rows by their ranges, and those that stream apart from them."""

        def judged_plan(
            scenario: Any, speed: Any, rows: Any, capacity: Any, decode: Any, book: Any  # noqa: ANN401
        ) -> Any:  # noqa: ANN401
            for place, (short, streaming) in enumerate(self.streaming):
                judged, _ = TRACE.supposing(
                    short, lambda part=streaming: own(scenario, speed, part, capacity, decode, book)
                )
                self.streaming[place] = short, judged
            return TRACE.supposing(
                self.hits, lambda: own(scenario, speed, rows, capacity, decode, book)
            )

        return judged_plan


def _read(key: Key, said: Said) -> Any:  # noqa: ANN401
    return said.value if isinstance(said.value, Traced) else read_value(key, said)


def _fullest_stage(own: Callable[..., Any]) -> Callable[..., Any]:
    """Return what one stage holds without looking at each layer, so that their number may be traced."""

    def fullest_stage(components: Any, layers: Any, pp: int, convert: Any, tokens: Any) -> Any:  # noqa: ANN401
        return tuple(components) if pp == 1 else own(components, layers, pp, convert, tokens)

    return fullest_stage


def _largest(layout: Any, size: Any, step: Any) -> Any:  # noqa: ANN401
    """Return the largest context of llama.cpp whose buffers fit: where its windows are full, by a division.

    What the search of the real layout looks for is checked for the result, whatever led to it.
    """
    far = 2**24 * step
    slope = (layout.total(2 * far) - layout.total(far)) / far
    count = (size - (layout.total(far) - slope * far)) / slope // step
    low = plain(operate("max", constant(0), node_of(count))) * step
    fits = either(equal(node_of(low), constant(0)), node_of(layout.total(low) <= size))
    for node in (fits, node_of(layout.total(low + step) > size)):
        if TRACE.known(node) is None:
            TRACE.require(node, "the context is longer than every window")
    return low


def _pace_input(gains: Any) -> Callable[..., Any]:  # noqa: ANN401
    """Return the range of the share that leads, also where its ends are the same and change nothing."""

    def pace_input(paces: Any) -> Any:  # noqa: ANN401
        open_ends = []
        for item in fields(gains.Pace):
            low, middle, high = gains._ends(paces, item.name)
            same = equal(node_of(low), node_of(high))
            if TRACE.known(same) is not True:
                open_ends.append((item.name, low, middle, high, same))
        if not open_ends:
            return {}
        name, low, middle, high, same = open_ends[0]
        for *_, other in open_ends[1:]:
            # Shares that lead have a width wherever those behind them have one.
            if TRACE.known(either(negate(same), other)) is None:
                TRACE.require(either(negate(same), other), "prefill_efficiency is a range if the others are")
        most = 1.0 if name in gains._SHARES else math.inf
        return {gains._pace_key(name): gains.Range(low, middle, high, most)}

    return pace_input


def _bandwidth_input(gains: Any) -> Callable[..., Any]:  # noqa: ANN401
    """Return the range of a tier's bandwidth, also where its ends are the same and change nothing."""
    own = gains.bandwidth_input

    def bandwidth_input(tier: Any, uncertain: Any) -> Any:  # noqa: ANN401
        pair = tier.bandwidth_range
        if not isinstance(pair, MaybePair):
            return own(tier, uncertain)
        stated = own(replace(tier, bandwidth_range=tuple(pair)), uncertain)
        rate = tier.bandwidth
        exact = own(replace(tier, bandwidth_range=None), uncertain)
        exact = exact or {key: gains.Range(rate, rate, rate) for key in stated}
        return follow(lambda: exact if TRACE.holds(pair.missing) else stated)

    return bandwidth_input


def _check_ranks(divides: Callable[..., Any]) -> Callable[..., None]:
    """Return the check of tensor parallelism by the engine's rule, without the list of what is valid."""

    def check_ranks(shape: Any, settings: Any, ranks: Any) -> None:  # noqa: ANN401
        heads = [part.kv_heads for part in shape.components_for(settings.engine) if part.kv_heads]
        good = follow(lambda: plain(truth(node_of(divides(ranks, shape.query_heads, heads)))))
        node = either(equal(node_of(ranks), constant(1)), node_of(good))
        if TRACE.known(node) is None:
            TRACE.require(node, "tp divides the heads")

    return check_ranks


def _compute_bound(own: Callable[..., Any]) -> Callable[..., Any]:
    def compute_bound(self: Any, context: Any, book: Any) -> Any:  # noqa: ANN401
        if self.parameters is not None and self.parameters.experts:
            return None, EXPERT_BATCH
        return own(self, context, book)

    return compute_bound


def trace_plan(question: Question) -> TracedPlan:
    """Return the plan of a question as graphs over its inputs.

    Raises
    ------
    SettingsError
        If the question cannot be answered, or asks for what no graph can say.
    """
    real, _ = plan_calls(question)
    inputs = collected(question)
    run = _Run(inputs)
    mirror = run.mirror()
    _BOOKS.clear()
    traced, ranges = traced_said(inputs)
    hardware = lifted(mirror, inputs.real.hardware, "", hardware_leaf(inputs))
    model = lifted(mirror, models.load(str(question.model)), "", model_leaf(inputs))
    draft = _draft(question, mirror)
    started(inputs.values)
    _order_bands(inputs)

    def answer() -> Any:  # noqa: ANN401
        scenarios = mirror.load("kvcalc.catalog.scenarios")
        built = scenarios.build(_mirrored(scenarios, traced), model, hardware, draft)
        built = _with_ranges(inputs, with_optional(inputs, built), ranges)
        return mirror.load("kvcalc.planning.plan").Plan(built).answer()[0]

    result = _followed(answer)
    return TracedPlan(
        real=real,
        result=result,
        rows=(
            *((run.hits, row) for row in result.offload),
            *((short, row) for short, rows in run.streaming for row in rows),
        ),
        inputs=tuple(inputs.found.values()),
        notes=_notes(),
        checks=_checks(),
        model=str(inputs.real.model.name),
        machine=inputs.real.hardware.name,
        labels=dict(TRACE.labels),
    )


def _followed(answer: Callable[[], Any]) -> Any:  # noqa: ANN401
    """Return the answer as a graph, or say in one line that this plan has none."""
    try:
        return follow(answer)
    except (DeadEndError, RecursionError, TypeError, AttributeError, KeyError, ValueError) as error:
        if os.environ.get("KVCALC_DEBUG"):
            raise
        raise SettingsError(
            f"this plan does not fit a workbook ({' '.join(str(error).split()) or type(error).__name__}); "
            "`kvcalc plan` answers it"
        ) from None


def _draft(question: Question, mirror: Mirror) -> Any:  # noqa: ANN401
    if "draft" not in question.said:
        return None
    return lifted(mirror, models.load(str(question.said["draft"].value)), "", lambda _, value: value)


def _mirrored(scenarios: Any, question: Question) -> Any:  # noqa: ANN401
    """Return a question of the mirror's own class."""
    return scenarios.Question(
        question.model, question.hardware, question.said, question.tiers, question.replaced
    )


def _with_ranges(inputs: Inputs, built: Any, ranges: Mapping[str, Any]) -> Any:  # noqa: ANN401
    real = inputs.real.ranges

    def ranged(tier: Any) -> Any:  # noqa: ANN401
        key = f"tiers.{tier.name}.bandwidth"
        if key not in real:
            return tier
        ends = maybe_range(inputs.found[key], real[key].low, real[key].high)
        return replace(tier, bandwidth_range=ends)

    live = {name: traced_range(inputs, name, item) for name, item in ranges.items()}
    return replace(built, tiers=tuple(map(ranged, built.tiers)), ranges=live)


def _order_bands(inputs: Inputs) -> None:
    """Take for granted that the ends of a share lie around its middle."""
    for name in ("prefill_efficiency", "decode_efficiency", "attention_efficiency"):
        ends = [inputs.found[key].node for end in ("low", "mid", "high") if (key := f"{name}.{end}") in inputs.found]
        if len(ends) == 3:
            low, middle, high = ends
            for below, above in ((low, middle), (middle, high)):
                TRACE.require(negate(less(above, below)), f"{name}: low, mid and high are in this order")


def _notes() -> tuple[Note, ...]:
    found: dict[tuple[str, str], Node] = {}
    for book in _BOOKS:
        for kind, text, where in book.noted if book.kept else ():
            found[kind, text] = either(found.get((kind, text), FALSE), condition_of(where))
    return tuple(Note(kind, text, where) for (kind, text), where in found.items())


def _checks() -> tuple[Check, ...]:
    """Return the conditions that the graph rests on, each of them once, wherever they are needed."""
    needed: dict[tuple[Node, bool], Node] = {}
    reasons: dict[tuple[Node, bool], str] = {}
    for limit in TRACE.limits:
        if not limit.where:
            continue
        *path, last = limit.where
        needed[last] = either(needed.get(last, FALSE), condition_of(path))
        reasons.setdefault(last, limit.reason)
    found: dict[str, Node] = {}
    for (node, answer), where in needed.items():
        bad = both(where, node if answer else negate(node))
        reason = reasons[node, answer]
        found[reason] = both(found.get(reason, TRUE), negate(bad))
    return tuple(Check(reason, holds) for reason, holds in found.items() if holds is not TRUE)
