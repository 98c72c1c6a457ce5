"""Gemma 4: two head widths, shared keys and values, per-layer embeddings, experts beside the network."""

from kvcalc.parameters import dimensions, mixtures
from kvcalc.parameters.blocks.attention import grouped_query
from kvcalc.parameters.blocks.feedforward import feed_forward, mixture
from kvcalc.parameters.blocks.frame import frame
from kvcalc.parameters.blocks.tensors import linear, norm, vector
from kvcalc.parameters.counts import Layers, Parameters, Part
from kvcalc.parameters.dimensions import Dimensions
from kvcalc.parameters.families.decoder import is_tied
from kvcalc.shapes.config import Config

_DEFAULTS = {"global_head_dim": 512, "vocab_size_per_layer_input": 262_144, "_pattern": 6}
"""Of the model class, for keys that equal them and are therefore left out."""


def build(config: Config) -> Parameters:
    """Build the language model of Gemma 4 in any size."""
    d = dimensions.read(config)
    tied = is_tied(config, True)
    own = d.layers - config.integer("num_kv_shared_layers", default=0)
    full = _full_layers(config, d.layers)
    window = tuple(layer for layer in d.all_layers if layer not in full)
    equal = config.flag("attention_k_eq_v")
    kv_heads = config.size("num_global_key_value_heads", default=d.kv_heads) if equal else d.kv_heads
    wide = config.integer("global_head_dim", default=_DEFAULTS["global_head_dim"])
    parts = frame(d.vocabulary, d.hidden, tied=tied)
    for layers, heads, dim, shared in (
        (window, d.kv_heads, d.head_dim, False),
        (full, kv_heads, wide, equal),
    ):
        parts += _attention(d, heads, dim, layers, own, shared)
    parts += _networks(config, d, own) + _layer_inputs(config, d)
    for name in ("input", "post_attention", "pre_feedforward", "post_feedforward"):
        parts += norm(f"{name}_layernorm", d.hidden, d.all_layers)
    return Parameters(tuple(parts), d.layers, tied=tied)


def _full_layers(config: Config, layers: int) -> Layers:
    words = config.words("layer_types", layers)
    if words is None:
        period = _DEFAULTS["_pattern"]
        return tuple(layer for layer in range(layers) if not (layer + 1) % period or layer == layers - 1)
    return tuple(layer for layer, word in enumerate(words) if word == "full_attention")


def _attention(d: Dimensions, kv_heads: int, dim: int, layers: Layers, own: int, equal: bool) -> list[Part]:
    """Return attention of layers with their own keys and values, then of those that reuse them."""
    first = tuple(layer for layer in layers if layer < own)
    rest = tuple(layer for layer in layers if layer >= own)
    parts = grouped_query(d.hidden, d.heads, kv_heads, dim, dim, first, qk_norm="head", shared_value=equal)
    parts += linear("attention", "self_attn.q_proj", d.heads * dim, d.hidden, rest)
    parts += norm("self_attn.q_norm", dim, rest)
    return parts + linear("attention", "self_attn.o_proj", d.hidden, d.heads * dim, rest)


def _networks(config: Config, d: Dimensions, own: int) -> list[Part]:
    double = config.flag("use_double_wide_mlp")
    first = tuple(layer for layer in d.all_layers if layer < own or not double)
    rest = tuple(layer for layer in d.all_layers if layer >= own and double)
    parts = feed_forward(d.hidden, d.inner, first) + feed_forward(d.hidden, 2 * d.inner, rest)
    if not config.flag("enable_moe_block"):
        return parts
    m, layers = mixtures.read(config), d.all_layers
    parts += mixture(d.hidden, m.inner, m.experts, m.top_k, layers, prefix="moe")
    parts += vector("router", "router.scale", d.hidden + m.experts, layers)
    return parts + norm("expert_layernorms", 3 * d.hidden, layers)


def _layer_inputs(config: Config, d: Dimensions) -> list[Part]:
    """Return the embeddings that feed every layer, and what mixes them in."""
    width = config.integer("hidden_size_per_layer_input", default=0)
    rows = config.integer("vocab_size_per_layer_input", default=_DEFAULTS["vocab_size_per_layer_input"])
    if not width:
        return []
    packed = d.layers * width
    parts = vector("embedding", "embed_tokens_per_layer", rows * packed, split="columns")
    parts += linear("other", "per_layer_model_projection", packed, d.hidden, quantizable=False)
    parts += norm("per_layer_projection_norm", width)
    parts += linear("other", "per_layer_input_gate", width, d.hidden, d.all_layers, split="replicated")
    parts += linear("other", "per_layer_projection", d.hidden, width, d.all_layers, split="replicated")
    return parts + norm("post_per_layer_input_norm", d.hidden, d.all_layers)


BUILDERS = {"gemma4_text": build}
