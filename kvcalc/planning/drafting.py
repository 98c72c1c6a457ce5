"""The draft of speculative decoding: a model of its own, or the checkpoint's own extra layers."""

from dataclasses import dataclass

from kvcalc.engines.layout import Layout
from kvcalc.formulas.prefill import dense_flop_per_token
from kvcalc.parameters import Parameters
from kvcalc.parameters.counts import Part
from kvcalc.planning.reads import KvReads, WeightReads, absorbed, draft_reads, kv_reads
from kvcalc.planning.work import attention_work
from kvcalc.quantity import Bytes, Count, Flop, Tokens
from kvcalc.scenario import Scenario
from kvcalc.shapes.components import Component


@dataclass(frozen=True)
class Draft:
    """One pass of the draft: a token for each sequence."""

    weights: WeightReads
    kv: tuple[KvReads, ...]
    components: tuple[Component, ...]
    flop_per_token: float
    layers: int
    hidden: int

    def read_weights(self, batch: Count) -> Bytes:
        """Return the weight bytes that one GPU reads in one pass."""
        return self.weights.read(batch)

    def read_kv(self, context: Tokens) -> Bytes:
        """Return the KV bytes that one GPU reads in one pass for one sequence."""
        total: Bytes = context * 0.0
        for part in self.kv:
            total = total + part.read(context, 1.0)
        return total

    def flops(self, context: Tokens) -> Flop:
        """Return the operations of one pass for one sequence, on all ranks together."""
        return self.flop_per_token + attention_work(self.components, 1.0, context)


def draft_of(scenario: Scenario, parameters: Parameters | None, layout: Layout) -> Draft | None:
    """Return the draft that a scenario speculates with; None where its weights are unknown."""
    if parameters is None or not parameters.draft:
        return None
    shape, separate = scenario.model.shape, scenario.draft
    components = shape.draft
    if separate is not None and separate.parameters is not None:
        own = separate.parameters
        layers, hidden = separate.shape.layers, separate.shape.hidden
        parts = [part for part in own.parts if part.name != "embedding" or own.tied]
        active = own.matmul_active + own.lm_head_matmul
    else:
        # Layers of multi-token prediction share the model's output head and embedding.
        parts = [*parameters.draft, *_head(parameters)]
        layers = len({layer for part in parameters.draft for layer in part.layers or ()})
        hidden = shape.hidden
        active = parameters.lm_head_matmul
        active += sum(part.active for part in parameters.draft if part.matrix)
    return Draft(
        weights=draft_reads(parts, scenario.settings),
        kv=kv_reads(layout.per_gpu, components, draft=True),
        components=tuple(map(absorbed, components)),
        flop_per_token=float(dense_flop_per_token(active)),
        layers=layers,
        hidden=hidden,
    )


def _head(parameters: Parameters) -> list[Part]:
    name = "embedding" if parameters.tied else "lm_head"
    return [part for part in parameters.parts if part.name == name]
