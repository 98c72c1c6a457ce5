"""How fast this model decodes on this machine, and what memory traffic a target throughput needs."""

import math
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from kvcalc.engines.layout import Layout
from kvcalc.errors import DomainError
from kvcalc.formulas.capacity import sequences_of_replica
from kvcalc.formulas.collective import all_reduce_time
from kvcalc.formulas.decode import (
    DecodeStep,
    critical_batch,
    decode_step_time,
    tokens_per_second,
)
from kvcalc.formulas.prefill import dense_flop_per_token
from kvcalc.formulas.speculation import accepted_tokens, speculative_step_time
from kvcalc.parameters import Parameters
from kvcalc.planning.notebook import Notebook
from kvcalc.planning.prefill import ACTIVATION, ALL_REDUCES
from kvcalc.planning.reads import WeightReads, absorbed, kv_reads, weight_reads
from kvcalc.planning.work import attention_work
from kvcalc.quantity import Bytes, Count, Flop, Seconds, Tokens
from kvcalc.records import record
from kvcalc.results import Decode
from kvcalc.scenario import Scenario, Workload

if TYPE_CHECKING:
    from kvcalc.planning.drafting import Draft
    from kvcalc.planning.placement import HostLayers

ALL_REDUCE_LATENCY = 10e-6
"""One all-reduce of a decode step's few kilobytes over links between GPUs [second]: what engines' own
kernels take over NVLink in one server; assumed."""

HOST_ALL_REDUCE_LATENCY = 30e-6
"""The same over PCIe and the host, where GPUs have no links of their own [second]; assumed."""


@record
class StepTimes:
    """The times of one decode step of one replica, one after the other."""

    stage: DecodeStep  # of one pipeline stage, which works on its share of the sequences
    communication: Seconds  # all-reduces of one stage
    stages: int
    host: Seconds  # layers left in host memory
    draft: Seconds  # one pass of the draft
    drafted: int  # passes of the draft

    @property
    def check(self) -> Seconds:
        """Time of the model's own pass, over all stages."""
        return (self.stage.total + self.communication) * self.stages + self.host

    @property
    def total(self) -> Seconds:
        """Time of the step."""
        return speculative_step_time(self.check, self.draft, self.drafted)


@record
class Steps:
    """One decode step at three guesses of how much of the machine it uses."""

    middle: StepTimes
    fast: StepTimes
    slow: StepTimes


@record
class DecodeModel:
    """The decode of what a scenario holds on its GPUs; batches and contexts may be arrays."""

    scenario: Scenario
    parameters: Parameters | None
    weights: float  # bytes on the GPU that holds most, where the parts are not known
    layout: Layout
    compute_dtype: str
    draft: "Draft | None" = None
    host: "HostLayers | None" = None

    def step(self, batch: Count, context: Tokens, share: float, sustained: float) -> StepTimes:
        """One decode step of `batch` sequences a stage, at `context` tokens."""
        settings, shape = self.scenario.settings, self.scenario.model.shape
        return StepTimes(
            stage=decode_step_time(**self.stage_work(batch, context), **self._rates(share, sustained)),
            communication=self._all_reduces(batch * self.checked, shape.layers / settings.pp, shape.hidden),
            stages=settings.pp,
            host=0.0 if self.host is None else self.host.time(batch, context, sustained),
            draft=self._draft_pass(batch * settings.pp, context, share, sustained),
            drafted=settings.spec_tokens,
        )

    def steps(self, batch: Count, context: Tokens) -> "Steps":
        """Return such a step at the middle of what the machine sustains, and at both ends of its range."""
        share, sustained = self.scenario.hardware.prefill_efficiency, self.scenario.hardware.decode_efficiency
        return Steps(
            middle=self.step(batch, context, share.mid, sustained.mid),
            fast=self.step(batch, context, share.high, sustained.high),
            slow=self.step(batch, context, share.low, sustained.low),
        )

    def step_of(self, sequences: Count) -> Seconds:
        """Return the step of so many sequences halfway through generating, at middle rates; arrays too."""
        workload, hardware = self.scenario.workload, self.scenario.hardware
        return self.step(
            self.stage_batch(sequences),
            context_between(workload.prompt, workload.generate),
            hardware.prefill_efficiency.mid,
            hardware.decode_efficiency.mid,
        ).total

    def _draft_pass(self, batch: Count, context: Tokens, share: float, sustained: float) -> Seconds:
        """Time of one pass of the draft, on the ranks of one stage."""
        if self.draft is None:
            return 0.0
        one = decode_step_time(
            weights=self.draft.read_weights(batch),
            kv=batch * self.draft.read_kv(context),
            flops=batch * self.draft.flops(context) / self.scenario.settings.tp,
            **self._rates(share, sustained),
        )
        return one.total + self._all_reduces(batch, self.draft.layers, self.draft.hidden)

    def stage_batch(self, concurrency: Count) -> Count:
        """Sequences that one pipeline stage of one replica works on at once."""
        settings = self.scenario.settings
        return sequences_of_replica(concurrency, settings.dp) / settings.pp

    def stage_work(self, batch: Count, context: Tokens) -> dict[str, Any]:
        """Return the weights, the KV and the operations of one stage, by `decode_step_time`'s names."""
        return {
            "weights": self.read_weights(batch),
            "kv": batch * self.read_kv(context),
            "flops": batch * self.sequence_flops(context),
        }

    def rates(self) -> Mapping[str, Any]:
        """Return the middle rates of one GPU, by `decode_step_time`'s names."""
        hardware = self.scenario.hardware
        return self._rates(hardware.prefill_efficiency.mid, hardware.decode_efficiency.mid)

    def _rates(self, share: float, sustained: float) -> dict[str, Any]:
        device = self.scenario.hardware.device
        return {
            "bandwidth": device.bandwidth,
            "peak": device.peak(self.compute_dtype),
            "bandwidth_efficiency": sustained,
            "efficiency": share,
        }

    @property
    def checked(self) -> int:
        """Tokens of one sequence that the model computes in one step."""
        return 1 + self.scenario.settings.spec_tokens

    @property
    def gained(self) -> float:
        """Tokens by which one sequence grows in one step, on average."""
        settings = self.scenario.settings
        return float(accepted_tokens(settings.spec_tokens, self.scenario.serving.acceptance))

    @cached_property
    def reads(self) -> WeightReads:
        """How a step reads the weights of one GPU."""
        if self.parameters is None:
            return WeightReads(self.weights)
        return weight_reads(self.parameters, self.scenario.settings)

    @cached_property
    def adapters(self) -> float:
        """Bytes of one adapter on one GPU."""
        from kvcalc.planning.adapters import adapter_bytes

        return adapter_bytes(self.scenario, self.parameters) / max(1, self.scenario.serving.lora)

    def read_weights(self, batch: Count) -> Bytes:
        """Weight bytes that one GPU reads per step: the experts that tokens visit, one adapter each."""
        own = self.reads.read(batch * self.checked)
        if not self.scenario.serving.lora:
            return own
        return own + self.adapters * np.minimum(batch, self.scenario.serving.lora)

    @cached_property
    def _kv(self) -> tuple[Any, ...]:
        shape = self.scenario.model.shape
        return kv_reads(self.layout.per_gpu, shape.components_for(self.scenario.settings.engine))

    def read_kv(self, context: Tokens) -> Bytes:
        """KV bytes that one GPU reads per step for one sequence: sparse attention reads its top k only."""
        total: Bytes = context * 0.0
        for part in self._kv:
            total = total + part.read(context, float(self.checked))
        return total

    @cached_property
    def _flop_per_token(self) -> float:
        if self.parameters is None:
            return 0.0
        own = float(self.parameters.matmul_active + self.parameters.lm_head_matmul)
        if self.scenario.serving.lora:
            from kvcalc.planning.adapters import adapter_parameters

            own += adapter_parameters(self.scenario, self.parameters)
        return float(dense_flop_per_token(own))

    def sequence_flops(self, context: Tokens) -> Flop:
        """Operations of one sequence in one step on one GPU, latents attended to as they are cached."""
        settings = self.scenario.settings
        components = map(absorbed, self.scenario.model.shape.components_for(settings.engine))
        attention = attention_work(components, float(self.checked), context)
        return (self.checked * self._flop_per_token + attention) / (settings.tp * settings.pp)

    def _all_reduces(self, tokens: Count, layers: float, hidden: int) -> Seconds:
        """Time in which the ranks add up their results of so many tokens, layer after layer."""
        settings, hardware = self.scenario.settings, self.scenario.hardware
        if settings.tp == 1:
            return 0.0
        link = hardware.interconnect
        return all_reduce_time(
            size=tokens * hidden * ACTIVATION,
            ranks=settings.tp,
            bandwidth=(link or hardware.host_to_device).bandwidth,
            latency=ALL_REDUCE_LATENCY if link else HOST_ALL_REDUCE_LATENCY,
            count=ALL_REDUCES * layers,
        )

    def compute_bound(self, context: float, book: Notebook) -> tuple[int | None, str | None]:
        """Return how many sequences at once make a step wait for compute, or why none do.

        With experts the weights read grow with the batch, up to all of them: the answer is the batch
        at which a step that reads what this very batch visits turns over.
        """
        settings, hardware = self.scenario.settings, self.scenario.hardware
        device = hardware.device
        if self.parameters is None:
            return None, "the weights are not known"
        fixed = {
            "kv": float(self.read_kv(context)),
            "flops": float(self.sequence_flops(context)),
            "bandwidth": device.bandwidth * hardware.decode_efficiency.mid,
            "compute": device.peak(self.compute_dtype) * hardware.prefill_efficiency.mid,
        }
        weights = self.reads.all
        if self.scenario.serving.lora:
            weights += self.adapters * self.scenario.serving.lora
        try:
            batch = float(critical_batch(weights, **fixed))
            for _ in range(_ROUNDS):
                weights = float(self.read_weights(batch))
                batch = float(critical_batch(weights, **fixed))
        except DomainError as error:
            return None, str(error)
        book.run(critical_batch, weights=weights, **fixed)
        return max(1, math.ceil(batch * settings.pp) * settings.dp), None


_ROUNDS = 50  # each comes closer by the share of experts that one more sequence still adds


def decode_of(model: DecodeModel, book: Notebook) -> Decode:
    """Return one decode step at the planned concurrency, half of the generation done."""
    scenario, settings = model.scenario, model.scenario.settings
    concurrency = float(scenario.workload.concurrency)
    batch, context = model.stage_batch(concurrency), mean_context(scenario.workload)
    steps = model.steps(batch, context)
    middle, fast, slow = steps.middle, float(steps.fast.total), float(steps.slow.total)
    book.run(decode_step_time, **model.stage_work(batch, context), **model.rates())
    say_what_is_assumed(model, book)
    time, gained = float(middle.total), concurrency * model.gained
    rate = book.run(tokens_per_second, batch=gained, step=time)
    bound_batch, never = model.compute_bound(context, book)
    return Decode(
        step_time=time,
        tokens_per_second=float(rate),
        bound=str(middle.stage.bound),
        range=(fast, slow),
        tokens_per_second_range=(gained / slow, gained / fast),
        tokens_per_step=model.gained,
        communication=float(middle.communication) * settings.pp,
        draft_time=float(middle.draft) * settings.spec_tokens,
        host_time=float(middle.host),
        compute_bound_batch=bound_batch,
        reason=never,
    )


def say_what_is_assumed(model: DecodeModel, book: Notebook) -> None:
    """Note what the step assumes about memory, ranks, drafts and adapters."""
    scenario, settings, serving = model.scenario, model.scenario.settings, model.scenario.serving
    sustained = scenario.hardware.decode_efficiency
    book.assume(
        f"decode reads memory at {sustained.low:.0%} to {sustained.high:.0%} of its nominal rate, "
        f"{sustained.mid:.0%} in the middle, halfway through the generation"
    )
    if settings.tp > 1:
        latency = ALL_REDUCE_LATENCY if scenario.hardware.interconnect else HOST_ALL_REDUCE_LATENCY
        book.assume(
            f"each all-reduce of a decode step takes {latency * 1e6:.0f} us beside its bytes, "
            f"{ALL_REDUCES:.0f} in each layer"
        )
    if settings.spec_tokens:
        said = "" if "acceptance" in scenario.given else ", assumed; --acceptance replaces it"
        book.run(accepted_tokens, drafted=settings.spec_tokens, acceptance=serving.acceptance)
        book.assume(
            f"{serving.acceptance:.0%} of the {settings.spec_tokens} drafted tokens are accepted{said}: "
            f"{model.gained:.2f} tokens a step"
        )
        if model.draft is None:
            book.assume("the draft's own passes cost nothing: its weights are unknown; --draft names one")
    if serving.lora:
        book.assume(
            f"{serving.lora} adapters of rank {serving.lora_rank} on attention and dense MLP matrices, "
            "not on routed experts; each running sequence uses one"
        )


def mean_context(workload: Workload) -> float:
    """Return the tokens that a sequence holds on average while it decodes."""
    return float(context_between(workload.prompt, workload.generate))


def context_between(prompt: Tokens, generate: Tokens) -> Tokens:
    """Return the mean of the contexts from the first generated token to the last; arrays too."""
    return prompt + generate / 2
