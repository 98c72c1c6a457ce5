"""A scenario -> formulas -> one frozen result: the main job.

`answer` is the only place where shapes, engines, machines and formulas meet.
"""

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING

from kvcalc.calibration_results import Calibration
from kvcalc.engines import EngineSettings, Layout, Pool, lay_out
from kvcalc.formulas.capacity import first_limit
from kvcalc.formulas.cost import generation_cost
from kvcalc.offload_results import Fleet, Handover
from kvcalc.planning.bandwidth import bandwidth_of
from kvcalc.planning.decode import decode_of
from kvcalc.planning.eviction import eviction_of
from kvcalc.planning.flips import flips_of
from kvcalc.planning.gains import judged_plan
from kvcalc.planning.memory import capacity_of, memory_of
from kvcalc.planning.notebook import Call, Notebook
from kvcalc.planning.offload import offload_rows, tiers_of
from kvcalc.planning.partial import with_splits
from kvcalc.planning.prefill import prefill_of
from kvcalc.planning.speed import Speed, speed_of
from kvcalc.results import (
    KV,
    ComponentRow,
    Decode,
    HostShare,
    Offload,
    PlanResult,
    PoolRow,
    Prefill,
    Source,
    Views,
)
from kvcalc.scenario import Scenario
from kvcalc.shapes.components import ModelShape

if TYPE_CHECKING:
    from kvcalc.planning.placement import Placement


@dataclass(frozen=True)
class Plan:
    """One scenario being answered; the layout is made once and shared by all parts."""

    scenario: Scenario

    @cached_property
    def layout(self) -> Layout:
        """How the engine holds the model."""
        return lay_out(self.scenario.model.shape, self.scenario.settings)

    @cached_property
    def place(self) -> "Placement | None":
        """What of the model stays in host memory; None where all of it is on the GPUs."""
        if self.scenario.serving.gpu_layers is None:
            return None
        from kvcalc.planning.placement import placed

        return placed(self.scenario)

    @cached_property
    def held(self) -> Layout:
        """How the engine holds what is on the GPUs."""
        if self.place is None:
            return self.layout
        return lay_out(self.place.gpu.model.shape, self.scenario.settings)

    def answer(self) -> tuple[PlanResult, tuple[Call, ...]]:
        """Return the result, and the formulas as they were called."""
        book, scenario, layout, place = Notebook(), self.scenario, self.held, self.place
        tokens = scenario.workload.prompt + scenario.workload.generate
        for note in (*scenario.model.notes, *layout.notes):
            book.warn(note)
        _tell_wide(layout, book)
        quote_sources(scenario, book)
        memory = memory_of(scenario if place is None else place.gpu, layout, book)
        capacity = capacity_of(scenario, layout, memory, book)
        speed = speed_of(scenario, layout, book, place)
        prefill = prefill_of(speed.prefill, book)
        decode = decode_of(speed.decode, book)
        bandwidth = bandwidth_of(speed.decode, book)
        host = None if place is None else _host_share(place, decode, book)
        offload = offload_rows(scenario, speed, capacity, decode, book)
        offload, tornado = judged_plan(scenario, speed, offload, capacity, decode, book)
        offload = with_splits(speed, offload)
        fleet = _fleet(speed, float(capacity.sessions), offload, book)
        transfer = _handover(speed, prefill, book)
        eviction = eviction_of(speed, decode, offload, book)
        result = PlanResult(
            inputs=scenario.inputs,
            sources=book.sources,
            warnings=tuple(book.warnings),
            assumptions=tuple(book.assumptions),
            kv=kv_of(scenario.model.shape, self.layout, tokens),
            memory=memory,
            capacity=capacity,
            bandwidth=bandwidth,
            first_limit=str(
                book.run(
                    first_limit,
                    capacity=float(capacity.utilization),
                    bandwidth=float(bandwidth.utilization),
                )
            ),
            decode=decode,
            prefill=prefill,
            offload=offload,
            eviction=eviction,
            flips=flips_of(scenario, layout, speed, capacity, bandwidth, offload),
            cost_per_million_tokens=_cost(scenario, float(decode.tokens_per_second)),
            host=host,
            tornado=tornado,
            fleet=fleet,
            transfer=transfer,
        )
        return replace(result, calibration=_calibration(scenario, result)), tuple(book.calls)


def _tell_wide(layout: Layout, book: Notebook) -> None:
    """Warn of KV in fp32 that nobody asked for: servers run such checkpoints in 16 bits."""
    if layout.kv_dtype == "fp32" and layout.settings.kv_dtype == "auto":
        book.warn(
            "the checkpoint is in fp32, and so is its KV here; vLLM and SGLang serve such models in 16 bits, "
            "half of this: --kv-dtype bf16"
        )


def _host_share(place: "Placement", decode: Decode, book: Notebook) -> HostShare:
    from kvcalc.planning.placement import host_share

    return host_share(place, float(decode.host_time), book)


def _fleet(speed: Speed, sessions: float, rows: tuple[Offload, ...], book: Notebook) -> Fleet | None:
    if speed.scenario.workload.rate is None or not rows:
        return None
    from kvcalc.planning.fleet import fleet_of

    return fleet_of(speed, sessions, rows, tiers_of(speed.scenario, Notebook()), book)


def _calibration(scenario: Scenario, result: PlanResult) -> Calibration | None:
    if not scenario.hardware.measured_here:
        return None
    from kvcalc.planning.calibrated import calibration_of

    return calibration_of(scenario, result, answer)


def _handover(speed: Speed, prefill: Prefill, book: Notebook) -> Handover | None:
    bandwidth = speed.scenario.overrides.disaggregate
    if bandwidth is None:
        return None
    from kvcalc.planning.disaggregation import handover_of

    return handover_of(speed, prefill.time, bandwidth, book)


def answer(scenario: Scenario) -> PlanResult:
    """Return the plan of a scenario."""
    return Plan(scenario).answer()[0]


def kv_of(shape: ModelShape, layout: Layout, tokens: int) -> KV:
    """Return what one token and one sequence of `tokens` tokens cost under a layout."""
    settings = layout.settings
    # Under DP attention one sequence lies on the ranks of its own group alone.
    ranks = settings.tp * settings.pp // (settings.dp if settings.dp_attention else 1)
    reserved = float(layout.reserved(tokens))
    return KV(
        model=shape.name,
        engine=layout.settings.engine,
        kv_dtype=layout.kv_dtype,
        bytes_per_token=layout.bytes_per_token,
        bytes_per_token_per_gpu=layout.bytes_per_token_per_gpu,
        constant_bytes=layout.constant_bytes,
        tokens=tokens,
        views=Views(float(layout.payload(tokens)), float(layout.serialized(tokens)), reserved * ranks),
        views_per_gpu=Views(
            float(layout.payload(tokens, per_gpu=True)),
            float(layout.serialized(tokens, per_gpu=True)),
            reserved,
        ),
        components=tuple(
            ComponentRow(
                kind=part.kind,
                layers=part.layers,
                bytes_per_token=part.bytes_per_token,
                constant_bytes=part.constant_bytes,
                cap_tokens=part.cap_tokens,
                bytes=float(part.stored_at(tokens)),
            )
            for part in layout.logical
        ),
    )


def pool_of(pool: Pool) -> PoolRow:
    """Return an engine's pool as a part of a result."""
    return PoolRow(**{item.name: getattr(pool, item.name) for item in fields(PoolRow)})


def quote_sources(scenario: Scenario, book: Notebook) -> None:
    """Quote each profile value that a plan uses, and say which of them are assumed."""
    for key, source in scenario.model.sources.items():
        book.source(key, source)
    hardware = scenario.hardware
    used = [f"device.flops.{scenario.model.shape.dtype}", *_USED, *(() if scenario.tiers else _NODE)]
    for key in used:
        found = hardware.provenance.get(key)
        if found is None:
            continue
        named = hardware.sources.get(found.source)
        place = (named.url or named.title) if named else found.source
        book.source(key, Source(found.kind, place, found.as_printed, found.note or ""))
        if found.kind == "assumed" and key not in _SAID_ELSEWHERE:
            book.assume(f"{hardware.name}: {key} {found.as_printed} is assumed, not read from its source")
    if hardware.device.unified:
        book.warn(
            f"{hardware.title} shares its memory with the host: KV, weights and programs compete for it"
        )


_USED = (
    "device.capacity",
    "device.bandwidth",
    "host_to_device.bandwidth",
    "device_to_host.bandwidth",
    "prefill_efficiency",
    "attention_efficiency",
    "decode_efficiency",
)
_NODE = ("instance.accelerators", "instance.dram", "instance.drives", "drive.read_bandwidth")
_SAID_ELSEWHERE = frozenset(
    {
        *("prefill_efficiency", "attention_efficiency", "decode_efficiency"),
        *("device_to_host.bandwidth", "drive.read_bandwidth"),
    }
)


def _cost(scenario: Scenario, tokens_per_second: float) -> float | None:
    price = scenario.overrides.price
    if price is None or tokens_per_second <= 0:
        return None
    return float(generation_cost(tokens_per_second, price, scenario.gpus))


__all__ = ["EngineSettings", "Plan", "answer", "kv_of", "pool_of"]
