"""What LoRA adapters take beside the model: room for a number of them at one rank."""

from kvcalc.engines.settings import EngineSettings
from kvcalc.formulas.adapters import low_rank_parameters
from kvcalc.parameters import Parameters
from kvcalc.parameters.counts import Part, pipeline_stages
from kvcalc.scenario import Scenario

ADAPTED = ("attention", "mlp", "shared_experts", "state_mixer")
"""Parts whose matrices are adapted; routed experts are left out, as most published adapters do."""

_ELEMENT = {"fp32": 4.0}  # bytes of one adapter element [byte]; otherwise the model's own 16 bits


def adapter_bytes(scenario: Scenario, parameters: Parameters | None) -> float:
    """Return the bytes of all adapters on the GPU that holds most of them."""
    serving, settings, shape = scenario.serving, scenario.settings, scenario.model.shape
    if not serving.lora or parameters is None:
        return 0.0
    parts = [part for part in parameters.parts if part.matrix and part.layers and part.name in ADAPTED]
    element = _ELEMENT.get(shape.dtype, 2.0)
    stages = pipeline_stages(parameters.layers, settings.pp)
    held = (
        sum(
            _per_layer(part, shape.hidden, serving.lora_rank, settings)
            * sum(layer in stage for layer in part.layers or ())
            for part in parts
        )
        for stage in stages
    )
    return serving.lora * element * max(held)


def adapter_parameters(scenario: Scenario, parameters: Parameters | None) -> float:
    """Return the parameters of one adapter that a token passes through."""
    if not scenario.serving.lora or parameters is None:
        return 0.0
    return sum(
        float(low_rank_parameters(scenario.serving.lora_rank, part.columns, part.rows))
        * len(part.layers)
        * part.used
        for part in parameters.parts
        if part.matrix and part.layers and part.name in ADAPTED
    )


def _per_layer(part: Part, hidden: int, rank: int, settings: EngineSettings) -> float:
    """Return the parameters of one adapter of one matrix on one rank.

    Ranks cut the side that they cut of the matrix itself, and each keeps the other side whole (vLLM
    without fully sharded LoRA).  Matrices that write back to the residual stream are cut by inputs.
    """
    cut = part.share(settings.tp, settings.ep)
    if part.rows == hidden:
        inputs, outputs = part.columns * cut, float(part.rows)
    else:
        inputs, outputs = float(part.columns), part.rows * cut
    return float(low_rank_parameters(rank, inputs, outputs)) * part.copies
