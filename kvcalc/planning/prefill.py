"""How fast this model prefills on this machine, as a middle value with a range."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from kvcalc.formulas.prefill import dense_flop_per_token, prefill_flops, prefill_time
from kvcalc.parameters import Parameters
from kvcalc.planning.notebook import Notebook
from kvcalc.planning.work import attention_work
from kvcalc.profiles import Band
from kvcalc.quantity import Flop, Seconds, Tokens
from kvcalc.results import Prefill, Source
from kvcalc.scenario import Scenario

FIXED_PREFILL = 0.010
"""Scheduling, launches and sampling of one prefill [second]; the low end of the 10 to 30 ms that
published short-prompt times show (https://vllm.ai/blog/2026-06-01-vllm-dgx-spark and similar); assumed."""

EXACT = Band(1.0, 1.0, 1.0)


@dataclass(frozen=True)
class PrefillModel:
    """The prefill of one scenario; times are of one replica."""

    scenario: Scenario
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

    def time(self, new: Tokens, cached: Tokens = 0.0, efficiency: float | None = None) -> Seconds:
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


def prefill_of(model: PrefillModel, book: Notebook) -> Prefill:
    """Return the time of the whole prompt with nothing cached."""
    scenario, prompt = model.scenario, float(model.scenario.workload.prompt)
    band = scenario.hardware.prefill_efficiency
    low, high = float(model.time(prompt, 0.0, band.high)), float(model.time(prompt, 0.0, band.low))
    if model.source == "model":
        book.source("prefill.time", Source("derived", "FLOP count, dense peak and prefill efficiency"))
        book.assume(
            f"prefill reaches {band.low:.0%} to {band.high:.0%} of {scenario.hardware.name}'s dense "
            f"{model.compute_dtype} peak, {band.mid:.0%} in the middle; communication between GPUs is not "
            "counted; --prefill or --prefill-rate replaces it"
        )
        _record_prefill(model, book, prompt)
    else:
        option = "--prefill" if model.source == "given" else "--prefill-rate"
        book.source("prefill.time", Source("given", option))
        if model.source == "given" and model.parameters is None:
            book.assume("the given prefill time divides evenly over the prompt's tokens")
    time = float(model.time(prompt))
    return Prefill(time, float(model.flops(prompt)), model.source, (low, high))


def _record_prefill(model: PrefillModel, book: Notebook, prompt: float) -> None:
    scenario, settings = model.scenario, model.scenario.settings
    components = scenario.model.shape.components_for(settings.engine)
    book.run(
        prefill_flops,
        new=prompt,
        flop_per_token=model.flop_per_token,
        attention=float(attention_work(components, prompt)),
    )
    book.run(
        prefill_time,
        flops=float(model.flops(prompt)),
        peak=model.peak,
        efficiency=scenario.hardware.prefill_efficiency.mid,
        read=model.weights * settings.tp * settings.pp,
        bandwidth=scenario.hardware.device.bandwidth * scenario.hardware.decode_efficiency.mid * settings.tp,
        fixed=FIXED_PREFILL,
    )
