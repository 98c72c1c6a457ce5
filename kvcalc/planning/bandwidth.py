"""What memory traffic a target throughput needs of each GPU, against what the GPU sustains."""

from collections.abc import Callable
from typing import Any

from kvcalc.formulas.capacity import bandwidth_utilization
from kvcalc.formulas.decode import decode_bandwidth_need
from kvcalc.planning.decode import DecodeModel, mean_context
from kvcalc.planning.notebook import Notebook
from kvcalc.quantity import BytesPerSecond, Count, Tokens, TokensPerSecond
from kvcalc.results import Bandwidth

PACE = 20.0
"""Tokens per second and sequence [token/second] that a plan aims at when no rate is given: faster than
people read, about the slowest that serving targets accept; assumed."""


def bandwidth_of(model: DecodeModel, book: Notebook) -> Bandwidth:
    """Return the memory traffic that the target throughput needs, per GPU, against what it sustains."""
    workload = model.scenario.workload
    target = float(target_rate(workload.concurrency, workload.generate, workload.rate))
    if workload.rate is None:
        book.assume(f"target throughput: {PACE:g} token/s for each sequence, since no --rate is given")
    context = mean_context(workload)
    need = float(traffic(model, float(workload.concurrency), context, target, book.run))
    budget = sustained(model)
    return Bandwidth(
        need=need,
        budget=budget,
        utilization=float(book.run(bandwidth_utilization, need=need, bandwidth=budget)),
        target_tokens_per_second=target,
    )


def target_rate(concurrency: Count, generate: Tokens, rate: float | None) -> TokensPerSecond:
    """Return the tokens per second that all sequences together ask for."""
    return concurrency * PACE if rate is None else rate * generate


def sustained(model: DecodeModel) -> float:
    """Return the bytes per second that one GPU reads of its memory."""
    hardware = model.scenario.hardware
    return hardware.device.bandwidth * hardware.decode_efficiency.mid


def _call(formula: Callable[..., Any], **arguments: Any) -> Any:  # noqa: ANN401 - any formula
    return formula(**arguments)


def traffic(
    model: DecodeModel,
    concurrency: Count,
    context: Tokens,
    target: TokensPerSecond,
    run: Callable[..., Any] = _call,
) -> BytesPerSecond:
    """Return the bytes per second that one GPU reads for `target` tokens per second; arrays too."""
    settings = model.scenario.settings
    batch = model.stage_batch(concurrency)
    running = batch * settings.pp
    # Each pipeline stage reads its weights once for each of the shares that the sequences are cut into.
    weights = model.read_weights(batch) * settings.pp
    kv = running * model.read_kv(context)
    if model.draft is not None:
        weights = weights + settings.spec_tokens * model.draft.read_weights(running)
        kv = kv + settings.spec_tokens * running * model.draft.read_kv(context)
    need: BytesPerSecond = run(
        decode_bandwidth_need,
        weights=weights,
        kv=kv,
        rate=target / settings.dp,
        batch=running * model.gained,
    )
    return need
