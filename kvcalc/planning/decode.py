"""How fast this model decodes on this machine, and what memory traffic a target throughput needs."""

import math
from dataclasses import dataclass

from kvcalc.engines.layout import Layout
from kvcalc.formulas.capacity import bandwidth_utilization
from kvcalc.formulas.decode import (
    DecodeStep,
    decode_bandwidth_need,
    decode_step_time,
    expert_coverage,
    tokens_per_second,
    weights_read,
)
from kvcalc.planning.notebook import Notebook
from kvcalc.planning.prefill import PrefillModel
from kvcalc.planning.work import attention_work
from kvcalc.results import Bandwidth, Decode
from kvcalc.scenario import Scenario

PACE = 20.0
"""Tokens per second and sequence [token/second] that a plan aims at when no rate is given: faster than
people read, about the slowest that serving targets accept; assumed."""


@dataclass(frozen=True)
class DecodeModel:
    """The decode of one scenario; it shares weights and operation counts with the prefill."""

    prefill: PrefillModel
    layout: Layout

    def step(self, batch: float, context: float, share: float, sustained: float) -> DecodeStep:
        """One decode step of `batch` sequences at `context` tokens on one pipeline stage."""
        device, settings = self.prefill.scenario.hardware.device, self.prefill.scenario.settings
        components = self.prefill.scenario.model.shape.components_for(settings.engine)
        per_token = self.prefill.flop_per_token + float(attention_work(components, 1.0, context))
        if self.prefill.parameters is not None:
            per_token += 2.0 * self.prefill.parameters.lm_head_matmul
        return decode_step_time(
            weights=self.read_weights(batch),
            kv=batch * self.read_kv(context),
            flops=batch * per_token / (settings.tp * settings.pp),
            bandwidth=device.bandwidth,
            peak=device.peak(self.prefill.compute_dtype),
            bandwidth_efficiency=sustained,
            efficiency=share,
        )

    def read_weights(self, batch: float) -> float:
        """Weight bytes that one GPU reads per step: only the experts that the batch visits."""
        parts = (
            []
            if self.prefill.parameters is None
            else [p for p in self.prefill.parameters.parts if p.name == "experts"]
        )
        if self.prefill.parameters is None or not parts:
            return self.prefill.weights
        routed = sum(part.bytes for part in parts) / self.prefill.parameters.bytes * self.prefill.weights
        coverage = expert_coverage(batch, parts[0].copies, parts[0].used)
        return float(weights_read(self.prefill.weights - routed, routed, coverage))

    def read_kv(self, context: float) -> float:
        """KV bytes that one GPU reads per step for one sequence: sparse attention reads its top k only."""
        components = self.prefill.scenario.model.shape.components_for(self.prefill.scenario.settings.engine)
        top = {part.kind: part.attention.top_k for part in components if part.attention}
        total = 0.0
        for part in self.layout.per_gpu:
            entries = float(part.growth.entries(context))
            limit = top.get(part.kind)
            total += part.stored * (entries if limit is None else min(entries, limit))
        return total


def decode_of(model: DecodeModel, book: Notebook) -> Decode:
    """Return one decode step at the planned concurrency, half of the generation done."""
    scenario = model.prefill.scenario
    settings = scenario.settings
    share, sustained = scenario.hardware.prefill_efficiency, scenario.hardware.decode_efficiency
    running = math.ceil(scenario.workload.concurrency / settings.dp)
    batch, context = running / settings.pp, mean_context(scenario)
    middle = model.step(batch, context, share.mid, sustained.mid)
    fast = model.step(batch, context, share.high, sustained.high)
    slow = model.step(batch, context, share.low, sustained.low)
    time = float(middle.total) * settings.pp
    book.assume(
        f"decode reads memory at {sustained.low:.0%} to {sustained.high:.0%} of its nominal rate, "
        f"{sustained.mid:.0%} in the middle, at a mean context of {context:,.0f} tokens"
    )
    rate = book.run(tokens_per_second, batch=float(scenario.workload.concurrency), step=time)
    return Decode(
        step_time=time,
        tokens_per_second=float(rate),
        bound=str(middle.bound),
        range=(float(fast.total) * settings.pp, float(slow.total) * settings.pp),
    )


def bandwidth_of(model: DecodeModel, book: Notebook) -> Bandwidth:
    """Return the memory traffic that the target throughput needs, per GPU, against what it sustains."""
    scenario = model.prefill.scenario
    settings, workload = scenario.settings, scenario.workload
    if workload.rate is not None:
        target = workload.rate * workload.generate
    else:
        target = workload.concurrency * PACE
        book.assume(f"target throughput: {PACE:g} token/s for each sequence, since no --rate is given")
    running = float(math.ceil(workload.concurrency / settings.dp))
    need = book.run(
        decode_bandwidth_need,
        weights=model.read_weights(running),
        kv=running * model.read_kv(mean_context(scenario)),
        rate=target / settings.dp,
        batch=running,
    )
    budget = scenario.hardware.device.bandwidth * scenario.hardware.decode_efficiency.mid
    return Bandwidth(
        need=float(need),
        budget=budget,
        utilization=float(book.run(bandwidth_utilization, need=float(need), bandwidth=budget)),
        target_tokens_per_second=target,
    )


def mean_context(scenario: Scenario) -> float:
    """Return the tokens that a sequence holds on average while it decodes."""
    return scenario.workload.prompt + scenario.workload.generate / 2
