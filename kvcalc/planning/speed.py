"""How fast this model prefills and decodes on this machine, as a middle value with a range."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

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
from kvcalc.formulas.prefill import dense_flop_per_token, prefill_flops, prefill_time
from kvcalc.parameters import Parameters
from kvcalc.planning.notebook import Notebook
from kvcalc.planning.work import attention_work
from kvcalc.profiles import Band
from kvcalc.quantity import Flop, Seconds, Tokens
from kvcalc.results import Bandwidth, Decode, Prefill, Source
from kvcalc.scenario import Scenario

FIXED_PREFILL = 0.010
"""Scheduling, launches and sampling of one prefill [second]; the low end of the 10 to 30 ms that
published short-prompt times show (https://vllm.ai/blog/2026-06-01-vllm-dgx-spark and similar); assumed."""

PACE = 20.0
"""Tokens per second and sequence [token/second] that a plan aims at when no rate is given: faster than
people read, about the slowest that serving targets accept; assumed."""

EXACT = Band(1.0, 1.0, 1.0)


@dataclass(frozen=True)
class Speed:
    """The prefill and decode model of one scenario; times are of one replica."""

    scenario: Scenario
    layout: Layout
    parameters: Parameters | None
    weights: float  # bytes on the GPU that holds most

    @cached_property
    def peak(self) -> float:
        """Dense peak [flop/second] of the ranks that share each layer."""
        return self.scenario.hardware.device.peak(self.compute_dtype) * self.scenario.settings.tp

    @cached_property
    def compute_dtype(self) -> str:
        """The format that matrix products run in: weight-only formats multiply in 16 bits."""
        dtype = self.scenario.model.shape.dtype
        wide = "fp16" if dtype == "fp16" else "bf16"
        if self.parameters is None:
            return wide
        sizes = self.parameters.by_dtype
        most = max(sizes, key=lambda name: sizes[name])
        if most.startswith(("fp8", "mxfp8")):
            return "fp8"
        if most.startswith("nvfp4") and "fp4" in self.scenario.hardware.device.flops:
            return "fp4"
        return wide

    @cached_property
    def efficiency(self) -> Band:
        """Share of the peak that prefill reaches; exact when the user gave a time."""
        return EXACT if self.source != "model" else self.scenario.hardware.prefill_efficiency

    @cached_property
    def source(self) -> str:
        """Where prefill times are from: given, rate or model."""
        overrides = self.scenario.overrides
        if overrides.prefill is not None:
            return "given"
        return "rate" if overrides.prefill_rate is not None else "model"

    @cached_property
    def flop_per_token(self) -> float:
        """Operations of the weights per token."""
        return 0.0 if self.parameters is None else float(dense_flop_per_token(self.parameters.matmul_active))

    def flops(self, new: Tokens, cached: Tokens = 0.0) -> Flop:
        """Operations of prefilling `new` tokens on `cached` ones, output head for the last one."""
        components = self.scenario.model.shape.components_for(self.scenario.settings.engine)
        head = 0.0 if self.parameters is None else 2.0 * self.parameters.lm_head_matmul
        return prefill_flops(new, self.flop_per_token, attention_work(components, new, cached)) + head

    def prefill(self, new: Tokens, cached: Tokens = 0.0, efficiency: float | None = None) -> Seconds:
        """Time of prefilling `new` tokens on `cached` ones; scalars and arrays alike."""
        overrides, prompt = self.scenario.overrides, self.scenario.workload.prompt
        if overrides.prefill_rate is not None:
            return new / overrides.prefill_rate
        if overrides.prefill is not None and self.parameters is None:
            return overrides.prefill * new / prompt
        share = self.scenario.hardware.prefill_efficiency.mid if efficiency is None else efficiency
        modelled = self._modelled(new, cached, share)
        if overrides.prefill is None:
            return modelled
        # The given time fixes the level; the model only says how the work divides over tokens.
        return overrides.prefill * modelled / self._modelled(float(prompt), 0.0, share)

    def _modelled(self, new: Tokens, cached: Tokens, share: float) -> Seconds:
        device, settings = self.scenario.hardware.device, self.scenario.settings
        read = self.weights * settings.tp * settings.pp
        bandwidth = device.bandwidth * self.scenario.hardware.decode_efficiency.mid * settings.tp
        time = prefill_time(self.flops(new, cached), self.peak, share, read, bandwidth, FIXED_PREFILL)
        return np.where(np.asarray(new) > 0, time, 0.0)[()]

    def step(self, batch: float, context: float, share: float, sustained: float) -> DecodeStep:
        """One decode step of `batch` sequences at `context` tokens on one pipeline stage."""
        device, settings = self.scenario.hardware.device, self.scenario.settings
        components = self.scenario.model.shape.components_for(settings.engine)
        per_token = self.flop_per_token + float(attention_work(components, 1.0, context))
        if self.parameters is not None:
            per_token += 2.0 * self.parameters.lm_head_matmul
        return decode_step_time(
            weights=self.read_weights(batch),
            kv=batch * self.read_kv(context),
            flops=batch * per_token / (settings.tp * settings.pp),
            bandwidth=device.bandwidth,
            peak=device.peak(self.compute_dtype),
            bandwidth_efficiency=sustained,
            efficiency=share,
        )

    def read_weights(self, batch: float) -> float:
        """Weight bytes that one GPU reads per step: only the experts that the batch visits."""
        parts = [] if self.parameters is None else [p for p in self.parameters.parts if p.name == "experts"]
        if self.parameters is None or not parts:
            return self.weights
        routed = sum(part.bytes for part in parts) / self.parameters.bytes * self.weights
        coverage = expert_coverage(batch, parts[0].copies, parts[0].used)
        return float(weights_read(self.weights - routed, routed, coverage))

    def read_kv(self, context: float) -> float:
        """KV bytes that one GPU reads per step for one sequence: sparse attention reads its top k only."""
        components = self.scenario.model.shape.components_for(self.scenario.settings.engine)
        top = {part.kind: part.attention.top_k for part in components if part.attention}
        total = 0.0
        for part in self.layout.per_gpu:
            entries = float(part.growth.entries(context))
            limit = top.get(part.kind)
            total += part.stored * (entries if limit is None else min(entries, limit))
        return total


def prefill_of(speed: Speed, book: Notebook) -> Prefill:
    """Return the time of the whole prompt with nothing cached."""
    scenario, prompt = speed.scenario, float(speed.scenario.workload.prompt)
    band = scenario.hardware.prefill_efficiency
    low, high = float(speed.prefill(prompt, 0.0, band.high)), float(speed.prefill(prompt, 0.0, band.low))
    if speed.source == "model":
        book.source("prefill.time", Source("derived", "FLOP count, dense peak and prefill efficiency"))
        book.assume(
            f"prefill reaches {band.low:.0%} to {band.high:.0%} of {scenario.hardware.name}'s dense "
            f"{speed.compute_dtype} peak, {band.mid:.0%} in the middle; communication between GPUs is not "
            "counted; --prefill or --prefill-rate replaces it"
        )
        _record_prefill(speed, book, prompt)
    else:
        option = "--prefill" if speed.source == "given" else "--prefill-rate"
        book.source("prefill.time", Source("given", option))
        if speed.source == "given" and speed.parameters is None:
            book.assume("the given prefill time divides evenly over the prompt's tokens")
    time = float(speed.prefill(prompt))
    return Prefill(time, float(speed.flops(prompt)), speed.source, (low, high))


def _record_prefill(speed: Speed, book: Notebook, prompt: float) -> None:
    scenario, settings = speed.scenario, speed.scenario.settings
    components = scenario.model.shape.components_for(settings.engine)
    book.run(
        prefill_flops,
        new=prompt,
        flop_per_token=speed.flop_per_token,
        attention=float(attention_work(components, prompt)),
    )
    book.run(
        prefill_time,
        flops=float(speed.flops(prompt)),
        peak=speed.peak,
        efficiency=scenario.hardware.prefill_efficiency.mid,
        read=speed.weights * settings.tp * settings.pp,
        bandwidth=scenario.hardware.device.bandwidth * scenario.hardware.decode_efficiency.mid * settings.tp,
        fixed=FIXED_PREFILL,
    )


def decode_of(speed: Speed, book: Notebook) -> Decode:
    """Return one decode step at the planned concurrency, half of the generation done."""
    scenario, settings = speed.scenario, speed.scenario.settings
    share, sustained = scenario.hardware.prefill_efficiency, scenario.hardware.decode_efficiency
    running = math.ceil(scenario.workload.concurrency / settings.dp)
    batch, context = running / settings.pp, mean_context(scenario)
    middle = speed.step(batch, context, share.mid, sustained.mid)
    fast = speed.step(batch, context, share.high, sustained.high)
    slow = speed.step(batch, context, share.low, sustained.low)
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


def bandwidth_of(speed: Speed, book: Notebook) -> Bandwidth:
    """Return the memory traffic that the target throughput needs, per GPU, against what it sustains."""
    scenario, settings, workload = speed.scenario, speed.scenario.settings, speed.scenario.workload
    if workload.rate is not None:
        target = workload.rate * workload.generate
    else:
        target = workload.concurrency * PACE
        book.assume(f"target throughput: {PACE:g} token/s for each sequence, since no --rate is given")
    running = float(math.ceil(workload.concurrency / settings.dp))
    need = book.run(
        decode_bandwidth_need,
        weights=speed.read_weights(running),
        kv=running * speed.read_kv(mean_context(scenario)),
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
