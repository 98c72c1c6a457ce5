"""What all rows of a batch share, and the columns of a plan for each of them."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from kvcalc.engines import lay_out
from kvcalc.errors import SettingsError
from kvcalc.planning.batch.eviction import evicting
from kvcalc.planning.batch.loads import Loads, Texts
from kvcalc.planning.batch.restoring import restoring_columns
from kvcalc.planning.batch.serving import Answers, serving
from kvcalc.planning.decode import say_what_is_assumed
from kvcalc.planning.memory import kv_budget, memory_of
from kvcalc.planning.notebook import Notebook
from kvcalc.planning.offload import Route, route_of, tiers_of
from kvcalc.planning.placement import placed
from kvcalc.planning.prefill import tell_source
from kvcalc.planning.speed import Speed, speed_of
from kvcalc.results import Memory
from kvcalc.scenario import Scenario


@dataclass(frozen=True)
class Launch:
    """What all rows share: the memory of one GPU, the speed models and the ways to the tiers."""

    memory: Memory
    speed: Speed
    book: Notebook

    @cached_property
    def budget(self) -> float:
        """Bytes for KV on one GPU."""
        return kv_budget(self.speed.scenario, self.memory, Notebook())

    @cached_property
    def routes(self) -> tuple[Route, ...]:
        """How the bytes of each tier reach one GPU."""
        scenario = self.speed.scenario
        return tuple(route_of(self.speed, tier, self.book) for tier in tiers_of(scenario, self.book))

    @cached_property
    def constants(self) -> dict[str, Any]:
        """The columns that are the same in every row."""
        layout, memory = self.speed.layout, self.memory
        own = ("total", "weights", "activations", "other", "kv_pool", "block_tokens", "num_blocks")
        return {
            "kv.bytes_per_token": layout.bytes_per_token,
            "kv.bytes_per_token_per_gpu": layout.bytes_per_token_per_gpu,
            "kv.constant_bytes": layout.constant_bytes,
            **{f"memory.{name}": getattr(memory, name) for name in own},
        }


def launch_of(scenario: Scenario) -> Launch:
    """Divide the memory of a scenario and make its speed models.

    Raises
    ------
    SettingsError
        If the scenario leaves layers on the host, which depend on the load.
    """
    if placed(scenario) is not None:
        raise SettingsError("--gpu-layers: plan_batch takes models that are on the GPUs as a whole")
    book = Notebook()
    layout = lay_out(scenario.model.shape, scenario.settings)
    memory, speed = memory_of(scenario, layout, book), speed_of(scenario, layout, book)
    tell_source(speed.prefill, "prefill_time", book)
    say_what_is_assumed(speed.decode, book)
    return Launch(memory, speed, book)


def answer_loads(launch: Launch, loads: Loads, offload: bool = True) -> tuple[Answers, Texts]:
    """Return the columns that differ by row, and why a row has no answer.

    Columns have the dotted keys of a plan's JSON; a row without an answer is NaN, and empty in texts.
    """
    reason = loads.reasons()
    found: Answers = {}
    for rows, piece in loads.chunks():
        good = reason[rows] == ""
        whole = bool(good.all())
        if not whole and not good.any():
            continue
        for name, values in _answer(launch, piece if whole else piece.only(good), offload).items():
            column = found.get(name)
            if column is None:
                column = found[name] = _empty(values, len(loads))
            if whole:
                column[rows] = values
            else:
                column[rows][good] = values
    return found, reason


def _empty(like: Any, rows: int) -> Any:  # noqa: ANN401 - an array of numbers or of words
    return np.full(rows, "", dtype=object) if like.dtype == object else np.full(rows, np.nan)


def _answer(launch: Launch, loads: Loads, offload: bool) -> Answers:
    """Return the columns of a chunk of good rows."""
    found = serving(launch.speed, launch.budget, loads)
    if offload:
        scenario, prefill = loads.put_on(launch.speed.scenario), launch.speed.prefill
        if scenario.overrides.prefill is not None:  # given for the prompt of each row
            prefill = replace(prefill, scenario=scenario)
        speed = replace(launch.speed, scenario=scenario, prefill=prefill)
        restored = restoring_columns(speed, launch.routes, loads, found, launch.budget)
        found |= restored | evicting(speed, loads, found, restored)
    return found
