"""Where the memory of one GPU goes, and whether the load fits what is left for KV."""

import math

from kvcalc.engines.layout import Layout
from kvcalc.engines.overheads import overhead
from kvcalc.errors import SettingsError
from kvcalc.formulas.capacity import capacity_shortfall, capacity_utilization
from kvcalc.formulas.memory import activation_bytes, kv_pool, logits_bytes
from kvcalc.parameters import Parameters
from kvcalc.planning.notebook import Notebook
from kvcalc.results import Capacity, Memory, Source
from kvcalc.scenario import Scenario

_ELEMENT = {"fp32": 4, "fp16": 2, "bf16": 2}


def memory_of(scenario: Scenario, layout: Layout, book: Notebook) -> Memory:
    """Return the parts of one GPU's memory; they add up to what the driver reports."""
    total = scenario.hardware.device.capacity
    weights = weight_bytes(scenario, book)
    share = scenario.overrides.utilization or overhead(scenario.settings).utilization
    if scenario.overrides.pool is not None:
        pool = scenario.overrides.pool
        activations = 0.0
        book.source("memory.kv_pool", Source("given", "--pool"))
        if pool > total:
            raise SettingsError(
                f"--pool: {pool / 1e9:.4g} GB is more than the {total / 1e9:.4g} GB of "
                f"{scenario.hardware.name}"
            )
        if weights + pool > total:
            book.warn(
                f"weights ({weights / 1e9:.1f} GB) and --pool ({pool / 1e9:.1f} GB) together exceed the "
                f"{total / 1e9:.1f} GB that the driver of {scenario.hardware.name} reports"
            )
            weights = total - pool
    else:
        fixed = overhead(scenario.settings)
        activations = _activations(scenario, book)
        kept = fixed.context + fixed.graphs + (fixed.communication if scenario.settings.tp > 1 else 0.0)
        pool = float(
            book.run(
                kv_pool,
                total=total,
                utilization=share,
                weights=weights,
                activations=activations,
                overhead=kept,
            )
        )
        book.assume(
            f"memory besides weights and KV is modelled, not measured: {activations / 1e9:.2f} GB "
            f"activations, {kept / 1e9:.2f} GB context, graphs and buffers ({fixed.source}); "
            "--pool replaces it"
        )
        if pool == 0.0:
            book.warn(_no_room(scenario, weights, total * share))
            activations = min(activations, max(0.0, total - weights))
    rows = layout.pool(pool)
    return Memory(
        total=total,
        weights=weights,
        activations=activations,
        other=total - weights - activations - pool,
        kv_pool=pool,
        block_tokens=rows.block_tokens,
        page_bytes=rows.page_bytes,
        block_bytes=rows.block_bytes,
        num_blocks=rows.num_blocks,
        cpu_blocks=rows.cpu_blocks,
        kv_tokens=rows.kv_tokens,
        max_concurrency=rows.max_concurrency,
    )


def weight_bytes(scenario: Scenario, book: Notebook) -> float:
    """Return the weights of the GPU that holds most, in bytes."""
    parameters = counted(scenario, book)
    if parameters is None:
        return 0.0
    settings = scenario.settings
    draft = settings.spec_tokens > 0
    return float(parameters.bytes_per_rank(settings.tp, settings.ep, settings.pp, draft))


def counted(scenario: Scenario, book: Notebook) -> Parameters | None:
    """Return the parameters in the precision that will be served, or None when they are unknown."""
    parameters = scenario.model.parameters
    if parameters is None:
        if scenario.overrides.pool is None:
            raise SettingsError(
                f"the weights of {scenario.model.name} ({scenario.model.shape.model_type}) are not "
                "understood; give the KV memory with --pool and the prefill with --prefill"
            )
        return None
    if scenario.overrides.weights_dtype is not None:
        from kvcalc.parameters.quantization import with_dtype

        book.source("memory.weights", Source("given", "--weights-dtype", scenario.overrides.weights_dtype))
        return with_dtype(parameters, scenario.overrides.weights_dtype)
    book.source("memory.weights", Source("derived", "parameter count of the model's shape"))
    return parameters


def intermediate_width(parameters: Parameters, hidden: int) -> float:
    """Return the intermediate width one token passes through, of the widest gated MLP equivalent."""
    mixers = ("mlp", "experts", "shared_experts")
    active = sum(part.active for part in parameters.parts if part.name in mixers)
    layers = {layer for part in parameters.parts if part.name in mixers for layer in part.layers or ()}
    # Three matrices of hidden x width make a gated MLP: gate, up and down.
    return active / (3 * hidden * max(1, len(layers)))


def capacity_of(scenario: Scenario, layout: Layout, memory: Memory, book: Notebook) -> Capacity:
    """Return the bytes that the target concurrency reserves against the pool, per GPU."""
    tokens = scenario.workload.prompt + scenario.workload.generate
    session = float(layout.reserved(tokens))
    running = math.ceil(scenario.workload.concurrency / scenario.settings.dp)
    need = session * running
    budget = float(memory.kv_pool)
    sessions = layout.sessions(budget, tokens) * scenario.settings.dp
    return Capacity(
        need=need,
        budget=budget,
        utilization=float(book.run(capacity_utilization, need=need, capacity=budget)) if budget else math.inf,
        shortfall=float(book.run(capacity_shortfall, need=need, capacity=budget)),
        sessions=sessions,
    )


def _activations(scenario: Scenario, book: Notebook) -> float:
    fixed, settings, shape = overhead(scenario.settings), scenario.settings, scenario.model.shape
    parameters = scenario.model.parameters
    tokens = settings.max_batched_tokens or fixed.batched_tokens
    width = intermediate_width(parameters, shape.hidden) if parameters else 4 * shape.hidden
    head = (parameters.lm_head_matmul if parameters else 0) / max(1, shape.hidden)
    sequences = min(settings.max_seqs or fixed.sequences, max(tokens, 1))
    element = _ELEMENT.get(shape.dtype, 2)
    peak = float(activation_bytes(tokens, shape.hidden, width, element, settings.tp))
    # The sampler runs after the last layer, so its logits and the layers' activations never coexist.
    return max(peak, float(logits_bytes(sequences, head)))


def _no_room(scenario: Scenario, weights: float, allowed: float) -> str:
    return (
        f"no memory is left for KV: the weights take {weights / 1e9:.1f} GB of the {allowed / 1e9:.1f} GB "
        f"that one {scenario.hardware.name} may use; it takes more GPUs, a smaller dtype or a larger "
        "--utilization"
    )
