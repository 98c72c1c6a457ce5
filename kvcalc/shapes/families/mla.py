"""MLA: one latent and one rotary key per token, shared by all heads, instead of keys and values."""

from collections.abc import Sequence

from kvcalc.shapes.components import Attention, Component, ModelShape, Tensor
from kvcalc.shapes.config import Config
from kvcalc.shapes.families.attention import LAYERS, read_dimensions, shape_of

MODEL_TYPES = ("deepseek_v2", "deepseek_v3", "kimi_k2")


def mla_component(
    layers: Sequence[int],
    kv_lora_rank: int,
    qk_rope_head_dim: int,
    query_heads: int,
    qk_nope_head_dim: int,
    v_head_dim: int,
    top_k: int | None = None,
) -> Component:
    """Return a component of MLA layers; a rotary width of 0 (NoPE) leaves the latent alone."""
    entry = [Tensor("latent", 1, kv_lora_rank, split="replicated")]
    if qk_rope_head_dim:
        entry.append(Tensor("rope_key", 1, qk_rope_head_dim, split="replicated"))
    return Component(
        kind="mla",
        layers=tuple(layers),
        entry=tuple(entry),
        attention=Attention(query_heads, qk_nope_head_dim + qk_rope_head_dim, v_head_dim, top_k),
    )


def indexer_component(layers: Sequence[int], heads: int, width: int) -> Component:
    """Return the keys by which a sparse indexer of `heads` query heads picks tokens, one per token."""
    return Component(
        kind="indexer",
        layers=tuple(layers),
        entry=(Tensor("index_key", 1, width, split="replicated", storage="index"),),
        attention=Attention(query_heads=heads, key_dim=width, value_dim=0),
    )


def read_mla(config: Config, layers: Sequence[int], top_k: int | None = None) -> Component:
    """Read the latent's widths under the names that DeepSeek-V2 gave them."""
    return mla_component(
        layers,
        kv_lora_rank=config.size("kv_lora_rank"),
        qk_rope_head_dim=config.integer("qk_rope_head_dim"),
        query_heads=config.size("num_attention_heads"),
        qk_nope_head_dim=config.integer("qk_nope_head_dim"),
        v_head_dim=config.size("v_head_dim"),
        top_k=top_k,
    )


def read_draft_layers(config: Config) -> range:
    """Return the indices of the MTP layers, which follow the model's own."""
    layers = config.size(*LAYERS)
    return range(layers, layers + config.integer("num_nextn_predict_layers", default=0))


def build(config: Config) -> ModelShape:
    """Build the shape of a model whose layers are all MLA (or, without a latent rank, ordinary)."""
    dimensions = read_dimensions(config)
    draft = read_draft_layers(config)
    if config.own("kv_lora_rank") is None:
        component = dimensions.component("full_attention", range(dimensions.layers))
        return shape_of(config, dimensions, [component], draft=())
    return shape_of(
        config,
        dimensions,
        [read_mla(config, range(dimensions.layers))],
        draft=(read_mla(config, draft),) if draft else (),
    )
