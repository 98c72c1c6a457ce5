"""How fast this model prefills on this machine, as a middle value with a range."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from kvcalc.engines.layout import Layout
from kvcalc.formulas.capacity import sweep_time
from kvcalc.formulas.chunks import chunked_prefill_time
from kvcalc.formulas.collective import all_reduce_time
from kvcalc.formulas.prefill import dense_flop_per_token, prefill_flops, prefill_time
from kvcalc.parameters import Parameters
from kvcalc.planning.calibration import Calibration, calibrated
from kvcalc.planning.memory import step_tokens
from kvcalc.planning.notebook import Notebook
from kvcalc.planning.pace import Pace, Paces
from kvcalc.planning.reads import WeightReads, weight_reads
from kvcalc.planning.work import LINEAR_SHARE, attention_share, attention_work, products
from kvcalc.quantity import Flop, FlopPerSecond, Seconds, Tokens
from kvcalc.results import Prefill, Source
from kvcalc.scenario import Scenario

ACTIVATION = 2.0
"""Bytes of one element that ranks add up between layers [byte]: engines keep activations in 16 bits."""

ALL_REDUCES = 2.0
"""All-reduces of one layer under tensor parallelism [1]: one after attention, one after the MLP
(M. Shoeybi et al., Megatron-LM, https://arxiv.org/abs/1909.08053)."""


def _call(formula: Callable[..., Any], **arguments: Any) -> Any:  # noqa: ANN401 - any formula
    return formula(**arguments)


@dataclass(frozen=True)
class PrefillModel:
    """The prefill of one scenario; times are of one replica."""

    scenario: Scenario
    parameters: Parameters | None
    layout: Layout
    copied: float = 0.0  # weights that each step copies from host memory, of layers left there [byte]

    @cached_property
    def compute_dtype(self) -> str:
        """The format that most matrix products run in."""
        if self.parameters is None:
            return self.wide
        sizes = self.parameters.by_dtype
        return self.computed_in(max(sizes, key=lambda name: sizes[name]))

    @property
    def wide(self) -> str:
        """The 16-bit format that attention and unquantized products run in."""
        return "fp16" if self.scenario.model.shape.dtype == "fp16" else "bf16"

    def computed_in(self, stored: str) -> str:
        """Return the format that weights stored as `stored` are multiplied in.

        Weight-only formats multiply in 16 bits; so do MXFP4 weights, whose activations engines keep wide.
        """
        if stored.startswith(("fp8", "mxfp8")):
            return "fp8"
        if stored.startswith("nvfp4") and "fp4" in self.scenario.hardware.device.flops:
            return "fp4"
        return self.wide

    @cached_property
    def source(self) -> str:
        """Where prefill times are from: given, rate, calibrated or model."""
        overrides = self.scenario.overrides
        if overrides.prefill is not None:
            return "given"
        if overrides.prefill_rate is not None:
            return "rate"
        return "calibrated" if overrides.calibrate is not None else "model"

    @cached_property
    def calibration(self) -> Calibration | None:
        """What the user's measured points say of this machine, if there are any."""
        measured = self.scenario.overrides.calibrate
        if measured is None:
            return None
        middle = self._priors.middle
        return calibrated(
            measured, middle, lambda new, cached: self.unit_times(new, cached, middle), self._modelled
        )

    @cached_property
    def paces(self) -> Paces:
        """The slow, the middle and the fast guess; all the same where the user gave a time or a rate."""
        if self.calibration is not None:
            return self.calibration.paces
        return self._priors if self.source == "model" else Paces.exactly(self._priors.middle)

    @property
    def _priors(self) -> Paces:
        hardware = self.scenario.hardware
        products = hardware.prefill_efficiency
        return Paces.of(products, hardware.attention_efficiency or products)

    @cached_property
    def flop_per_token(self) -> float:
        """Operations of the weights per token."""
        return 0.0 if self.parameters is None else float(dense_flop_per_token(self.parameters.matmul_active))

    @cached_property
    def chunk(self) -> float:
        """Tokens of one prompt that the engine computes in one step."""
        return float(step_tokens(self.scenario))

    def flops(self, new: Tokens, cached: Tokens = 0.0) -> Flop:
        """Operations of prefilling `new` tokens on `cached` ones, output head for the last one."""
        return prefill_flops(new, self.flop_per_token, self._attention(new, cached)) + self._head

    @property
    def _head(self) -> float:
        return 0.0 if self.parameters is None else float(dense_flop_per_token(self.parameters.lm_head_matmul))

    def _attention(self, new: Tokens, cached: Tokens) -> Flop:
        components = self.scenario.model.shape.components_for(self.scenario.settings.engine)
        return attention_work(components, new, cached)

    def products_peak(self, pace: Pace) -> FlopPerSecond:
        """Dense peak [flop/second] of the ranks that share each layer, as its products mix formats.

        Products of routed experts count with the share of a dense product's pace that they reach.
        """
        device, tp = self.scenario.hardware.device, self.scenario.settings.tp
        if self.parameters is None or self.flop_per_token == 0:
            return device.peak(self.wide) * tp
        work = self._products
        time = sum(
            flop / device.peak(self.computed_in(stored)) / (pace.experts if routed else 1.0)
            for (stored, routed), flop in work.items()
        )
        return sum(work.values()) / time * tp

    @cached_property
    def _products(self) -> dict[tuple[str, bool], float]:
        """Operations of the matrix products by the format of their weights, routed experts apart."""
        return {} if self.parameters is None else products(self.parameters)

    @cached_property
    def attention_peak(self) -> float:
        """Dense 16-bit peak [flop/second] of the ranks that share each layer."""
        return self.scenario.hardware.device.peak(self.wide) * self.scenario.settings.tp

    def unit_times(self, new: Tokens, cached: Tokens, pace: Pace) -> tuple[Seconds, Seconds, Seconds]:
        """Return the times of products and of attention at their full peaks, and of what is no computing."""
        products_time = (self.flop_per_token * new + self._head) / self.products_peak(pace)
        attention_time = self._attention(new, cached) / self.attention_peak
        return products_time, attention_time, self._no_computing(new, cached, pace)

    def time(self, new: Tokens, cached: Tokens = 0.0, pace: Pace | None = None) -> Seconds:
        """Time of prefilling `new` tokens on `cached` ones; scalars and arrays alike."""
        overrides, prompt = self.scenario.overrides, self.scenario.workload.prompt
        if overrides.prefill_rate is not None:
            return new / overrides.prefill_rate
        if overrides.prefill is not None and self.parameters is None:
            return overrides.prefill * new / prompt
        pace = pace or self.paces.middle
        modelled = self._modelled(new, cached, pace)
        if overrides.prefill is None:
            return modelled
        # The given time fixes the level; the model only says how the work divides over tokens.
        return overrides.prefill * modelled / self._modelled(np.asarray(prompt, dtype=float)[()], 0.0, pace)

    def _modelled(self, new: Tokens, cached: Tokens, pace: Pace, run: Callable[..., Any] = _call) -> Seconds:
        """Whole chunks, then the rest: each step reads the weights and the KV before it once."""
        steps = np.ceil(np.asarray(new) / self.chunk)[()] - 1
        whole = np.maximum(steps, 0) * self.chunk
        fixed = pace.fixed + self._no_computing(new, cached, pace, run)
        last = self._steps(new - whole, cached + whole, 1.0, pace, run, self._head, fixed)
        time: Seconds = last
        if np.any(whole > 0):
            # In an array, prompts of a single step have no whole chunks before it.
            before = self._steps(whole, cached, np.maximum(steps, 1), pace, run)
            time = run(chunked_prefill_time, whole=np.where(whole > 0, before, 0.0)[()], last=last)
        return np.where(np.asarray(new) > 0, time, 0.0)[()]

    def _steps(
        self,
        new: Tokens,
        cached: Tokens,
        steps: Tokens,
        pace: Pace,
        run: Callable[..., Any],
        head: Flop = 0.0,
        fixed: Seconds = 0.0,
    ) -> Seconds:
        """Time of `steps` equal chunks that make up `new` tokens."""
        settings, hardware = self.scenario.settings, self.scenario.hardware
        # A later step has more KV before it; on average half of the new tokens are.
        kv = self.layout.serialized(cached + (new - new / steps) / 2, per_gpu=True)
        time: Seconds = run(
            prefill_time,
            flops=self.flop_per_token * new + head,
            peak=self.products_peak(pace),
            efficiency=pace.products,
            read=steps * (self.reads.read(new / steps) * settings.pp + kv) * settings.tp,
            bandwidth=hardware.device.bandwidth * hardware.decode_efficiency.mid * settings.tp,
            fixed=fixed,
            attention=self._attention(new, cached),
            attention_peak=self.attention_peak,
            attention_efficiency=pace.attention,
        )
        return time

    def _no_computing(
        self, new: Tokens, cached: Tokens, pace: Pace, run: Callable[..., Any] = _call
    ) -> Seconds:
        """Time of what grows with the tokens and is neither product nor attention."""
        time = pace.handling * (new + cached) + self._all_reduces(new, run)
        if not self.copied:
            return time
        link = self.scenario.hardware.host_to_device.bandwidth
        one: Seconds = run(sweep_time, size=self.copied, bandwidth=link)
        return time + np.ceil(new / self.chunk) * one

    def _all_reduces(self, new: Tokens, run: Callable[..., Any] = _call) -> Seconds:
        """Time in which the ranks of a layer add up their results: over their own link, else by the host."""
        settings, hardware, shape = self.scenario.settings, self.scenario.hardware, self.scenario.model.shape
        if settings.tp == 1:
            return 0.0
        time: Seconds = run(
            all_reduce_time,
            size=new * shape.hidden * ACTIVATION,
            ranks=float(settings.tp),
            bandwidth=(hardware.interconnect or hardware.host_to_device).bandwidth,
            count=ALL_REDUCES * shape.layers,
        )
        return time

    @cached_property
    def reads(self) -> WeightReads:
        """How a step reads the weights of one GPU: only the experts that its tokens visit."""
        if self.parameters is None:
            return WeightReads()
        return weight_reads(self.parameters, self.scenario.settings)


def prefill_of(model: PrefillModel, book: Notebook) -> Prefill:
    """Return the time of the whole prompt with nothing cached."""
    prompt, paces = float(model.scenario.workload.prompt), model.paces
    if model.source in ("model", "calibrated"):
        book.run(
            prefill_flops,
            new=prompt,
            flop_per_token=model.flop_per_token,
            attention=float(model._attention(prompt, 0.0)),
        )
        model._modelled(prompt, 0.0, paces.middle, book.run)
    tell_source(model, "prefill.time", book)
    return Prefill(
        time=float(model.time(prompt)),
        flops=float(model.flops(prompt)),
        source=model.source,
        range=(float(model.time(prompt, 0.0, paces.fast)), float(model.time(prompt, 0.0, paces.slow))),
    )


def tell_source(model: PrefillModel, key: str, book: Notebook) -> None:
    """Note where prefill times are from, and what they assume."""
    if model.calibration is not None:
        book.source(key, Source("measured", "--calibrate", model.calibration.measured.file))
        book.assume(model.calibration.told)
    elif model.source == "model":
        book.source(key, Source("derived", "FLOP count, dense peak and prefill efficiency"))
        book.assume(_told(model))
    else:
        book.source(key, Source("given", "--prefill" if model.source == "given" else "--prefill-rate"))
        if model.source != "given":
            _tell_rate(model.scenario, book)
        if model.source == "given" and model.parameters is None:
            book.assume("the given prefill time divides evenly over the prompt's tokens")


def _tell_rate(scenario: Scenario, book: Notebook) -> None:
    """Warn where one rate is given for a prompt that is long for its model."""
    share = attention_share(scenario)
    if share is not None and share > LINEAR_SHARE:
        book.warn(
            f"--prefill-rate is one rate for all lengths, and at {scenario.workload.prompt:,} tokens "
            f"attention is {share:.0%} of the operations: what is left after a long hit takes longer than it "
            "says; give --prefill of this very prompt"
        )


def _told(model: PrefillModel) -> str:
    slow, middle, fast = model.paces.slow, model.paces.middle, model.paces.fast
    multiplied = model.scenario.hardware.device.multiplied_in(model.compute_dtype)
    said = (
        f"prefill reaches {slow.products:.0%} to {fast.products:.0%} of {model.scenario.hardware.name}'s "
        f"dense {multiplied} peak, {middle.products:.0%} in the middle"
    )
    if model.scenario.hardware.attention_efficiency is not None:
        said += f", and {slow.attention:.0%} to {fast.attention:.0%} ({middle.attention:.0%}) in attention"
    if model.parameters is not None and model.parameters.experts:
        said += (
            f"; its routed experts {slow.experts:.0%} to {fast.experts:.0%} ({middle.experts:.0%}) of that"
        )
    return said + "; --prefill, --prefill-rate or --calibrate replaces it"
