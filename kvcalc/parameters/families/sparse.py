"""Decoders with ordinary attention and a mixture of experts, one line a `model_type`."""

from dataclasses import replace
from functools import partial

from kvcalc.parameters import dimensions, mixtures
from kvcalc.parameters.blocks.feedforward import mixture
from kvcalc.parameters.counts import Parameters
from kvcalc.parameters.dimensions import Dimensions
from kvcalc.parameters.families.decoder import Style, attention, build, layer_norms, outside
from kvcalc.shapes.config import Config


def _llama_4(config: Config, defaults: object) -> Dimensions:
    d = dimensions.read(config)
    return replace(d, inner=config.integer("intermediate_size_mlp"))  # of the dense layers


def _build_dbrx(config: Config) -> Parameters:
    style, d = Style(), dimensions.read(config)
    heads, network = config.section("attn_config"), config.section("ffn_config")
    if heads is None or network is None:
        raise config.refuse("attn_config", "DBRX states its sizes in attn_config and ffn_config")
    d = replace(d, kv_heads=heads.integer("kv_n_heads"))
    sizes = mixtures.read(network)
    parts = outside(config, d, style) + layer_norms(config, d, style) + attention(config, d, style)
    parts += mixture(d.hidden, sizes.inner, sizes.experts, sizes.top_k, d.all_layers, prefix="ffn")
    return Parameters(tuple(parts), d.layers)


_QWEN_3 = Style(sparse=True, bias="attention_bias", out_bias="attention_bias", qk_norm="head")

STYLES = {
    "mixtral": Style(sparse=True, network="block_sparse_moe"),
    "qwen2_moe": Style(sparse=True, bias=("qkv_bias", True), shared_gate=True, shared_name="shared_expert"),
    "qwen3_moe": _QWEN_3,
    "qwen3_vl_moe_text": _QWEN_3,
    "dots1": replace(_QWEN_3, correction=True),
    "minimax_m2": Style(
        sparse=True, network="block_sparse_moe", qk_norm="width", correction=("use_routing_bias", True)
    ),
    "glm4_moe": Style(
        sparse=True, bias="attention_bias", qk_norm="head", qk_norm_if="use_qk_norm", correction=True
    ),
    "ernie4_5_moe": Style(
        sparse=True,
        bias="use_bias",
        out_bias="use_bias",
        mlp_bias="use_bias",
        correction=True,
        correction_trained=True,
    ),
    "phimoe": Style(
        sparse=True,
        bias="attention_bias",
        out_bias="attention_bias",
        norm_bias=True,
        head_bias="lm_head_bias",
    ),
    "gpt_oss": Style(
        sparse=True,
        bias=("attention_bias", True),
        out_bias=("attention_bias", True),
        expert_bias=True,
        router_bias=True,
        sinks=True,
    ),
    "llama4_text": Style(sparse=True, network="feed_forward", shared_default=1, read=_llama_4),
    "hunyuan": Style(
        sparse=True,
        bias="attention_bias",
        out_bias="attention_bias",
        qk_norm="head",
        qk_norm_if=("use_qk_norm", True),
    ),
}

BUILDERS = {name: partial(build, style=style) for name, style in STYLES.items()} | {"dbrx": _build_dbrx}
