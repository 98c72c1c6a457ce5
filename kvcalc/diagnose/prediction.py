"""The KV size that an engine logged against kvcalc's own prediction, and why they differ."""

from collections.abc import Iterator
from dataclasses import replace

from kvcalc.diagnose.logs import LogFacts
from kvcalc.diagnose.results import Comparison, MemoryComparison
from kvcalc.engines import EngineSettings, lay_out
from kvcalc.errors import KvcalcError
from kvcalc.shapes.components import ModelShape

SAME = 0.01
"""Difference of two sizes [1] below which they are the same: logs round the memory to 0.01 GiB."""

MEMORY = 0.05
"""Error of the memory model [1]: its median against logs that print the KV memory is about 4 %."""

_POOL = "tokens of the KV pool"


def compared(
    shape: ModelShape, settings: EngineSettings, log: LogFacts, pool: float | None
) -> Comparison | None:
    """Return the logged tokens against those of the same memory; None where the log lacks the memory.

    `pool` is the KV memory per GPU that the plan predicts, which is taken where the log has none.
    """
    size = log.kv_bytes if log.kv_bytes is not None else pool
    if size is None:
        return None
    predicted = lay_out(shape, settings).pool(size).kv_tokens
    if predicted is None or predicted <= 0:
        return None
    if log.kv_tokens is None:
        return Comparison(_POOL, None, float(predicted), None, "the log does not say how many")
    difference = log.kv_tokens / predicted - 1
    return Comparison(
        _POOL,
        log.kv_tokens,
        float(predicted),
        difference,
        _why(shape, settings, log, size, predicted),
    )


def memory_compared(log: LogFacts, predicted: float, total: float) -> MemoryComparison | None:
    """Return the logged KV memory of a GPU against the predicted; None where the log does not say it.

    `total` is the memory of the GPU, by which a difference is told as a share.
    """
    if log.kv_bytes is None:
        return None
    told = f"the engine found {log.kv_bytes / 1e9:.2f} GB for KV, kvcalc predicts {predicted / 1e9:.2f} GB"
    if predicted <= 0:
        return MemoryComparison(log.kv_bytes, predicted, None, f"{told}: the weights fill the GPU")
    difference = log.kv_bytes / predicted - 1
    if abs(difference) <= MEMORY:
        why = "the same within the error of the memory model"
    else:
        share = (log.kv_bytes - predicted) / total
        less = (
            "other programs, larger activations or graphs" if share < 0 else "smaller activations or batches"
        )
        why = f"as if the engine might use {share:+.1%} of the GPU's memory: another --utilization, or {less}"
    return MemoryComparison(log.kv_bytes, predicted, difference, f"{told}: {why}")


def _why(shape: ModelShape, settings: EngineSettings, log: LogFacts, size: float, predicted: float) -> str:
    logged = log.kv_tokens or 0.0
    told = f"the engine holds {logged:,.0f} tokens, kvcalc predicts {predicted:,.0f}"
    if abs(logged / predicted - 1) <= SAME:
        return f"{told}: the same within the rounding of the log"
    for change, other in _alternatives(settings):
        try:
            tokens = lay_out(shape, other).pool(size).kv_tokens
        except KvcalcError:
            continue
        if tokens and abs(logged / tokens - 1) <= SAME:
            return f"{told}; with {change} it predicts {tokens:,.0f}, so the engine runs with that"
    if log.kv_bytes is None:
        return f"{told}; the log lacks its KV memory, so that weights and activations may be the difference"
    return f"{told}; no other KV dtype, parallelism or block size explains it"


def _alternatives(settings: EngineSettings) -> Iterator[tuple[str, EngineSettings]]:
    """Yield single changes that people forget to say."""
    for dtype in ("auto", "fp8", "bf16"):
        if dtype != settings.kv_dtype:
            yield f"--kv-dtype {dtype}", replace(settings, kv_dtype=dtype)
    for tp in (1, 2, 4, 8, 16):
        if tp != settings.tp:
            yield f"--tp {tp}", replace(settings, tp=tp)
    for pp in (2, 4):
        if pp != settings.pp:
            yield f"--pp {pp}", replace(settings, pp=pp)
    if settings.spec_tokens == 0:
        yield "a draft of its own (--spec-tokens 1)", replace(settings, spec_tokens=1)
    if settings.hybrid_manager:
        yield "--no-hybrid-manager", replace(settings, hybrid_manager=False)
