"""One launch under many loads at once: rows of prompt, generation and concurrency, in arrays.

The model, the machine and the engine are those of one scenario, so its memory is divided once; what
depends on the row runs through the same formulas as a single plan, a chunk of rows at a time.
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from kvcalc.engines import lay_out
from kvcalc.errors import SettingsError
from kvcalc.formulas.capacity import (
    bandwidth_utilization,
    capacity_shortfall,
    capacity_utilization,
    first_limit,
)
from kvcalc.formulas.decode import tokens_per_second
from kvcalc.planning.bandwidth import sustained, target_rate, traffic
from kvcalc.planning.decode import DecodeModel, context_between, say_what_is_assumed
from kvcalc.planning.memory import kv_budget, memory_of
from kvcalc.planning.notebook import Notebook
from kvcalc.planning.placement import placed
from kvcalc.planning.prefill import tell_source
from kvcalc.planning.speed import Speed, speed_of
from kvcalc.results import Memory
from kvcalc.scenario import Scenario

CHUNK = 16_384
"""Rows computed at once [1]: a few arrays of so many numbers stay in a core's cache."""

Numbers = NDArray[np.float64]
Texts = NDArray[np.object_]


@dataclass(frozen=True)
class Loads:
    """The rows: arrays of one length."""

    prompt: Annotated[Numbers, "token"]
    generate: Annotated[Numbers, "token"]
    concurrency: Annotated[Numbers, "1"]

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.prompt)

    def chunks(self) -> Iterator[tuple[slice, "Loads"]]:
        """Yield pieces of at most `CHUNK` rows, with where they stand."""
        for start in range(0, len(self), CHUNK):
            rows = slice(start, start + CHUNK)
            yield rows, self.only(rows)

    def only(self, rows: Any) -> "Loads":  # noqa: ANN401 - anything that indexes an array
        """Return some of the rows."""
        return Loads(self.prompt[rows], self.generate[rows], self.concurrency[rows])

    def reasons(self) -> Texts:
        """Return why a row cannot be answered, empty where it can."""
        reason = np.full(len(self), "", dtype=object)
        for item in fields(Loads):
            values = getattr(self, item.name)
            bad = ~((values >= 1) & (values == np.floor(values)) & np.isfinite(values))
            if bad.any():
                reason[bad] = f"{item.name} must be a whole number of 1 or more"
        return reason


@dataclass(frozen=True)
class BatchResult:
    """The main figures of a plan, a row for each load; a row without an answer is NaN with its reason."""

    kv_need: Annotated[Numbers, "byte"]  # per GPU
    kv_utilization: Annotated[Numbers, "1"]
    kv_shortfall: Annotated[Numbers, "byte"]
    sessions: Annotated[Numbers, "1"]
    bandwidth_utilization: Annotated[Numbers, "1"]
    first_limit: Texts
    prefill_time: Annotated[Numbers, "second"]
    prefill_low: Annotated[Numbers, "second"]
    prefill_high: Annotated[Numbers, "second"]
    step_time: Annotated[Numbers, "second"]
    step_low: Annotated[Numbers, "second"]
    step_high: Annotated[Numbers, "second"]
    tokens_per_second: Annotated[Numbers, "token/second"]
    bound: Texts
    reason: Texts  # why a row has no answer; empty where it has one
    memory: Memory  # of one GPU, the same for all rows
    kv_bytes_per_token: Annotated[float, "byte/token"]  # of a further token, one logical copy
    warnings: tuple[str, ...]
    assumptions: tuple[str, ...]

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.kv_need)

    @property
    def fits(self) -> NDArray[np.bool_]:
        """Whether each load fits the KV memory; False where there is no answer."""
        return self.kv_shortfall <= 0

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return the arrays by name, ready for a data frame."""
        found = {item.name: getattr(self, item.name) for item in fields(self)}
        return {"fits": self.fits} | {k: v for k, v in found.items() if isinstance(v, np.ndarray)}


@dataclass(frozen=True)
class Launch:
    """What all rows share: the memory of one GPU and the speed models."""

    memory: Memory
    speed: Speed
    book: Notebook


def launch_of(scenario: Scenario) -> Launch:
    """Divide the memory of a scenario and make its speed models."""
    book = Notebook()
    layout = lay_out(scenario.model.shape, scenario.settings)
    memory, speed = memory_of(scenario, layout, book), speed_of(scenario, layout, book)
    tell_source(speed.prefill, "prefill_time", book)
    say_what_is_assumed(speed.decode, book)
    return Launch(memory, speed, book)


def batch_of(scenario: Scenario, loads: Loads) -> BatchResult:
    """Answer all loads on one scenario, whose own load does not count.

    Raises
    ------
    SettingsError
        If the scenario leaves layers on the host, which depend on the load.
    """
    if placed(scenario) is not None:
        raise SettingsError("--gpu-layers: plan_batch takes models that are on the GPUs as a whole")
    launch = launch_of(scenario)
    reason = loads.reasons()
    numbers = {name: np.full(len(loads), np.nan) for name in _NUMBERS}
    texts = {name: np.full(len(loads), "", dtype=object) for name in _TEXTS}
    for rows, piece in loads.chunks():
        good = reason[rows] == ""
        whole = bool(good.all())
        answered = _answer(launch, piece if whole else piece.only(good))
        for name, values in answered.items():
            column = numbers[name] if name in numbers else texts[name]
            if whole:
                column[rows] = values
            else:
                column[rows][good] = values
    return BatchResult(
        **numbers,
        **texts,
        reason=reason,
        memory=launch.memory,
        kv_bytes_per_token=launch.speed.layout.bytes_per_token,
        warnings=tuple(launch.book.warnings),
        assumptions=tuple(launch.book.assumptions),
    )


_NUMBERS = (
    *("kv_need", "kv_utilization", "kv_shortfall", "sessions", "bandwidth_utilization"),
    *("prefill_time", "prefill_low", "prefill_high", "step_time", "step_low", "step_high"),
    "tokens_per_second",
)
_TEXTS = ("first_limit", "bound")


def _answer(launch: Launch, loads: Loads) -> dict[str, Any]:
    """Return the columns of a chunk of good rows."""
    speed, memory = launch.speed, launch.memory
    budget = kv_budget(speed.scenario, memory, Notebook())
    return _capacity(speed, budget, loads) | _decode(speed.decode, loads) | _prefill(speed, loads)


def _capacity(speed: Speed, pool: float, loads: Loads) -> dict[str, Any]:
    decode, settings = speed.decode, speed.scenario.settings
    tokens = loads.prompt + loads.generate
    need = speed.layout.occupied(tokens) * np.ceil(loads.concurrency / settings.dp)
    used = capacity_utilization(need, pool) if pool else np.full_like(tokens, np.inf)
    target = target_rate(loads.concurrency, loads.generate, speed.scenario.workload.rate)
    context = context_between(loads.prompt, loads.generate)
    read = bandwidth_utilization(traffic(decode, loads.concurrency, context, target), sustained(decode))
    return {
        "kv_need": need,
        "kv_utilization": used,
        "kv_shortfall": capacity_shortfall(need, pool),
        "sessions": speed.layout.sessions(pool, tokens) * settings.dp,
        "bandwidth_utilization": read,
        "first_limit": first_limit(used, read),
    }


def _decode(model: DecodeModel, loads: Loads) -> dict[str, Any]:
    share, read = model.scenario.hardware.prefill_efficiency, model.scenario.hardware.decode_efficiency
    batch = model.stage_batch(loads.concurrency)
    context = context_between(loads.prompt, loads.generate)
    middle = model.step(batch, context, share.mid, read.mid)
    time = middle.total
    return {
        "step_time": time,
        "step_low": model.step(batch, context, share.high, read.high).total,
        "step_high": model.step(batch, context, share.low, read.low).total,
        "tokens_per_second": tokens_per_second(loads.concurrency * model.gained, time),
        "bound": middle.stage.bound,
    }


def _prefill(speed: Speed, loads: Loads) -> dict[str, Any]:
    given, paces = speed.scenario.overrides.prefill, speed.prefill.paces
    if given is not None:
        return dict.fromkeys(
            ("prefill_time", "prefill_low", "prefill_high"), np.full_like(loads.prompt, given)
        )
    return {
        "prefill_time": speed.prefill.time(loads.prompt),
        "prefill_low": speed.prefill.time(loads.prompt, 0.0, paces.fast),
        "prefill_high": speed.prefill.time(loads.prompt, 0.0, paces.slow),
    }
