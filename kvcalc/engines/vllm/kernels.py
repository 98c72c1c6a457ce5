"""Which block sizes the attention kernels take, by kind of attention and compute capability.

Read from the `get_supported_kernel_block_sizes` of the backends that vLLM 0.33 prefers
(`vllm/platforms/cuda.py`, `vllm/v1/attention/backends`).
"""

from dataclasses import dataclass
from math import lcm
from typing import Literal

from kvcalc.engines.vllm.deployment import BLACKWELL, HOPPER, Deployment, is_index, is_latent, is_state
from kvcalc.engines.vllm.models import EXPORTS_NO_STATE

Family = Literal["heads", "latent", "sparse_latent", "sparse_heads", "side_by_side"]


@dataclass(frozen=True)
class Kernel:
    """A backend, when vLLM chooses it, and the smallest block it takes."""

    name: str
    family: Family
    block: int  # smallest block, and the default block size [token]
    capability: int | None = None  # None: any
    quantized: bool | None = None
    width: int | None = None  # widest head


DEFAULT = Kernel("FLASH_ATTN", "heads", 16)

KERNELS: tuple[Kernel, ...] = (
    Kernel("FLASH_ATTN 4 with fp8 KV", "heads", 64, HOPPER, quantized=True, width=512),
    Kernel("FLASH_ATTN 4", "heads", 128, BLACKWELL, quantized=False, width=256),
    Kernel("FLASHMLA", "latent", 64, HOPPER, quantized=True),
    Kernel("FLASH_ATTN_MLA", "latent", 16, HOPPER, quantized=False),
    Kernel("CUTLASS_MLA", "latent", 128, BLACKWELL),
    Kernel("TRITON_MLA", "latent", 16),
    Kernel("FLASHMLA_SPARSE and FLASHINFER_MLA_SPARSE", "sparse_latent", 64),
    Kernel("MINIMAX_M3_SPARSE", "sparse_heads", 128),
    Kernel("FLASHMLA_SPARSE_DSV4", "side_by_side", 256),
    DEFAULT,
)
"""In order of choice: the first that fits is taken."""


def _family(deployment: Deployment) -> Family:
    if deployment.side_by_side:
        return "side_by_side"
    if deployment.has_latent:
        return "sparse_latent" if deployment.has_index else "latent"
    return "sparse_heads" if deployment.has_index else "heads"


def chosen_kernel(deployment: Deployment) -> Kernel:
    """Return the kernel that vLLM chooses."""
    family = _family(deployment)
    widest = max(
        (
            tensor.width
            for part in deployment.components
            if not (is_state(part) or is_latent(part) or is_index(part))
            for tensor in part.entry
        ),
        default=0,
    )
    for kernel in KERNELS:
        if (
            kernel.family == family
            and kernel.capability in (None, deployment.capability)
            and kernel.quantized in (None, deployment.quantized)
            and kernel.width in (None, widest)
        ):
            return kernel
    return DEFAULT


@dataclass(frozen=True)
class Export:
    """A prefill kernel that writes states in the middle of a prompt."""

    grid: int  # tokens between the states it can write, of which blocks are multiples
    capability: int = 0  # lowest major compute capability


EXPORTS = {
    "gated_deltanet": Export(grid=64, capability=HOPPER),  # FlashInfer
    "kda": Export(grid=1, capability=HOPPER),  # FlashKDA; its grid of 16 binds no block
    "mamba2": Export(grid=1),
}


def exports_states(deployment: Deployment, kind: str) -> bool:
    """Whether a layer of this kind writes a checkpoint inside a prefill."""
    export = EXPORTS.get(kind)
    return (
        export is not None
        and kind in deployment.rules.checkpoint_kinds
        and deployment.capability >= export.capability
        and deployment.shape.model_type not in EXPORTS_NO_STATE
    )


def hybrid_alignment(deployment: Deployment, states: frozenset[str], aligned: bool) -> int:
    """Return what the block of a hybrid of attention and states must be a multiple of.

    `aligned`: states are kept at block boundaries, where checkpoints must fall.
    """
    rules = deployment.rules
    kernel = deployment.settings.kernel_block or chosen_kernel(deployment).block
    align = max(kernel, deployment.settings.block_size or 1)
    if deployment.has_latent:
        align = max(align, rules.latent_hybrid_block)
    if aligned and rules.checkpoint_grid:
        align = lcm(align, *(EXPORTS[kind].grid for kind in states if exports_states(deployment, kind)))
    return align
