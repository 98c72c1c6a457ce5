"""The time that each tier saves, as a function of every input that has a range; arrays of draws too."""

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from types import MappingProxyType
from typing import Protocol

import numpy as np

from kvcalc.formulas.overlap import extra_wait
from kvcalc.formulas.working_set import streaming_step_time
from kvcalc.offload_results import Swing
from kvcalc.planning.notebook import Notebook
from kvcalc.planning.offload import (
    ACTIVE_WORKING_SET,
    BANDWIDTH_SPREAD,
    Route,
    block_tokens,
    cached_tokens,
    computing_time,
    loaded_route,
    moved_bytes,
    plain_route,
    taking_turns,
    tiers_of,
    wait_of,
)
from kvcalc.planning.pace import Pace, Paces
from kvcalc.planning.speed import Speed
from kvcalc.planning.uncertainty import Doubt, Drawn, Gains, judged
from kvcalc.quantity import Bytes, Real, Seconds, Share, Tokens
from kvcalc.records import record
from kvcalc.results import Capacity, Decode, Offload
from kvcalc.scenario import Range, Scenario, TierUse

FIXED_PARTS = ("queue", "setup", "convert", "sync")
"""Parts of a restore that no bandwidth removes, by the key that gives each."""

STEP = "decode.step_time"
"""Key of the time of a decode step, whose range follows from the efficiency of decode."""

_SHARES = {
    "products": "prefill_efficiency",
    "attention": "attention_efficiency",
    "experts": "expert_efficiency",
}  # of a pace, by the key that a reader knows them by; its other parts are times


NO_ROUTES: Mapping[str, Route] = MappingProxyType({})


class Saving(Protocol):
    """What a hit saves before its restore, and the bytes that it moves for that."""

    @property
    def inputs(self) -> Mapping[str, Range]:
        """What it depends on that is uncertain, by key."""

    def __call__(self, drawn: Drawn) -> tuple[Seconds, Bytes]:
        """Return seconds saved and bytes to move."""


def gains_of(
    rows: Sequence[Offload],
    tiers: Mapping[str, TierUse],
    saving: Saving,
    given: Mapping[str, Range],
    window: Seconds | None = None,
    streams: "Streams | None" = None,
    scenario: Scenario | None = None,
    routes: Mapping[str, Route] = NO_ROUTES,
) -> Gains:
    """Return the rows of an answer with their gains.

    `streams` says what the rows that stream depend on, `scenario` the rate at which restores queue, and
    `routes` how the bytes of each tier reach a GPU; without one, at the tier's own rate.
    """
    parts = [
        Streaming(row, tiers[row.tier], streams, given, routes.get(row.tier))
        if row.mode == ACTIVE_WORKING_SET and streams is not None
        else Restoring(row, tiers[row.tier], given, window, scenario, routes.get(row.tier))
        for row in rows
    ]

    middle = saving({})

    def of(drawn: Drawn) -> list[Seconds]:
        saved = saving(drawn)  # the same for every tier
        return [
            part.gain(drawn) if isinstance(part, Streaming) else part.gain(drawn, saved, middle)
            for part in parts
        ]

    inputs = tuple(
        part.inputs if isinstance(part, Streaming) else {**saving.inputs, **part.inputs} for part in parts
    )
    return Gains(tuple(rows), inputs, of)


@record
class Restoring:
    """One tier as a prefix store, around the row that was computed with every input at its middle."""

    row: Offload
    tier: TierUse
    given: Mapping[str, Range]
    window: Seconds | None
    scenario: Scenario | None = None
    route: Route | None = None

    @property
    def inputs(self) -> dict[str, Range]:
        """The ranges of the tier, and of the parts of a restore."""
        own = {f"tiers.{self.tier.name}.{name}" for name in ("setup", "iops", "io_size")}
        if "setup" in self.given:  # said for all tiers
            own.discard(f"tiers.{self.tier.name}.setup")
        known = {key: item for key, item in self.given.items() if key in {*own, *FIXED_PARTS, "window"}}
        # What arrives of a stated bandwidth is uncertain even where the statement is not; bare numbers are
        # taken as they are.
        stated = bandwidth_input(self.tier, uncertain=self.scenario is not None)
        return stated | _distributed(self.tier, self.given) | known

    def gain(self, drawn: Drawn, saved: tuple[Seconds, Bytes], middle: tuple[Seconds, Bytes]) -> Seconds:
        """Return the row's own gain, moved by what the inputs move."""
        total = self.row.cached_total if self.row.overlapped_total is None else self.row.overlapped_total
        point = self.row.recompute - total
        if not np.isfinite(point):
            # What never ends in the middle may end where a link is faster: no row to move, only its parts.
            fixed = self.row.setup + self.row.convert + self.row.sync
            return self._modelled(drawn, saved, middle[1]) - fixed
        return point + self._modelled(drawn, saved, middle[1]) - self._modelled({}, middle, middle[1])

    def _modelled(self, drawn: Drawn, saved: tuple[Seconds, Bytes], middle: Bytes) -> Seconds:
        time, size = saved
        # The row may move other bytes than the model (given, or rounded): only their ratio counts.
        faster = _faster(self.row, self.tier, self.route, drawn)
        transfer = self.row.transfer * (size / middle if np.any(middle) else 1.0) / faster
        fixed = sum(
            drawn[key] - self.given[key].middle
            for key in drawn
            if key in self.inputs and (key in FIXED_PARTS or key.endswith(".setup"))
        )
        queue = 0.0 if self.scenario is None else wait_of(self.scenario, transfer).mean
        cost = extra_wait(transfer, self._hidden(drawn)) + queue + fixed
        return np.where(np.asarray(size) > 0, time - cost, 0.0)[()]

    def _hidden(self, drawn: Drawn) -> Seconds:
        """Return the part of a transfer that hides behind other work, as far as the row knows one."""
        if "window" in drawn:
            return drawn["window"]
        if self.window is not None:
            return self.window
        return 0.0 if self.row.extra_wait is None else self.row.transfer - self.row.extra_wait


def _faster(row: Offload, tier: TierUse, route: Route | None, drawn: Drawn) -> Share:
    """Return the rate at which a row's bytes arrive as drawn, over that in the middle.

    A stated range is that of the tier, behind which a mechanism's limit, the cost of each piece and other
    hops stay as they are.  Where only a bandwidth is stated, what arrives of it is uncertain as a whole.
    """
    now = {name: drawn.get(f"tiers.{tier.name}.{name}") for name in ("bandwidth", "iops", "io_size")}
    changed = {name: np.maximum(item, 1.0) for name, item in now.items() if item is not None}
    if not changed:
        return 1.0
    if tier.bandwidth_range is None and set(changed) == {"bandwidth"}:
        return changed["bandwidth"] / tier.bandwidth
    path = route or plain_route(replace(tier, mechanism=None))
    return path.at(**changed).bandwidth(row.bytes) / path.bandwidth(row.bytes)


def bandwidth_input(tier: TierUse, uncertain: bool) -> dict[str, Range]:
    """Return the range of a tier's bandwidth by its key; `uncertain` gives it one where it has none."""
    if tier.bandwidth_range is not None:
        low, high = tier.bandwidth_range
    elif uncertain:
        low, high = tier.bandwidth / (1 + BANDWIDTH_SPREAD), tier.bandwidth * (1 + BANDWIDTH_SPREAD)
    else:
        return {}
    return {f"tiers.{tier.name}.bandwidth": Range(low, tier.bandwidth, high)}


def _distributed(tier: TierUse, given: Mapping[str, Range]) -> dict[str, Range]:
    """Return the distribution of a tier's bandwidth by its key, where one was given: more than its range."""
    key = f"tiers.{tier.name}.bandwidth"
    return {key: given[key]} if key in given and given[key].spread else {}


@record
class Streams:
    """What a working set that is streamed in every decode step depends on."""

    decode: Decode
    turns: float  # decode steps in which every sequence gets its turn, where it does not stream


@record
class Streaming:
    """One tier that is streamed from in every decode step, against sequences that take turns."""

    row: Offload
    tier: TierUse
    streams: Streams
    given: Mapping[str, Range]
    route: Route | None = None

    @property
    def inputs(self) -> dict[str, Range]:
        """The tier's bandwidth, and the step with everything resident."""
        low, high = map(float, self.streams.decode.range)
        step = {STEP: Range(low, float(self.streams.decode.step_time), high)} if low < high else {}
        return bandwidth_input(self.tier, uncertain=True) | _distributed(self.tier, self.given) | step

    def gain(self, drawn: Drawn) -> Seconds:
        """Return the time of all turns less the time of a step that streams."""
        step = drawn.get(STEP, self.streams.decode.step_time)
        bandwidth = self.row.bandwidth * _faster(self.row, self.tier, self.route, drawn)
        return step * self.streams.turns - streaming_step_time(step, self.row.bytes, bandwidth)


@record
class GivenSaving:
    """A hit in bare numbers: bytes, the full prefill and what remains of it."""

    size: float
    prefill: float
    remaining: float
    given: Mapping[str, Range]

    @property
    def inputs(self) -> dict[str, Range]:
        """Those of the three that were given as a range."""
        return {key: self.given[key] for key in ("bytes", "prefill", "remaining") if key in self.given}

    def __call__(self, drawn: Drawn) -> tuple[Seconds, Bytes]:
        """Return seconds saved and bytes to move."""
        full = drawn.get("prefill", self.prefill)
        return full - drawn.get("remaining", self.remaining), drawn.get("bytes", self.size)


@record
class ModelledSaving:
    """A hit on a model and a machine: prefill by the model, its efficiency and the lengths uncertain."""

    speed: Speed
    size: float | None = None  # given instead of the model's
    remaining: float | None = None  # given instead of the model's

    @property
    def inputs(self) -> dict[str, Range]:
        """The pace of the prefill, and what was given as a range."""
        names = ("prefill", "prefill_rate", "prompt", "cached", "hit", "bytes", "remaining")
        known = {key: item for key, item in self.speed.scenario.ranges.items() if key in names}
        return pace_input(self.speed.prefill.paces) | known

    def __call__(self, drawn: Drawn) -> tuple[Seconds, Bytes]:
        """Return seconds saved and bytes to move."""
        pace = drawn_pace(self.speed.prefill.paces, drawn)
        prompt, cached = self._lengths(drawn)
        level = self._level(drawn)
        full = computing_time(self.speed, prompt, 0.0, pace) * level
        left = drawn.get("remaining", self.remaining)
        if left is None:
            left = computing_time(self.speed, prompt - cached, cached, pace) * level
        size = drawn.get("bytes", self.size)
        if size is None:
            size = moved_bytes(self.speed.layout, cached)
        return full - left, size

    def _level(self, drawn: Drawn) -> Share:
        """Return a prefill's time as drawn over that in the middle, where the user gave one."""
        ranges = self.speed.scenario.ranges
        if "prefill" in drawn:
            return drawn["prefill"] / ranges["prefill"].middle
        if "prefill_rate" in drawn:
            return ranges["prefill_rate"].middle / drawn["prefill_rate"]
        return 1.0

    def _lengths(self, drawn: Drawn) -> tuple[Tokens, Tokens]:
        scenario = self.speed.scenario
        workload = scenario.workload
        if not {"prompt", "cached", "hit"} & set(drawn):
            return float(workload.prompt), float(cached_tokens(scenario, self.speed, Notebook()))
        prompt = np.floor(drawn.get("prompt", float(workload.prompt)))
        wanted = drawn.get("cached")
        if wanted is None:
            share = 1.0 if workload.cached is None else workload.cached / workload.prompt
            fixed = "cached" in scenario.given and "hit" not in scenario.ranges
            wanted = float(workload.cached or 0) if fixed else np.floor(drawn.get("hit", share) * prompt)
        block = block_tokens(self.speed)
        return prompt, np.maximum(np.minimum(wanted, prompt - 1), 0.0) // block * block


def pace_input(paces: Paces) -> dict[str, Range]:
    """Return the range of the share that leads the others, since they are uncertain together."""
    for item in fields(Pace):
        low, middle, high = _ends(paces, item.name)
        if low != high:
            return {_pace_key(item.name): Range(low, middle, high, 1.0 if item.name in _SHARES else np.inf)}
    return {}


def _ends(paces: Paces, name: str) -> tuple[float, float, float]:
    low, middle, high = (getattr(pace, name) for pace in (paces.slow, paces.middle, paces.fast))
    return low, middle, high


def _pace_key(name: str) -> str:
    return _SHARES.get(name, f"prefill.{name}")


def drawn_pace(paces: Paces, drawn: Drawn) -> Pace:
    """Return the pace at the drawn value of its leading share: the others move along, in proportion."""
    leading = pace_input(paces)
    if not leading.keys() & drawn.keys():
        return paces.middle
    ((key, item),) = leading.items()
    below, above = item.middle - item.low, item.high - item.middle
    off = np.asarray(drawn[key]) - item.middle
    # From -1 at the slow end to 1 at the fast one, and beyond.
    along = np.where(off < 0, off / (below or 1.0), off / (above or 1.0))
    found = {
        part.name: drawn[key] if _pace_key(part.name) == key else _moved(*_ends(paces, part.name), along)
        for part in fields(Pace)
    }
    capped = {name: np.minimum(value, 1.0) if name in _SHARES else value for name, value in found.items()}
    return replace(paces.middle, **capped)


def _moved(slow: float, middle: float, fast: float, along: Real) -> Real:
    """Return a positive share between its ends, and beyond them by the same factors."""
    if slow == middle == fast:
        return middle
    down, up = slow / middle if middle else 1.0, fast / middle if middle else 1.0
    return (middle * np.where(along < 0, down ** -np.minimum(along, 0), up ** np.maximum(along, 0)))[()]


def judged_plan(
    scenario: Scenario,
    speed: Speed,
    rows: tuple[Offload, ...],
    capacity: Capacity,
    decode: Decode,
    book: Notebook,
) -> tuple[tuple[Offload, ...], tuple[Swing, ...]]:
    """Return a plan's rows as their ranges judge them, and its inputs by their influence."""
    if not rows:
        return (), ()
    tiers = {tier.name: tier for tier in tiers_of(scenario, Notebook())}
    cached = cached_tokens(scenario, speed, Notebook())
    resident = float(capacity.sessions)
    # In steps of all sequences: a step of those that fit reads less and is shorter.
    shorter = speed.decode.step_of(max(resident, 1.0)) / decode.step_time
    turns = float(taking_turns(shorter, scenario.workload.concurrency, resident))
    gains = gains_of(
        rows,
        tiers,
        ModelledSaving(speed),
        scenario.ranges,
        scenario.overrides.window,
        Streams(decode, turns),
        scenario,
        {name: loaded_route(speed, tier, cached, Notebook()) for name, tier in tiers.items()},
    )
    for key, item in scenario.ranges.items():
        if key not in gains.all_inputs:
            book.assume(f"the range of {key} enters no verdict on offload; it is planned at {item.middle:g}")
    rows, swings = judged(gains, Doubt(scenario.ranges, scenario.draws, scenario.seed))
    return rows, _of_use(swings, rows)


def _of_use(swings: tuple[Swing, ...], rows: tuple[Offload, ...]) -> tuple[Swing, ...]:
    """Return the inputs without those that move only what a tier that adds nothing would save."""
    if not swings:
        return ()
    idle = {(row.tier, row.mode) for row in rows if row.adds_nothing}
    return tuple(swing for swing in swings if (swing.tier, swing.mode) not in idle)
