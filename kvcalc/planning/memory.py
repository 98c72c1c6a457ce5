"""Where the memory of one GPU goes, and whether the load fits what is left for KV."""

import math
from dataclasses import replace

from kvcalc.engines.kinds import kind_of
from kvcalc.engines.layout import Layout
from kvcalc.engines.overheads import DRIVER_RESERVE, MOE_CHUNK, Batch, Overhead, overhead
from kvcalc.errors import SettingsError
from kvcalc.formulas.capacity import capacity_shortfall, capacity_utilization, sequences_of_replica
from kvcalc.formulas.memory import activation_bytes, kv_pool, logits_bytes, static_share
from kvcalc.parameters import Parameters
from kvcalc.parameters.counts import Part
from kvcalc.planning.notebook import Notebook
from kvcalc.results import Capacity, Memory, Source
from kvcalc.scenario import Scenario
from kvcalc.wording import part_text, said_size

_ELEMENT = {"fp32": 4, "fp16": 2, "bf16": 2}


def memory_of(scenario: Scenario, layout: Layout, book: Notebook) -> Memory:
    """Return the parts of one GPU's memory; they add up to what the driver reports."""
    total = scenario.hardware.device.capacity
    weights = weight_bytes(scenario, book)
    if scenario.overrides.pool is not None:
        pool = scenario.overrides.pool
        book.source("memory.kv_pool", Source("given", "--pool"))
        if pool > total:
            raise SettingsError(
                f"--pool: {said_size(pool)} is more than the {said_size(total)} of {scenario.hardware.name}"
            )
        if weights + pool > total:
            book.warn(
                f"weights ({part_text(weights)}) and --pool ({part_text(pool)}) together exceed the "
                f"{part_text(total)} that the driver of {scenario.hardware.name} reports"
            )
    else:
        pool = _derived_pool(scenario, weights, book)
    activations, rows = activation_peak(scenario), layout.pool(pool)
    other = total - weights - activations - pool
    return Memory(
        total=total,
        weights=weights,
        activations=activations,
        other=other,
        kv_pool=pool,
        block_tokens=rows.block_tokens,
        page_bytes=rows.page_bytes,
        block_bytes=rows.block_bytes,
        num_blocks=rows.num_blocks,
        cpu_blocks=rows.cpu_blocks,
        kv_tokens=rows.kv_tokens,
        max_concurrency=rows.max_concurrency,
        unused=max(0.0, other - (total - visible_bytes(scenario)) - _kept(scenario)),
    )


def _kept(scenario: Scenario) -> float:
    """Return what context, graphs and communication buffers take, in bytes."""
    fixed = overhead(scenario.settings)
    return fixed.context + fixed.graphs + _communication(scenario, fixed)


def _derived_pool(scenario: Scenario, weights: float, book: Notebook) -> float:
    """Return what the engine would find for KV."""
    fixed, total = overhead(scenario.settings), visible_bytes(scenario)
    activations = activation_peak(scenario)
    kept = _kept(scenario)
    utilization = scenario.overrides.utilization or _utilization(scenario, fixed)
    if scenario.hardware.device.unified:
        from kvcalc.planning.placement import shared_limit

        utilization = min(utilization, shared_limit(scenario, book))
    reserved = fixed.rule == "reserved"
    pool = float(
        book.run(
            kv_pool,
            # An engine that reserves a share counts from what was free before it loaded anything.
            total=total - kept if reserved else total,
            utilization=utilization,
            weights=weights,
            activations=0.0 if reserved else activations,
            overhead=0.0 if reserved else kept,
        )
    )
    book.assume(_what_is_assumed(fixed))
    left = max(0.0, total - kept - weights - pool)
    if pool == 0.0:
        beside = kept if reserved else kept + activations
        book.warn(_no_room(scenario, weights, beside, total * utilization))
    elif reserved and activations > left:
        book.warn(
            f"{part_text(activations)} of activations will not fit beside the pool in the {left / 1e9:.1f} "
            "GB that are left; a smaller --utilization leaves more"
        )
    return pool


def visible_bytes(scenario: Scenario) -> float:
    """Return the memory that programs see on the device: the driver keeps a part of a discrete card."""
    hardware = scenario.hardware
    discrete = hardware.vendor == "NVIDIA" and not hardware.device.unified
    return hardware.device.capacity - (DRIVER_RESERVE if discrete else 0)


def activation_peak(scenario: Scenario) -> float:
    """Return the largest memory that one step needs beside weights and KV, in bytes."""
    fixed, settings, shape = overhead(scenario.settings), scenario.settings, scenario.model.shape
    batch, parameters = _batch(scenario, fixed), scenario.model.parameters
    element = _ELEMENT.get(shape.dtype, 2)
    dense = dense_width(parameters, shape.hidden) if parameters else 4.0 * shape.hidden
    peaks = [activation_bytes(batch.tokens, shape.hidden, dense, element, settings.tp)]
    if parameters is not None:
        peaks.append(_expert_peak(scenario, parameters, batch.tokens, element))
        # The sampler runs after the last layer: its logits and the layers' activations never coexist.
        peaks.append(
            logits_bytes(batch.sequences, parameters.lm_head_matmul / shape.hidden, fixed.logit_bytes)
        )
    return float(max(peaks)) + _encoder_outputs(scenario, batch.tokens, element)


def step_tokens(scenario: Scenario) -> int:
    """Return the most tokens that one step computes: a longer prompt is prefilled in chunks of these."""
    return _batch(scenario, overhead(scenario.settings)).tokens


def step_sequences(scenario: Scenario) -> int:
    """Return the most sequences that one step computes."""
    return _batch(scenario, overhead(scenario.settings)).sequences


def _batch(scenario: Scenario, fixed: Overhead) -> Batch:
    """Return the largest step: as the user set it, or the engine's default on this device."""
    settings, hardware = scenario.settings, scenario.hardware
    default = fixed.batch(hardware.device.capacity, hardware.name)
    tokens, sequences = default.tokens, default.sequences
    if kind_of(settings.engine).has_slots:
        tokens = sequences = settings.ubatch
    longest = settings.max_len or scenario.model.shape.max_tokens or 0
    if longest <= fixed.whole_prompts:
        tokens = max(tokens, longest)
    tokens = settings.max_batched_tokens or tokens
    return Batch(default.memory, tokens, min(settings.max_seqs or sequences, tokens))


def _expert_peak(scenario: Scenario, parameters: Parameters, tokens: int, element: int) -> float:
    """Return the peak inside routed experts; data-parallel ranks send each other their tokens."""
    routed = [part for part in parameters.parts if part.name == "experts"]
    if not routed:
        return 0.0
    settings, hidden = scenario.settings, scenario.model.shape.hidden
    gathered = min(tokens * (settings.dp if settings.ep > 1 else 1), max(MOE_CHUNK, tokens))
    cut = 1 if settings.ep > 1 else settings.tp
    chosen = max(part.used for part in routed)
    return float(activation_bytes(gathered, hidden, _width(routed, hidden), element, cut, chosen))


def _encoder_outputs(scenario: Scenario, tokens: int, element: int) -> float:
    """Return the embeddings of images that wait for the decoder: one batch of them, at least."""
    parameters, workload = scenario.model.parameters, scenario.workload
    sees = parameters is not None and any(part.name == "vision_tower" for part in parameters.parts)
    if not sees and not workload.images:
        return 0.0
    return float(max(tokens, workload.image_tokens) * scenario.model.shape.hidden * element)


def _communication(scenario: Scenario, fixed: Overhead) -> float:
    settings, link = scenario.settings, scenario.hardware.interconnect
    if settings.tp * settings.pp * settings.ep == 1:
        return 0.0
    # A bridge joins two cards; only switched links carry the collectives with large buffers.
    switched = link is not None and link.via.startswith("nvlink") and not link.via.endswith("bridge")
    return fixed.communication_nvlink if switched else fixed.communication


def _utilization(scenario: Scenario, fixed: Overhead) -> float:
    if fixed.rule != "reserved":
        return fixed.utilization
    settings, batch = scenario.settings, _batch(scenario, fixed)
    ranks = settings.tp * settings.pp
    return float(static_share(scenario.hardware.device.capacity, batch.tokens, batch.sequences, ranks))


def _what_is_assumed(fixed: Overhead) -> str:
    error = ""
    if fixed.checked:
        error = (
            f"; against {fixed.checked.logs} logs that print the KV memory the median error is "
            f"{fixed.checked.median:.1%}, the worst {fixed.checked.worst:.0%}"
        )
    return (
        "memory besides weights and KV (activations, context, graphs and buffers) is modelled, not "
        f"measured ({fixed.source}{error}); --pool replaces it"
    )


def weight_bytes(scenario: Scenario, book: Notebook) -> float:
    """Return the weights of the GPU that holds most, in bytes."""
    parameters = counted(scenario, book)
    if parameters is None:
        return 0.0
    settings = scenario.settings
    if settings.ep > 1 and not parameters.experts:
        raise SettingsError(f"--ep: {scenario.model.name} has no experts to spread; valid is 1")
    draft = settings.spec_tokens > 0
    own = float(parameters.bytes_per_rank(settings.tp, settings.ep, settings.pp, draft))
    if not scenario.serving.lora:
        return own
    from kvcalc.planning.adapters import adapter_bytes

    return own + adapter_bytes(scenario, parameters)


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
        changed = with_dtype(parameters, scenario.overrides.weights_dtype)
        # A separate draft is a checkpoint of its own.
        return changed if scenario.draft is None else replace(changed, draft=parameters.draft)
    book.source("memory.weights", Source("derived", "parameter count of the model's shape"))
    return parameters


def dense_width(parameters: Parameters, hidden: int) -> float:
    """Return the intermediate width of the widest MLP that every token passes through."""
    widths = [
        _width([part for part in parameters.parts if part.name == name], hidden)
        for name in ("mlp", "shared_experts")
    ]
    return max(widths)


def _width(parts: list[Part], hidden: int) -> float:
    """Return the width of the gated MLP that has as many active parameters as one layer of `parts`."""
    by_layer: dict[int, float] = {}
    for part in parts:
        for layer in part.layers or ():
            by_layer[layer] = by_layer.get(layer, 0.0) + part.active / len(part.layers or ())
    # Three matrices of hidden x width make a gated MLP: gate, up and down.
    return max(by_layer.values(), default=0.0) / (3 * hidden)


def kv_budget(scenario: Scenario, memory: Memory, book: Notebook) -> float:
    """Return the bytes for KV on one GPU: the pool, or the blocks that `--num-blocks` makes of it."""
    blocks, pool = scenario.settings.num_blocks, float(memory.kv_pool)
    if blocks is None or memory.block_bytes is None:
        return pool
    size = blocks * float(memory.block_bytes)
    if size > pool:
        book.warn(
            f"--num-blocks: {blocks:,} blocks take {part_text(size)}, more than the {part_text(pool)} "
            "left for KV"
        )
    return size


def tell_longest(scenario: Scenario, tokens: int, book: Notebook) -> None:
    """Warn of sequences that are longer than the engine was told to admit, or than the model declares."""
    declared, admitted = scenario.model.shape.max_tokens, scenario.settings.max_len
    if admitted is not None and tokens > admitted:
        book.warn(f"--max-len: {admitted:,} is less than the {tokens:,} tokens of --prompt and --generate")
    elif declared is not None and tokens > declared:
        book.warn(
            f"{scenario.model.name} declares {declared:,} tokens at most, fewer than the {tokens:,} of "
            "--prompt and --generate: engines refuse longer requests unless told otherwise"
        )


def _tell_slots(scenario: Scenario, running: int, book: Notebook) -> None:
    """Warn where the engine would run fewer sequences at once than memory is counted for."""
    settings = scenario.settings
    option, slots = "--max-seqs", settings.max_seqs
    if kind_of(settings.engine).has_slots:
        option, slots = "--parallel", settings.parallel
    if slots is not None and slots < running:
        book.warn(
            f"{option}: {settings.engine} runs {slots:,} of the {running:,} sequences at once, the others "
            "wait; room and speed are counted for all of them"
        )


def capacity_of(scenario: Scenario, layout: Layout, memory: Memory, book: Notebook) -> Capacity:
    """Return the bytes that the target concurrency reserves against the pool, per GPU."""
    tokens = scenario.workload.prompt + scenario.workload.generate
    tell_longest(scenario, tokens, book)
    session = float(layout.occupied(tokens))
    running = int(sequences_of_replica(scenario.workload.concurrency, scenario.settings.dp))
    _tell_slots(scenario, running, book)
    need = session * running
    budget = kv_budget(scenario, memory, book)
    sessions = layout.sessions(budget, tokens) * scenario.settings.dp
    return Capacity(
        need=need,
        budget=budget,
        utilization=float(book.run(capacity_utilization, need=need, capacity=budget)) if budget else math.inf,
        shortfall=float(book.run(capacity_shortfall, need=need, capacity=budget)),
        sessions=sessions,
    )


def _no_room(scenario: Scenario, weights: float, beside: float, allowed: float) -> str:
    short = weights + beside - allowed
    return (
        f"no memory is left for KV: weights ({part_text(weights)}) and what a step needs beside them "
        f"({part_text(beside)}) exceed the {part_text(allowed)} that the engine may use of one "
        f"{scenario.hardware.name} by {part_text(short)}; it takes more GPUs, a smaller dtype or a larger "
        "--utilization"
    )
