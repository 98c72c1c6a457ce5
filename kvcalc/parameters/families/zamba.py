"""Zamba 2: Mamba-2 layers, and a few transformer blocks that many layers share."""

from kvcalc.parameters.blocks.attention import grouped_query
from kvcalc.parameters.blocks.feedforward import feed_forward
from kvcalc.parameters.blocks.frame import frame
from kvcalc.parameters.blocks.state import Mamba2Sizes, mamba_2
from kvcalc.parameters.blocks.tensors import linear, norm
from kvcalc.parameters.counts import Parameters, Part
from kvcalc.parameters.families.decoder import is_tied
from kvcalc.shapes.config import Config


def build(config: Config) -> Parameters:
    """Build Zamba 2.

    A shared block belongs to no layer of its own, so its parts stand outside the layer stack; per
    token each block runs once for every layer that calls it.
    """
    if config.flag("use_shared_attention_adapter"):
        raise config.refuse("use_shared_attention_adapter", "attention adapters are not understood")
    hidden, layers = config.integer("hidden_size"), tuple(range(config.layer_count("num_hidden_layers")))
    callers = tuple(config.integers("hybrid_layer_ids") or ())
    tied = is_tied(config, True)
    sizes = Mamba2Sizes(
        hidden,
        config.integer("n_mamba_heads"),
        config.integer("mamba_headdim"),
        config.size("mamba_ngroups"),
        config.integer("mamba_d_state"),
        config.integer("mamba_d_conv"),
    )
    parts = frame(config.integer("vocab_size"), hidden, tied=tied)
    parts += norm("input_layernorm", hidden, layers) + mamba_2(sizes, layers, prefix="mamba")
    inner, rank = config.integer("intermediate_size"), config.integer("adapter_rank")
    parts += linear("mlp", "adapter.0", rank, hidden, callers, split="replicated")
    parts += linear("mlp", "adapter.1", 2 * inner, rank, callers)
    parts += linear("other", "linear", hidden, hidden, callers, split="replicated")
    blocks = tuple(range(config.layer_count("num_mem_blocks")))
    shared = _shared_blocks(config, hidden, inner, blocks)
    return Parameters(tuple(parts + shared), len(layers), tied=tied)


def _shared_blocks(config: Config, hidden: int, inner: int, blocks: tuple[int, ...]) -> list[Part]:
    heads, dim = config.integer("num_attention_heads"), config.integer("attention_head_dim")
    kv_heads = config.size("num_key_value_heads")
    wide = config.integer("attention_hidden_size")  # hidden states beside the embeddings
    attention = grouped_query(wide, heads, kv_heads, dim, dim, blocks)
    kept = [part for part in attention if not part.module.endswith("o_proj")]
    kept += linear("attention", "self_attn.o_proj", hidden, heads * dim, blocks)
    kept += feed_forward(hidden, inner, blocks, prefix="feed_forward")
    kept += norm("input_layernorm", wide, blocks) + norm("pre_ff_layernorm", hidden, blocks)
    return [part.moved_to(part.name) for part in kept]


BUILDERS = {"zamba2": build}
