"""Phi-3-small: every other layer attends to blocks of tokens only, yet all layers keep all tokens."""

from kvcalc.shapes.components import ModelShape
from kvcalc.shapes.config import Config
from kvcalc.shapes.families.attention import full_attention_shape, read_dimensions

MODEL_TYPES = ("phi3small",)

PATTERN = (
    "blocksparse_block_size",
    "blocksparse_homo_head_pattern",
    "blocksparse_num_local_blocks",
    "blocksparse_triton_kernel_block_size",
    "blocksparse_vert_stride",
    "dense_attention_every_n_layers",
)
"""Which tokens a query sees: vertical stripes over the whole context, so that none can be dropped."""


def build(config: Config) -> ModelShape:
    """Build full caches; only what is read of them is sparse (vLLM up to 0.8 allocates them so)."""
    config.own(*PATTERN)
    return full_attention_shape(config, read_dimensions(config))
