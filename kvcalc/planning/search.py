"""Which ways to divide a model over GPUs meet a target: enumerated, judged and ranked.

A division that differs from another in its replicas alone has the same layout and the same speed
models, so these are made once for each replica, and all counts of replicas are judged in one go.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kvcalc.engines import lay_out
from kvcalc.engines.checks import EXPERT_RANKS
from kvcalc.engines.layout import Layout
from kvcalc.errors import SettingsError
from kvcalc.fit_results import FitResult, FitRow
from kvcalc.formulas.capacity import capacity_shortfall, sequences_of_replica
from kvcalc.formulas.cost import generation_cost
from kvcalc.formulas.decode import tokens_per_second
from kvcalc.formulas.queueing import link_utilization
from kvcalc.planning.memory import memory_of
from kvcalc.planning.notebook import Notebook
from kvcalc.planning.speed import speed_of
from kvcalc.results import Memory
from kvcalc.scenario import Scenario
from kvcalc.wording import part_text

NODE = 8
"""GPUs of a machine whose profile does not say [1]: what accelerator servers of all vendors hold; assumed."""


@dataclass(frozen=True)
class Target:
    """What a division must reach, besides room for the scenario's sequences, and how far to look."""

    pace: float | None = None  # token/second of each sequence
    max_gpus: int = 64
    fixed: Mapping[str, int] = field(default_factory=dict)  # gpus, tp, pp, dp or ep that the user said

    @property
    def inputs(self) -> dict[str, Any]:
        """What was asked, as a result repeats it; a division that was not said is null."""
        said = {name: self.fixed.get(name) for name in ("gpus", "tp", "pp", "dp", "ep")}
        return {**said, "max_gpus": self.max_gpus, "target_rate": self.pace}

    def choices(self, name: str, most: int) -> range:
        """Return the values to try: from one to `most`, or the one that the user said."""
        said = self.fixed.get(name)
        return range(1, most + 1) if said is None else range(said, said + 1)


@dataclass(frozen=True)
class Split:
    """One way to divide a model."""

    tp: int
    pp: int
    dp: int
    ep: int

    @property
    def gpus(self) -> int:
        """How many GPUs it takes."""
        return self.tp * self.pp * self.dp


def node_size(scenario: Scenario, book: Notebook) -> int:
    """Return the GPUs of one machine: the instance's, one where CPU and GPU share a memory, else `NODE`."""
    hardware = scenario.hardware
    if hardware.node is not None:
        return hardware.node.instance.gpus
    if hardware.device.unified:
        return 1
    book.assume(f"a machine holds {NODE} GPUs; an instance as --on says how many it has")
    return NODE


def search(scenario: Scenario, target: Target) -> FitResult:
    """Return every division of up to `max_gpus` GPUs, those that meet the target first and ranked.

    Parameters
    ----------
    scenario : model, machine, engine and load; its own division counts for nothing
    target : what to reach and how far to look
    """
    book = Notebook()
    node = node_size(scenario, book)
    if node > 1:
        book.assume(f"ranks that share a layer stay inside one machine: --tp is at most {node}")
    book.assume("traffic between pipeline stages, experts and machines is not counted")
    book.assume("prefill and decode take the middle of their efficiencies")
    if target.max_gpus > node > 1 and "gpus" not in target.fixed:
        book.assume(f"beyond {node} GPUs only whole machines are tried; --gpus asks for another number")
    rows = [row for replicas in _groups(scenario, target, node) for row in replicas]
    # A refused --tp is an answer; that nothing is left of the other choices is a question put wrongly.
    if "tp" not in target.fixed and all(row.kv_pool is None for row in rows):
        said = ", ".join(f"{name} {value}" for name, value in target.fixed.items())
        raise SettingsError(f"--fit: no division of up to {target.max_gpus} GPUs has {said}")
    good = sorted((row for row in rows if row.fits), key=_rank)
    # Of those that fail, the ones that run come first, and among them those that lack least.
    bad = sorted((row for row in rows if not row.fits), key=_distance)
    return FitResult(
        inputs={**scenario.inputs, **target.inputs},
        sources=book.sources,
        warnings=tuple(scenario.model.notes),
        assumptions=tuple(book.assumptions),
        model=scenario.model.name,
        hardware=scenario.hardware.name,
        node=node,
        max_gpus=target.max_gpus,
        target_pace=target.pace,
        target_requests=scenario.workload.rate,
        best=good[0] if good else None,
        rows=(*good, *bad),
    )


def _rank(row: FitRow) -> tuple[float, ...]:
    return float(row.gpus), -float(row.tokens_per_second or 0), float(row.ep), float(row.pp)


def _distance(row: FitRow) -> tuple[float, ...]:
    """Return how far a division is from the target: by speed, by KV, by weights, or not to be run at all."""
    stage = 2.0 if row.kv_pool is None else float(row.kv_pool == 0)
    lacking = row.weights if row.kv_pool == 0 else row.shortfall
    return float(row.gpus), stage, float(lacking or 0), -float(row.tokens_per_second or 0), float(row.tp)


def _groups(scenario: Scenario, target: Target, node: int) -> Iterator[Iterable[FitRow]]:
    """Yield the rows of each replica, over all counts of replicas."""
    for tp in target.choices("tp", min(target.max_gpus, node)):
        problem = _no_tensor_parallelism(scenario, tp, node)
        if problem:
            yield [_refused(Split(tp, 1, 1, 1), problem)]
            continue
        for pp in target.choices("pp", min(target.max_gpus // tp, scenario.model.shape.layers)):
            replica = _Replica(scenario, tp, pp)
            for ep, counts in _replicas(scenario, target, tp, pp, node).items():
                yield replica.judge(ep, counts, target)


def _no_tensor_parallelism(scenario: Scenario, tp: int, node: int) -> str:
    """Return why no replica can share a layer between `tp` ranks, or nothing."""
    if tp > node:
        return f"TP {tp} would span machines of {node} GPU{'s' if node > 1 else ''}"
    try:
        lay_out(scenario.model.shape, replace(scenario.settings, tp=tp, pp=1, dp=1, ep=1))
    except SettingsError as error:
        return str(error).removeprefix("--tp: ").split(";")[0]
    return ""


def _replicas(scenario: Scenario, target: Target, tp: int, pp: int, node: int) -> dict[int, list[int]]:
    """Return the counts of replicas to try, by the ranks that share the experts.

    Replicas beyond the sequences would idle.
    """
    most = min(target.max_gpus // (tp * pp), scenario.workload.concurrency)
    found: dict[int, list[int]] = {}
    for dp in target.choices("dp", most):
        gpus = tp * pp * dp
        if gpus > target.max_gpus or not _is_built(tp, gpus, node, target.fixed.get("gpus")):
            continue
        for ep in sorted(_expert_ranks(scenario, tp, pp, dp)):
            if ep in target.choices("ep", ep):
                found.setdefault(ep, []).append(dp)
    return found


def _is_built(tp: int, gpus: int, node: int, said: int | None) -> bool:
    """Tell whether machines make so many GPUs, and each layer's ranks stay inside one of them."""
    if said is not None:
        return gpus == said and (gpus <= node or node % tp == 0)
    return gpus <= node or (gpus % node == 0 and node % tp == 0)


def _expert_ranks(scenario: Scenario, tp: int, pp: int, dp: int) -> set[int]:
    """Return how many ranks may share the experts of a layer: one cuts them like other matrices."""
    parameters = scenario.model.parameters
    parts = [] if parameters is None else parameters.parts
    experts = max((part.copies for part in parts if part.name == "experts"), default=0)
    ways = EXPERT_RANKS.get(scenario.settings.engine, ())
    ranks = {1}
    if "replica" in ways:
        ranks.add(tp)
    if "all" in ways and (pp == 1 or dp == 1):
        ranks.add(tp * dp)
    return {ep for ep in ranks if ep <= max(1, experts)}


def _refused(split: Split, reason: str) -> FitRow:
    return FitRow(
        gpus=split.gpus,
        tp=split.tp,
        pp=split.pp,
        dp=split.dp,
        ep=split.ep,
        fits=False,
        sessions=None,
        tokens_per_second=None,
        pace=None,
        prefill=None,
        busy=None,
        weights=None,
        kv_pool=None,
        shortfall=None,
        cost_per_million_tokens=None,
        reason=reason,
    )


@dataclass(frozen=True)
class _Replica:
    """One replica of the model; what its divisions have in common."""

    scenario: Scenario
    tp: int
    pp: int

    @cached_property
    def layout(self) -> Layout:
        """How the engine holds the replica; experts and other replicas do not change it."""
        return lay_out(self.scenario.model.shape, self._divided(1, 1).settings)

    @cached_property
    def session(self) -> float:
        """Bytes that one sequence reserves on each GPU."""
        return float(self.layout.occupied(self._tokens))

    @property
    def _tokens(self) -> int:
        return self.scenario.workload.prompt + self.scenario.workload.generate

    def _divided(self, ep: int, dp: int) -> Scenario:
        settings = replace(self.scenario.settings, tp=self.tp, pp=self.pp, dp=dp, ep=ep)
        return replace(self.scenario, settings=settings, gpus=self.tp * self.pp * dp)

    def judge(self, ep: int, counts: list[int], target: Target) -> list[FitRow]:
        """Return one row for each count of replicas."""
        # Experts that are spread receive the tokens of all replicas, which takes memory for activations.
        held = [self._memory(ep, dp) for dp in (counts if ep > 1 else counts[:1])]
        memories = held if ep > 1 else held * len(counts)
        replicas = np.array(counts, dtype=float)
        running = np.asarray(sequences_of_replica(self.scenario.workload.concurrency, replicas))
        pools = np.array([float(memory.kv_pool) for memory in memories])
        short = np.asarray(capacity_shortfall(self.session * running, pools))
        room = (short <= 0) & (pools > 0)
        speeds = self._speeds(ep, running, replicas) if room.any() else None
        rows = []
        for i, dp in enumerate(counts):
            row = self._held(Split(self.tp, self.pp, dp, ep), memories[i], float(short[i]))
            if speeds is not None and room[i]:
                row = self._timed(row, *(float(found[i]) for found in speeds))
            rows.append(self._judged(row, float(memories[i].total), target))
        return rows

    def _memory(self, ep: int, dp: int) -> Memory:
        return memory_of(self._divided(ep, dp), self.layout, Notebook())

    def _speeds(
        self, ep: int, running: NDArray[np.float64], replicas: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], ...]:
        """Return time and gain of a decode step, time of a prefill and busy share by counts of replicas."""
        speed = speed_of(self._divided(ep, 1), self.layout, Notebook())
        workload, hardware = self.scenario.workload, self.scenario.hardware
        shares = hardware.prefill_efficiency.mid, hardware.decode_efficiency.mid
        context = workload.prompt + workload.generate / 2  # on average while it decodes
        step = speed.decode.step(running / self.pp, context, *shares).total
        prefill, gained = float(speed.prefill.time(float(workload.prompt))), speed.decode.gained
        busy: Any = np.nan
        if workload.rate is not None:
            # A request holds its replica for a turn of prefill and for its share of the decode steps.
            decode = workload.generate / tokens_per_second(running * gained, step)
            busy = link_utilization(workload.rate, prefill / self.pp + decode, replicas)
        return tuple(np.broadcast_to(found, replicas.shape) for found in (step, gained, prefill, busy))

    def _held(self, split: Split, memory: Memory, short: float) -> FitRow:
        """Return a row with what the memory says."""
        pool = float(memory.kv_pool)
        return replace(
            _refused(split, ""),
            sessions=int(self.layout.sessions(pool, self._tokens)) * split.dp,
            weights=float(memory.weights),
            kv_pool=pool,
            shortfall=short,
        )

    def _timed(self, row: FitRow, step: float, gained: float, prefill: float, busy: float) -> FitRow:
        """Return a row with what the speed models say."""
        price = self.scenario.overrides.price
        rate = float(tokens_per_second(self.scenario.workload.concurrency * gained, step))
        return replace(
            row,
            tokens_per_second=rate,
            pace=float(tokens_per_second(gained, step)),
            prefill=prefill,
            busy=None if np.isnan(busy) else busy,
            cost_per_million_tokens=None if price is None else float(generation_cost(rate, price, row.gpus)),
        )

    def _judged(self, row: FitRow, total: float, target: Target) -> FitRow:
        reason = self._reason(row, total, target)
        return replace(row, fits=not reason, reason=reason)

    def _reason(self, row: FitRow, total: float, target: Target) -> str:
        """Return why a division misses the target, or nothing."""
        workload, weights, short = self.scenario.workload, float(row.weights or 0), float(row.shortfall or 0)
        if not row.kv_pool:
            return (
                f"weights do not fit: {part_text(weights)} of them on a GPU of {part_text(total)} leave "
                "nothing for KV"
            )
        if short > 0:
            return (
                f"KV is {part_text(short)} short on each GPU: room for {row.sessions:,} of "
                f"{workload.concurrency:,} sequences"
            )
        pace, busy = float(row.pace or 0), float(row.busy or 0)
        if target.pace is not None and pace < target.pace:
            return f"too slow: {pace:.1f} token/s for each sequence, {target.pace:g} asked"
        if workload.rate is not None and busy > 1:
            return f"too slow: {workload.rate / busy:.2f} requests/s at most, {workload.rate:g} asked"
        return ""
