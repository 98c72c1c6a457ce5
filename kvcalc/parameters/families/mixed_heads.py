"""Decoders whose window layers have other heads than their full layers, or a gate per head."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from kvcalc.parameters import dimensions
from kvcalc.parameters.blocks.attention import grouped_query
from kvcalc.parameters.blocks.tensors import linear, norm
from kvcalc.parameters.counts import Layers, Parameters, Part
from kvcalc.parameters.dimensions import Dimensions
from kvcalc.parameters.families.decoder import Style, draft_parts, is_tied, layer_norms, networks, outside
from kvcalc.shapes.config import Config


def where(flags: Sequence[object], wanted: object) -> Layers:
    """Return the layers whose flag is `wanted`."""
    return tuple(layer for layer, flag in enumerate(flags) if flag == wanted)


def _finish(config: Config, d: Dimensions, style: Style, attention: list[Part]) -> Parameters:
    parts = outside(config, d, style) + layer_norms(config, d, style)
    parts += attention + networks(config, d, style)
    return Parameters(tuple(parts), d.layers, tied=is_tied(config, style.tied))


def _gated_heads(d: Dimensions, heads: int, layers: Layers) -> list[Part]:
    parts = grouped_query(d.hidden, heads, d.kv_heads, d.head_dim, d.head_dim, layers, qk_norm="head")
    return parts + linear("attention", "self_attn.g_proj", heads, d.hidden, layers)


def build_laguna(config: Config) -> Parameters:
    """Build Laguna: a head count per layer, and a gate per head."""
    d = dimensions.read(config)
    style = Style(sparse=True, correction=True, correction_trained=True)
    heads = config.integers("num_attention_heads_per_layer", d.layers) or [d.heads] * d.layers
    parts = [part for count in sorted(set(heads)) for part in _gated_heads(d, count, where(heads, count))]
    return _finish(config, d, style, parts)


def build_step(config: Config) -> Parameters:
    """Build Step 3.5 and 3.7: a gate per head, window layers with their own head count."""
    d = dimensions.read(config)
    style = Style(sparse=True, correction="use_moe_router_bias", network="moe")
    other = config.section("attention_other_setting")
    heads = other.integer("num_attention_heads") if other else d.heads
    words = config.words("layer_types")
    words = words[: d.layers] if words else ["full_attention"] * d.layers
    window = where(words, "sliding_attention")
    full = tuple(layer for layer in d.all_layers if layer not in window)
    return _finish(config, d, style, _gated_heads(d, d.heads, full) + _gated_heads(d, heads, window))


def build_mimo(config: Config) -> Parameters:
    """Build MiMo-V2: keys wider than values, more KV heads and sinks in window layers."""
    d = replace(dimensions.read(config), value_dim=config.integer("v_head_dim"))
    style = Style(sparse=True, correction=True)
    pattern = config.integers("hybrid_layer_pattern", d.layers) or [0] * d.layers
    bias = config.flag("attention_bias")
    full = grouped_query(
        d.hidden,
        d.heads,
        d.kv_heads,
        d.head_dim,
        d.value_dim,
        where(pattern, 0),
        bias=bias,
        sinks=config.flag("add_full_attention_sink_bias"),
    )
    window = grouped_query(
        d.hidden,
        config.integer("swa_num_attention_heads", default=d.heads),
        config.size("swa_num_key_value_heads", default=d.kv_heads),
        config.integer("swa_head_dim", default=d.head_dim),
        config.integer("swa_v_head_dim", default=d.value_dim),
        where(pattern, 1),
        bias=bias,
        sinks=config.flag("add_swa_attention_sink_bias"),
    )
    return _finish(config, d, style, full + window)


def build_minimax_m3(config: Config) -> Parameters:
    """Build MiniMax-M3: sparse layers choose key blocks with a small indexer."""
    d = replace(dimensions.read(config), inner=config.integer("dense_intermediate_size"))
    style = Style(sparse=True, correction=True, network="block_sparse_moe")

    def attention(layers: Layers) -> list[Part]:
        return grouped_query(d.hidden, d.heads, d.kv_heads, d.head_dim, d.head_dim, layers, qk_norm="head")

    parts = attention(d.all_layers)
    sparse = config.section("sparse_attention_config")
    if sparse is not None:
        layers = where(sparse.integers("sparse_attention_freq", d.layers) or [], 1)
        heads, dim = sparse.integer("sparse_num_index_heads"), sparse.integer("sparse_index_dim")
        prefix = "self_attn.indexer"
        parts += linear("attention", f"{prefix}.q_proj", heads * dim, d.hidden, layers, split="replicated")
        parts += linear("attention", f"{prefix}.k_proj", dim, d.hidden, layers, split="replicated")
        parts += norm(f"{prefix}.norms", 2 * dim, layers)
    return replace(_finish(config, d, style, parts), draft=draft_parts(config, d, style, attention))


BUILDERS: dict[str, Callable[[Config], Parameters]] = {
    "laguna": build_laguna,
    "step3p5": build_step,
    "step3p7": build_step,
    "mimo_v2_flash": build_mimo,
    "minimax_m3_vl": build_minimax_m3,
    "minimax_m3_vl_text": build_minimax_m3,
}
