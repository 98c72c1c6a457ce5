"""MLA: one latent and one rotary key per token, shared by all heads, instead of keys and values."""

from collections.abc import Sequence
from dataclasses import replace

from kvcalc.shapes.components import Attention, Component, ModelShape, Tensor
from kvcalc.shapes.config import Config
from kvcalc.shapes.families.attention import (
    Dimensions,
    draft_layers,
    full_draft,
    kv_component,
    read_dimensions,
    shape_of,
)

MODEL_TYPES = (
    *("axk1", "deepseek_v2", "deepseek_v3", "glm4_moe_lite", "kimi_k2", "kimi_k25", "kimi_vl"),
    *("longcat_flash", "minicpm3", "mistral4", "sarvam_mla", "youtu"),
)


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
        v_head_dim=config.size("v_head_dim", default=None) or _per_head(config),
        top_k=top_k,
    )


def _per_head(config: Config) -> int:
    """Return the value width of configs that leave it out, as MiniCPM3 does."""
    return config.size("hidden_size") // config.size("num_attention_heads")


def latent_dimensions(config: Config) -> Dimensions:
    """Read the dimensions; LongCat runs two attentions in each of its `num_layers` layers."""
    dimensions = read_dimensions(config)
    if config.model_type == "longcat_flash":
        doubled = 2 * config.size("num_layers", default=dimensions.layers // 2)
        return replace(dimensions, layers=doubled)
    return dimensions


def build(config: Config) -> ModelShape:
    """Build the shape of a model whose layers are all MLA.

    Small members of the DeepSeek-V2 family have `use_mla` false or no latent rank; they attend
    in the ordinary way.
    """
    dimensions = latent_dimensions(config)
    if (method := config.own("attention_method", default="MLA")) != "MLA":
        raise config.refuse("attention_method", f"{method!r:.60} is not understood")
    rank = config.own("kv_lora_rank")
    if rank is None or not config.flag("use_mla", default=True):
        config.own("use_mla", "qk_rope_head_dim", "qk_nope_head_dim", "v_head_dim")
        component = dimensions.component("full_attention", range(dimensions.layers))
        return shape_of(config, dimensions, [component], draft=full_draft(config, dimensions))
    draft = draft_layers(config, dimensions.layers)
    shape = shape_of(
        config,
        dimensions,
        [read_mla(config, range(dimensions.layers))],
        draft=(read_mla(config, draft),) if draft else (),
    )
    if config.model_type == "minicpm3":
        return replace(shape, engine_components={"vllm": (_expanded(shape.components[0]),)})
    return shape


def _expanded(latent: Component) -> Component:
    """Return what vLLM caches of MiniCPM3: all heads expanded, values padded to the keys' width."""
    attention = latent.attention
    assert attention is not None
    heads, width = attention.query_heads, attention.key_dim
    return kv_component("full_attention", latent.layers, heads, width, width, heads)
