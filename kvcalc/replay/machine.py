"""A question (model, machine, engine, tiers) and a trace -> blocks that the engine holds, and their cost."""

from collections.abc import Mapping
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from kvcalc.api import scenario
from kvcalc.catalog import models
from kvcalc.catalog.scenarios import Question, Said, engine_settings
from kvcalc.engines import lay_out
from kvcalc.errors import SettingsError
from kvcalc.planning.memory import memory_of
from kvcalc.planning.notebook import Notebook
from kvcalc.planning.offload import Route, route_of, tiers_of
from kvcalc.planning.speed import Speed, speed_of
from kvcalc.records import record
from kvcalc.replay.results import ReplayResult
from kvcalc.replay.serving import Service
from kvcalc.replay.sizing import ModelSizing, sized
from kvcalc.replay.trace import Trace
from kvcalc.scenario import Scenario
from kvcalc.wording import said_size

if TYPE_CHECKING:
    from numpy.typing import NDArray

ONE_BY_ONE = (
    "times to the first token are those of each request by itself, by the models of `kvcalc plan`: none "
    "waits for another"
)


@record
class Machine:
    """A model, and a machine where one is named, under the load of a trace."""

    trace: Trace  # in blocks that the engine can hold
    sizing: ModelSizing
    book: Notebook  # warnings, assumptions and sources of all this
    speed: Speed | None = None  # None: no machine was named
    pool: float | None = None  # KV memory of all GPUs of a replica that cached prompts may fill [byte]
    routes: tuple[Route, ...] = ()  # of the tiers, fastest first
    inputs: Mapping[str, Any] = field(default_factory=dict)  # what else was asked of the trace

    def service(self, counted: "NDArray[np.bool_]", trace: Trace) -> Service | None:
        """Return what requests cost that count; `trace` has them in the order of the replay."""
        if self.speed is None:
            return None
        times = trace.time[counted]
        duration = None if not len(times) or np.isnan(times).any() else float(times.max() - times.min())
        routes = {route.tier.name: route for route in self.routes}
        return Service(self.speed, routes, trace.input_tokens[counted], duration or None)


def machine_of(question: Question, trace: Trace, standard: bool = True) -> Machine:
    """Return the model, and the machine where one is named, under the load of a trace.

    Where no tier is named the machine's own are taken if they are asked for (`standard`).

    Raises
    ------
    SettingsError
        If a machine or tiers are named without a model.
    """
    if question.model is None:
        raise SettingsError("--on: needs --model, whose bytes and times it is for")
    book = Notebook()
    if question.hardware is None:
        layout = lay_out(models.load(question.model).shape, engine_settings(question))
        trace, sizing, notes = sized(trace, layout)
        for note in (*layout.notes, *notes, sizing.told(trace.block_tokens)):
            book.assume(note)
        return Machine(trace, sizing, book)
    asked = scenario(under_load(question, trace))
    layout = lay_out(asked.model.shape, asked.settings)
    trace, sizing, notes = sized(trace, layout)
    for note in (*layout.notes, *notes, sizing.told(trace.block_tokens)):
        book.assume(note)
    speed = speed_of(asked, layout, book)
    pool = _cached_pool(asked, speed, sizing, book)
    tiers = tiers_of(asked, book) if asked.tiers or standard else ()
    routes = tuple(route_of(speed, tier, book) for tier in tiers)
    if asked.settings.dp > 1:
        book.warn(
            f"{asked.settings.dp} replicas have a cache each; the replay is of one that sees all requests, "
            "so that it hits more than requests that are spread blindly"
        )
    return Machine(trace, sizing, book, speed, pool, routes)


def with_machine(result: ReplayResult, machine: Machine, question: Question) -> ReplayResult:
    """Return the answer of a replay with what was said and assumed of the model and the machine."""
    book, speed = machine.book, machine.speed
    own = {"model": question.model, "on": question.hardware} if speed is None else speed.scenario.inputs
    tells = () if speed is None else (ONE_BY_ONE,)
    return replace(
        result,
        inputs={**own, **result.inputs, **machine.inputs, "gpus": machine.sizing.gpus},
        sources={**book.sources, **result.sources},
        warnings=tuple(dict.fromkeys((*result.warnings, *book.warnings))),
        assumptions=tuple(dict.fromkeys((*result.assumptions, *book.assumptions, *tells))),
    )


def under_load(question: Question, trace: Trace) -> Question:
    """Return the question with the workload that the trace is, where the user says no other."""
    mean = {"prompt": trace.input_tokens, "generate": trace.output_tokens}
    said = {
        name: Said(max(1, round(float(values.mean()))), f"the trace's mean {name}", numbers=True)
        for name, values in mean.items()
    }
    rate = rate_of(trace)
    if rate is not None:
        said["rate"] = Said(rate, "the trace's rate", numbers=True)
    return replace(question, said={**said, **question.said})


def rate_of(trace: Trace) -> float | None:
    """Return the requests per second of a trace; None without times."""
    if np.isnan(trace.time).any():
        return None
    span = float(trace.time.max() - trace.time.min())
    return trace.requests / span if span else None


def _cached_pool(asked: Scenario, speed: Speed, sizing: ModelSizing, book: Notebook) -> float:
    """Return the bytes of a replica's GPUs that cached prompts may fill: not what is being generated."""
    per_gpu = float(memory_of(asked, speed.layout, book).kv_pool)
    workload, layout = asked.workload, speed.layout
    whole, prompt = float(workload.prompt + workload.generate), float(workload.prompt)
    running = workload.concurrency / asked.settings.dp
    generated = running * float(layout.reserved(whole) - layout.reserved(prompt))
    free = max(0.0, per_gpu - generated)
    book.assume(
        f"the GPUs cache prompts in {said_size(free)} each, {said_size(free * sizing.gpus)} in all: "
        f"the KV pool of {said_size(per_gpu)} without what {running:g} running sequences generate "
        "(--concurrency)"
    )
    return free * sizing.gpus
