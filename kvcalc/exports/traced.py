"""One plan on traced numbers: every figure of its answer as a graph over the inputs."""

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import Any

from kvcalc.api import plan_calls
from kvcalc.catalog import models
from kvcalc.catalog.scenarios import Question, Said
from kvcalc.errors import SettingsError
from kvcalc.exports.inputs import (
    Input,
    Inputs,
    collected,
    hardware_leaf,
    maybe_range,
    traced_range,
    traced_said,
    with_optional,
)
from kvcalc.exports.model_inputs import kv_formats, model_leaf
from kvcalc.exports.standins import (
    Book,
    bandwidth_input,
    cannot_hold,
    check_ranks,
    compute_bound,
    fullest_stage,
    largest,
    noting,
    pace_input,
    read_said,
)
from kvcalc.keys import TIER_UNITS
from kvcalc.results import PlanResult
from kvcalc.tracing.builtin import refuse
from kvcalc.tracing.current import current
from kvcalc.tracing.expression import FALSE, TRUE, Node, NoValueError, constant
from kvcalc.tracing.joining import join
from kvcalc.tracing.lifting import lifted
from kvcalc.tracing.mirror import Mirror
from kvcalc.tracing.number import node_of, parts_of_text
from kvcalc.tracing.operations import both, either, less, negate
from kvcalc.tracing.paths import condition_of, graph_of, supposing
from kvcalc.tracing.trace import DeadEndError, Limit, Trace

NOT_LIVE: Mapping[str, str] = MappingProxyType(
    {
        "flips": "searched on a grid of values",
        "tornado": "sorted by what they do; the sheet Sensitivity has its own table",
        "offload.split": "searched over all ways to divide a prefix",
        "offload.layer_group": "searched over all numbers of layers",
        "offload.layerwise_total": "searched over all numbers of layers",
        "offload.break_even_tokens": "searched on a grid of lengths",
        "offload.break_even_tokens_most": "searched on a grid of lengths",
        "offload.break_even_tokens_every": "searched on a grid of lengths",
    }
)
"""Figures of a plan that no cell computes, with the reason."""


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
    trace: Trace  # whose graph this is: what asks the nodes anything runs inside of it


@dataclass
class _Run:
    """One trace in progress."""

    inputs: Inputs
    trace: Trace
    books: list[Book] = field(default_factory=list)
    hits: Node = TRUE  # whether a request restores anything
    streaming: list[tuple[Node, tuple[Any, ...]]] = field(default_factory=list)

    def mirror(self) -> Mirror:
        """Return the mirror, with what a graph cannot follow left out by name."""
        mirror = Mirror(
            {
                "kvcalc.formulas._domain": {"refuse": refuse},
                "kvcalc.planning.notebook": {"Notebook": noting(self.books)},
                "kvcalc.planning.plan": {
                    "flips_of": lambda *_: (),
                    "with_splits": lambda speed, rows: rows,
                },
                "kvcalc.planning.uncertainty": {"tornado": lambda gains: ()},
                "kvcalc.planning.offload.prefix": {"_lengths": lambda *_: None},
                "kvcalc.planning.offload.stores": {"cannot_hold": cannot_hold},
                "kvcalc.planning.offload.rows": {"_layerwise": lambda *_: (None, None)},
                "kvcalc.catalog.scenarios": {"read_value": read_said},
            }
        )
        formats = mirror.load("kvcalc.shapes.formats")
        formats.find_format = kv_formats(self.inputs, formats.find_format)
        sizing = mirror.load("kvcalc.engines.sizing")
        sizing.fullest_stage = fullest_stage(sizing.fullest_stage)
        checks = mirror.load("kvcalc.engines.checks")
        checks.check_ranks = check_ranks(checks._divides)
        mirror.load("kvcalc.engines.llamacpp").LlamaCppLayout._largest = largest
        gains = mirror.load("kvcalc.planning.gains")
        gains.pace_input = pace_input(gains)
        gains.bandwidth_input = bandwidth_input(gains)
        plan = mirror.load("kvcalc.planning.plan")
        cached_tokens = mirror.load("kvcalc.planning.offload.prefix").cached_tokens
        plan.offload_rows = self._offload(plan.offload_rows, cached_tokens)
        plan.eviction_of = self._by_hits(plan.eviction_of, 2)
        plan._fleet = self._by_hits(plan._fleet, 2)
        plan.judged_plan = self._judged(plan.judged_plan)
        decode = mirror.load("kvcalc.planning.decode").DecodeModel
        decode.compute_bound = compute_bound(decode.compute_bound)
        scenarios = mirror.load("kvcalc.catalog.scenarios")
        scenarios.tier_of = self._tier(scenarios.tier_of)
        return mirror

    def _tier(self, own: Callable[..., Any]) -> Callable[..., Any]:
        """Read a tier, and trace its numbers."""

        def tier_of(name: str, said: Mapping[str, Said]) -> Any:
            made = own(name, said)
            live = [key for key in said if key in TIER_UNITS and key != "shared_by"]
            return replace(made, **{key: self.inputs.tier(name, key, getattr(made, key)) for key in live})

        return tier_of

    def _offload(self, own: Callable[..., Any], cached_tokens: Callable[..., Any]) -> Callable[..., Any]:
        """Answer the tiers twice: for what is restored, and for what streams where the load does not fit."""

        def offload_rows(scenario: Any, speed: Any, capacity: Any, decode: Any, book: Any) -> Any:
            short = less(constant(0), node_of(capacity.shortfall))
            self.hits = less(constant(0), node_of(cached_tokens(scenario, speed, Book())))

            def rows() -> Any:
                return own(scenario, speed, capacity, decode, book)

            stored = supposing(both(self.hits, negate(short)), rows)
            more = supposing(both(self.hits, short), rows)
            self.streaming = [(short, tuple(row for row in more if row.mode != "prefix_store"))]
            return tuple(row for row in stored if row.mode == "prefix_store")

        return offload_rows

    def _by_hits(self, own: Callable[..., Any], place: int) -> Callable[..., Any]:
        """Answer what depends on the rows twice: with them, and where nothing is restored."""

        def answered(*args: Any) -> Any:
            without = (*args[:place], (), *args[place + 1 :])
            hit = supposing(self.hits, lambda: own(*args))
            miss = supposing(negate(self.hits), lambda: own(*without))
            return join(self.hits, hit, miss)

        return answered

    def _judged(self, own: Callable[..., Any]) -> Callable[..., Any]:
        """Judge the rows by their ranges, and those that stream apart from them."""

        def judged_plan(
            scenario: Any,
            speed: Any,
            rows: Any,
            capacity: Any,
            decode: Any,
            book: Any,
        ) -> Any:
            for place, (short, streaming) in enumerate(self.streaming):
                judged, _ = supposing(short, partial(own, scenario, speed, streaming, capacity, decode, book))
                self.streaming[place] = short, judged
            return supposing(self.hits, lambda: own(scenario, speed, rows, capacity, decode, book))

        return judged_plan


def trace_plan(question: Question) -> TracedPlan:
    """Return the plan of a question as graphs over its inputs.

    Raises
    ------
    SettingsError
        If the question cannot be answered, or asks for what no graph can say.
    """
    real, _ = plan_calls(question)
    inputs = collected(question)
    run = _Run(inputs, Trace(inputs.values))
    with run.trace.entered():
        return _traced(question, real, run)


def _traced(question: Question, real: PlanResult, run: _Run) -> TracedPlan:
    """Return the plan of a question as a graph of the trace that runs here."""
    inputs, mirror = run.inputs, run.mirror()
    traced, ranges = traced_said(inputs)
    hardware = lifted(mirror, inputs.real.hardware, "", hardware_leaf(inputs))
    model = lifted(mirror, models.load(str(question.model)), "", model_leaf(inputs))
    draft = _draft(question, mirror)
    _order_bands(run)

    def answer() -> Any:
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
        notes=_notes(run.books),
        checks=_checks(run.trace.limits),
        model=str(inputs.real.model.name),
        machine=inputs.real.hardware.name,
        trace=run.trace,
    )


def _followed(answer: Callable[[], Any]) -> Any:
    """Return the answer as a graph, or say in one line that this plan has none.

    The plan itself has been answered before, so that whatever else is raised here is a bug and stays one.
    """
    try:
        return graph_of(answer)
    except DeadEndError as error:
        if os.environ.get("KVCALC_DEBUG"):
            raise
        raise SettingsError(
            f"this plan does not fit a workbook ({_words_of(error)}); `kvcalc plan` answers it"
        ) from None


def _words_of(error: DeadEndError) -> str:
    """Return what an error says, with the numbers of now where it names traced ones."""
    pieces = []
    for piece in parts_of_text(str(error)):
        if isinstance(piece, str):
            pieces.append(piece)
            continue
        node, form = piece
        try:
            value = current().now(node)
        except NoValueError:
            value = None
        pieces.append("some" if value is None else format(value, form.strip()))
    return " ".join("".join(pieces).split())


def _draft(question: Question, mirror: Mirror) -> Any:
    if "draft" not in question.said:
        return None
    return lifted(mirror, models.load(str(question.said["draft"].value)), "", lambda _, value: value)


def _mirrored(scenarios: Any, question: Question) -> Any:
    """Return a question of the mirror's own class."""
    return scenarios.Question(
        question.model, question.hardware, question.said, question.tiers, question.replaced
    )


def _with_ranges(inputs: Inputs, built: Any, ranges: Mapping[str, Any]) -> Any:
    real = inputs.real.ranges

    def ranged(tier: Any) -> Any:
        key = f"tiers.{tier.name}.bandwidth"
        if key not in real:
            return tier
        ends = maybe_range(inputs.found[key], real[key].low, real[key].high)
        return replace(tier, bandwidth_range=ends)

    live = {name: traced_range(inputs, name, item) for name, item in ranges.items()}
    return replace(built, tiers=tuple(map(ranged, built.tiers)), ranges=live)


def _order_bands(run: _Run) -> None:
    """Take for granted that the ends of a share lie around its middle."""
    for name in ("prefill_efficiency", "decode_efficiency", "attention_efficiency"):
        ends = [
            run.inputs.found[key].node
            for end in ("low", "mid", "high")
            if (key := f"{name}.{end}") in run.inputs.found
        ]
        if len(ends) == 3:
            low, middle, high = ends
            for below, above in ((low, middle), (middle, high)):
                run.trace.require(negate(less(above, below)), f"{name}: low, mid and high are in this order")


def _notes(books: Iterable[Book]) -> tuple[Note, ...]:
    found: dict[tuple[str, str], Node] = {}
    for book in books:
        for kind, text, where in book.noted if book.kept else ():
            found[kind, text] = either(found.get((kind, text), FALSE), condition_of(where))
    return tuple(Note(kind, text, where) for (kind, text), where in found.items())


def _checks(limits: Iterable[Limit]) -> tuple[Check, ...]:
    """Return the conditions that the graph rests on, each of them once, wherever they are needed."""
    needed: dict[tuple[Node, bool], Node] = {}
    reasons: dict[tuple[Node, bool], str] = {}
    for limit in limits:
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
