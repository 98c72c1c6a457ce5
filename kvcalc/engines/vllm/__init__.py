"""vLLM: paged blocks in one pool per GPU, by the rules of each version."""

from dataclasses import replace

from kvcalc.engines.checks import check_ranks
from kvcalc.engines.layout import Layout
from kvcalc.engines.settings import EngineSettings
from kvcalc.engines.vllm.deployment import Deployment, is_state
from kvcalc.engines.vllm.layout import VllmLayout, hybrid_note
from kvcalc.engines.vllm.legacy import V0Layout
from kvcalc.engines.vllm.models import refuse_not_understood, support_notes
from kvcalc.engines.vllm.versions import default_utilization, rules_for
from kvcalc.errors import SettingsError
from kvcalc.shapes.components import ModelShape

__all__ = ["V0Layout", "VllmLayout", "default_utilization", "lay_out"]


def lay_out(shape: ModelShape, settings: EngineSettings) -> Layout:
    """Return how vLLM holds `shape`."""
    settings = replace(settings, engine="vllm")
    check_ranks(shape, settings, settings.tp)
    _check_dealt_heads(shape, settings)
    _check_block(settings)
    refuse_not_understood(shape)
    deployment = Deployment(shape, settings, rules_for(settings.version))
    if not deployment.components:
        raise SettingsError(f"{shape.name}: nothing is cached, so vLLM has no KV cache to lay out")
    notes = support_notes(shape, settings.version)
    if not deployment.rules.paged_pool:
        return V0Layout(deployment, notes)
    return VllmLayout(deployment, notes + hybrid_note(deployment))


KERNEL_BLOCK = 16
"""Blocks are multiples of this [token]: what attention kernels support (`attention/backends`)."""

CPU_BLOCKS = (1, 8)
"""Smaller blocks that `CacheConfig.block_size` lists besides, for CPUs and some ROCm kernels [token]."""


def _check_block(settings: EngineSettings) -> None:
    block = settings.block_size
    if block is None or block % KERNEL_BLOCK == 0 or block in CPU_BLOCKS:
        return
    above = -(-block // KERNEL_BLOCK) * KERNEL_BLOCK
    near = [str(size) for size in (above - KERNEL_BLOCK, above) if size]
    raise SettingsError(
        f"--block-size: vLLM takes multiples of {KERNEL_BLOCK} (and 1 or 8 on a CPU), not {block}; "
        f"nearest is {' or '.join(near)}"
    )


def _check_dealt_heads(shape: ModelShape, settings: EngineSettings) -> None:
    """Refuse to deal out positions among more ranks than hold the same heads."""
    cached = shape.components_for("vllm")
    heads = max((part.kv_heads or 0 for part in cached if not is_state(part)), default=0)
    if settings.dcp > 1 and heads and settings.tp // heads < settings.dcp:
        raise SettingsError(
            f"--dcp: {settings.dcp} exceeds the copies of {shape.name}'s {heads} KV heads on "
            f"{settings.tp} ranks; valid is at most {max(1, settings.tp // heads)}"
        )
