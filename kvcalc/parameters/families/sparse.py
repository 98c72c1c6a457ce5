"""Decoders with ordinary attention and a mixture of experts, one line a `model_type`."""

from dataclasses import replace
from functools import partial

from kvcalc.parameters.families.decoder import Style, build

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
    "hunyuan": Style(
        sparse=True,
        bias="attention_bias",
        out_bias="attention_bias",
        qk_norm="head",
        qk_norm_if=("use_qk_norm", True),
    ),
}

BUILDERS = {name: partial(build, style=style) for name, style in STYLES.items()}
