"""MHA, GQA and MQA: one key and one value per KV head and token, in every layer."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kvcalc.shapes.components import LINEAR, Attention, Component, Growth, ModelShape, Tensor
from kvcalc.shapes.config import Config
from kvcalc.shapes.context import longest_context
from kvcalc.shapes.layer_words import assemble, layer_words

MODEL_TYPES = (
    *("apertus", "aquila", "arcee", "arctic", "aria_text", "baichuan", "bitnet", "bloom", "chameleon"),
    *("codegen", "cohere", "emu3_text_model", "ernie4_5", "ernie4_5_moe", "ernie4_5_vl_moe"),
    *("ernie4_5_vl_moe_text", "exaone", "flex_olmo", "fuyu", "gemma", "glm", "glm4", "glm4_moe"),
    *("glm4v", "glm4v_moe", "glm4v_moe_text", "glm4v_text", "glm_ocr_text", "gpt2", "gpt_neox", "gptj"),
    *("granite", "granite4_vision_text", "granite_docling_text", "granitemoe", "granitemoeshared"),
    *("grok-1", "helium", "hunyuan_v1_dense", "hunyuan_vl_text", "hy_v3", "hyperclovax", "internlm"),
    *("internlm2", "internlm3", "jais", "jais2", "llama", "llava", "llava_llama", "minicpm"),
    *("minimax_m2", "molmo", "molmo2_text", "nanochat", "nemotron", "olmo", "olmo2", "olmoe"),
    *("openmoe", "opt", "orion", "paddleocr_vl", "paddleocr_vl_text", "persimmon", "phi", "phi-msft"),
    *("qwen", "seed_oss", "solar_open", "stablelm", "stablelm_epoch", "xverse", "Yi"),
)

LAYERS = ("num_hidden_layers", "n_layer", "num_layers", "n_layers")
HIDDEN = ("hidden_size", "n_embd", "n_embed", "d_model")
QUERY_HEADS = ("num_attention_heads", "n_head", "n_heads", "num_heads")
KV_HEADS = ("num_key_value_heads", "n_head_kv", "num_kv_heads", "num_attention_groups")
HEAD_DIM = ("head_dim", "hidden_size_per_head", "kv_channels", "attention_head_dim")
DRAFT_LAYERS = ("num_nextn_predict_layers", "num_mtp_modules", "num_mtp_layers", "mtp_num_hidden_layers")


@dataclass(frozen=True)
class Dimensions:
    """The head shape that all attention layers of a model share, and its layer count."""

    layers: int
    hidden: int
    query_heads: int
    kv_heads: int
    key_dim: int
    value_dim: int

    def component(self, kind: str, layers: Sequence[int], growth: Growth = LINEAR) -> Component:
        """Return a component of `layers` with these heads."""
        return kv_component(
            kind, layers, self.kv_heads, self.key_dim, self.value_dim, self.query_heads, growth
        )


def kv_entry(heads: int, key_dim: int, value_dim: int) -> tuple[Tensor, ...]:
    """Return the entry of ordinary attention: a key and a value per head."""
    return (Tensor("key", heads, key_dim), Tensor("value", heads, value_dim))


def kv_component(
    kind: str,
    layers: Sequence[int],
    heads: int,
    key_dim: int,
    value_dim: int,
    query_heads: int,
    growth: Growth = LINEAR,
) -> Component:
    """Return a component of ordinary attention layers."""
    return Component(
        kind=kind,
        layers=tuple(layers),
        entry=kv_entry(heads, key_dim, value_dim),
        growth=growth,
        attention=Attention(query_heads, key_dim, value_dim),
    )


def read_dimensions(config: Config, kv_heads: int | None = None) -> Dimensions:
    """Read layer count and head shape under any of their names.

    `kv_heads` is for families whose KV heads follow a rule of their own.  `head_dim` wins over
    hidden / heads wherever it is given: Qwen3-32B has 64 heads of 128 on a hidden size of 5120.
    """
    query_heads = config.size(*QUERY_HEADS)
    hidden = config.size(*HIDDEN)
    if kv_heads is None:
        kv_heads = config.size(*KV_HEADS, default=query_heads)
    head_dim = config.integer(*HEAD_DIM, default=0) or hidden // query_heads
    if head_dim < 1:
        raise config.refuse(QUERY_HEADS[0], f"{query_heads} heads do not fit a hidden size of {hidden}")
    return Dimensions(
        layers=config.layer_count(*LAYERS),
        hidden=hidden,
        query_heads=query_heads,
        kv_heads=kv_heads,
        key_dim=head_dim,
        value_dim=head_dim,
    )


def draft_layers(config: Config, layers: int) -> range:
    """Return the indices of the MTP layers, which follow the model's own; empty without MTP."""
    drafts = config.layer_count(*DRAFT_LAYERS, default=0, least=0)
    drafts *= config.layer_count("mtp_transformer_layers", default=1, least=0)
    return range(layers, layers + (drafts if config.flag("use_mtp", default=True) else 0))


def full_draft(config: Config, dimensions: Dimensions) -> tuple[Component, ...]:
    """Return the MTP layers of a model whose draft attends in full, with the model's own heads."""
    drafts = draft_layers(config, dimensions.layers)
    return (dimensions.component("full_attention", drafts),) if drafts else ()


def shape_of(
    config: Config,
    dimensions: Dimensions,
    components: Sequence[Component],
    **extra: Any,  # noqa: ANN401 - any further field of ModelShape
) -> ModelShape:
    """Return the shape made of `components`; `extra` sets further fields (draft, notes, ...)."""
    fields: Mapping[str, Any] = {
        "name": config.where,
        "model_type": config.model_type,
        "layers": dimensions.layers,
        "hidden": dimensions.hidden,
        "query_heads": dimensions.query_heads,
        "max_tokens": longest_context(config),
        **extra,
    }
    return ModelShape(components=tuple(part for part in components if part.layers), **fields)


def words_of_type_list(config: Config, layers: int) -> Callable[[int], str]:
    """Return the words that MiniMax's `attn_type_list` gives the layers; without one all are full."""
    types = config.integers("attn_type_list", layers)
    return lambda layer: "full_attention" if types is None or types[layer] == 1 else "linear_attention"


def full_attention_shape(config: Config, dimensions: Dimensions) -> ModelShape:
    """Return the shape of a model whose layers are all full attention, as `layer_types` must agree."""
    components = assemble(
        config,
        layer_words(config, dimensions.layers, words_of_type_list(config, dimensions.layers)),
        {"full_attention": lambda layers: [dimensions.component("full_attention", layers)]},
    )
    return shape_of(config, dimensions, components, draft=full_draft(config, dimensions))


def build(config: Config) -> ModelShape:
    """Build the shape of a model whose layers are all ordinary full attention."""
    return full_attention_shape(config, read_dimensions(config))
