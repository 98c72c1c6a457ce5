"""Dense decoders, one line a `model_type`: what differs from a plain Llama layer."""

from dataclasses import replace
from functools import partial

from kvcalc.parameters import dimensions
from kvcalc.parameters.blocks.tensors import norm, vector
from kvcalc.parameters.counts import Part
from kvcalc.parameters.dimensions import Dimensions
from kvcalc.parameters.families.decoder import Style, build
from kvcalc.shapes.config import Config
from kvcalc.shapes.families.multi_query import kv_heads

# Of the configuration classes of transformers 5.24, beside what `kvcalc.shapes.defaults` has.
_GEMMA_3 = {"vocab_size": 262_208, "intermediate_size": 9216}
_LLAMA_1 = {"vocab_size": 32_000, "intermediate_size": 11_008}
_QWEN_2_CLASS = {"vocab_size": 151_936, "intermediate_size": 22_016}


def _learned_positions(config: Config, d: Dimensions) -> list[Part]:
    count = config.integer("n_positions", "max_position_embeddings")
    return vector("embedding", "wpe", count * d.hidden)


def _embedding_norm(config: Config, d: Dimensions) -> list[Part]:
    return norm("word_embeddings_layernorm", d.hidden, bias=True)


def _halved_inner(config: Config, defaults: object) -> Dimensions:
    d = dimensions.read(config)
    return replace(d, inner=d.inner // 2)  # Qwen 1 states the width of gate and up together


def _multi_query(config: Config, defaults: object) -> Dimensions:
    return replace(dimensions.read(config), kv_heads=kv_heads(config))


def _falcon_one_norm(config: Config) -> bool:
    if config.flag("new_decoder_architecture"):
        return config.integer("num_ln_in_parallel_attn", default=2) == 1
    return config.flag("parallel_attn", default=True)


def _opt_extra(config: Config, d: Dimensions) -> list[Part]:
    width = config.integer("word_embed_proj_dim", default=d.hidden)
    if width != d.hidden:
        raise config.refuse("word_embed_proj_dim", f"{width} differs from hidden_size {d.hidden}")
    # OPT's table of positions starts with two rows for padding.
    parts = vector("embedding", "embed_positions", (config.integer("max_position_embeddings") + 2) * width)
    before = config.flag("do_layer_norm_before", default=True)
    return parts + (norm("final_layer_norm", d.hidden, bias=True) if before else [])


def _mpt_positions(config: Config, d: Dimensions) -> list[Part]:
    if not config.flag("no_bias", default=True):
        raise config.refuse("no_bias", "MPT with biases is not understood")
    attention = config.section("attn_config")
    if attention is not None and attention.flag("alibi"):
        return []
    return vector("embedding", "wpe", config.integer("max_seq_len") * d.hidden)


_LLAMA = Style(bias="attention_bias", out_bias="attention_bias", mlp_bias="mlp_bias", defaults=_LLAMA_1)
_QWEN_2 = Style(bias=True, defaults=_QWEN_2_CLASS)
_QWEN_3 = replace(_LLAMA, qk_norm="head", mlp_bias=False)
_PLAIN = Style()
_GPT = Style(norm_bias=True, bias=True, out_bias=True, mlp_bias=True, gated=False)
_GEMMA_2 = replace(_PLAIN, norms=4, tied=True, bias="attention_bias", out_bias="attention_bias")
_GLM_4 = Style(bias="attention_bias", norms=4)
_OLMO_2 = replace(_LLAMA, qk_norm="width", mlp_bias=False)

STYLES = {
    "llama": _LLAMA,
    "llava": _LLAMA,
    "granite": _LLAMA,
    "smollm3": replace(_LLAMA, tied=True),
    "seed_oss": replace(_LLAMA, out_bias="attention_out_bias"),
    "hunyuan_v1_dense": replace(_LLAMA, qk_norm="head", qk_norm_if=("use_qk_norm", True)),
    "internlm": Style(bias=("bias", True), out_bias=("bias", True)),
    "internlm2": Style(bias="bias", out_bias="bias"),
    "internlm3": Style(bias="qkv_bias", out_bias="bias", mlp_bias="bias"),
    "mistral": _PLAIN,
    "ministral": _PLAIN,
    "ministral3": _PLAIN,
    "minicpm": _PLAIN,
    "baichuan": _PLAIN,
    "exaone": _PLAIN,
    "phi3": _PLAIN,
    "phi3_v": _PLAIN,
    "exaone4": Style(qk_norm="head"),
    "qwen2": _QWEN_2,
    "qwen": replace(_QWEN_2, read=_halved_inner),
    "qwen2_vl": _QWEN_2,
    "qwen2_vl_text": _QWEN_2,
    "qwen2_5_vl": _QWEN_2,
    "qwen2_5_vl_text": _QWEN_2,
    "qwen3": _QWEN_3,
    "qwen3_vl_text": _QWEN_3,
    "qwen3_asr_text": _QWEN_3,
    "paddleocr_vl": replace(_LLAMA, bias="use_bias", out_bias="use_bias", mlp_bias="use_bias"),
    "chatglm": Style(
        bias="add_qkv_bias", out_bias="add_bias_linear", mlp_bias="add_bias_linear", headless=False
    ),
    "glm4": _GLM_4,
    "glm4v": _GLM_4,
    "glm4v_text": _GLM_4,
    "cohere": Style(
        norms=1,
        tied=True,
        bias="attention_bias",
        out_bias="attention_bias",
        qk_norm="heads",
        qk_norm_if="use_qk_norm",
    ),
    "cohere2": Style(norms=1, tied=True, bias="attention_bias", out_bias="attention_bias"),
    "gemma": replace(_GEMMA_2, norms=2),
    "gemma2": _GEMMA_2,
    "gemma3_text": replace(_GEMMA_2, qk_norm="head", defaults=_GEMMA_3),
    "olmo": replace(_LLAMA, norms=0, final_norm=False, mlp_bias=False),
    "olmo2": _OLMO_2,
    "olmo3": _OLMO_2,
    "nemotron": replace(_LLAMA, gated=False, norm_bias=True),
    "starcoder2": Style(
        norm_bias=True,
        gated=False,
        tied=True,
        bias=("use_bias", True),
        out_bias=("use_bias", True),
        mlp_bias=("use_bias", True),
    ),
    "gpt2": replace(_GPT, tied=True, extra=_learned_positions),
    "gpt_bigcode": replace(_GPT, tied=True, extra=_learned_positions, read=_multi_query),
    "gpt_neox": replace(_GPT, bias=("attention_bias", True), out_bias=("attention_bias", True)),
    "bloom": replace(_GPT, tied=True, extra=_embedding_norm),
    "phi": replace(_GPT, norms=1, head_bias=True),
    "phi-msft": replace(_GPT, norms=1, head_bias=True),
    "mimo": Style(bias="attention_bias"),
    "opt": replace(_GPT, tied=True, extra=_opt_extra, final_norm=False),
    "mpt": Style(gated=False, tied=True, extra=_mpt_positions),
    "stablelm": Style(
        norm_bias=True,
        bias="use_qkv_bias",
        qk_norm="heads",
        qk_norm_if="qk_layernorm",
        one_norm_if="use_parallel_residual",
    ),
    "falcon": replace(
        _GPT,
        bias="bias",
        out_bias="bias",
        mlp_bias="bias",
        tied=True,
        read=_multi_query,
        one_norm_if=_falcon_one_norm,
    ),
}

BUILDERS = {name: partial(build, style=style) for name, style in STYLES.items()}
