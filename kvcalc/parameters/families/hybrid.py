"""Hybrids of attention and recurrent layers that share the rest of a Llama layer."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from math import ceil

from kvcalc.errors import UnsupportedModelError
from kvcalc.parameters import dimensions, mixtures
from kvcalc.parameters.blocks.feedforward import feed_forward, mixture
from kvcalc.parameters.blocks.latent import latent_attention, read_latent
from kvcalc.parameters.blocks.state import (
    DeltaSizes,
    Mamba2Sizes,
    delta_attention,
    gated_delta_net,
    lightning_attention,
    mamba_1,
    mamba_2,
    short_convolution,
)
from kvcalc.parameters.blocks.tensors import linear
from kvcalc.parameters.counts import Layers, Parameters, Part
from kvcalc.parameters.dimensions import Dimensions
from kvcalc.parameters.families.decoder import (
    Style,
    attention,
    draft_parts,
    experts,
    is_tied,
    layer_norms,
    networks,
    outside,
)
from kvcalc.shapes.config import MOST_LAYERS, Config

_MOST_STRETCHED = 100  # no model's network is that many times wider than stated

Mixer = Callable[[Config, Dimensions, Style], list[Part]]


def build(config: Config, style: Style, mixer: Mixer) -> Parameters:
    """Build a decoder whose layers differ only in their mixer."""
    d = style.read(config, style.defaults)
    parts = outside(config, d, style) + layer_norms(config, d, style)
    parts += mixer(config, d, style) + networks(config, d, style)
    draft: tuple[Part, ...] = ()
    if mixer is _qwen_mixer:
        draft = draft_parts(config, d, style, lambda layers: attention(config, d, style, layers))
    return Parameters(tuple(parts), d.layers, is_tied(config, style.tied), draft)


def _chosen(words: list[str], *names: str) -> Layers:
    return tuple(layer for layer, word in enumerate(words) if word in names)


def _words(config: Config, layers: int, known: set[str], otherwise: Callable[[int], str]) -> list[str]:
    words = config.words("layer_types", layers) or [otherwise(layer) for layer in range(layers)]
    for word in words:
        if word not in known:
            raise UnsupportedModelError(f"{config.where}: layer_types: {word!r} is not understood")
    return words


def _every_nth_full(config: Config) -> Callable[[int], str]:
    interval = config.size("full_attention_interval", default=4)
    return lambda layer: "linear_attention" if (layer + 1) % interval else "full_attention"


def _qwen_mixer(config: Config, d: Dimensions, style: Style) -> list[Part]:
    known = {"linear_attention", "full_attention"}
    words = _words(config, d.layers, known, _every_nth_full(config))
    sizes = DeltaSizes(
        d.hidden,
        config.integer("linear_num_key_heads"),
        config.integer("linear_num_value_heads"),
        config.integer("linear_key_head_dim"),
        config.integer("linear_value_head_dim"),
        config.integer("linear_conv_kernel_dim"),
    )
    full = attention(config, d, style, _chosen(words, "full_attention"))
    return full + gated_delta_net(sizes, _chosen(words, "linear_attention"))


def _kimi_mixer(config: Config, d: Dimensions, style: Style) -> list[Part]:
    sizes = config.section("linear_attn_config")
    if sizes is None:
        raise config.refuse("linear_attn_config", "missing")
    full = tuple(layer - 1 for layer in sizes.integers("full_attn_layers") or ())
    rest = tuple(layer for layer in d.all_layers if layer not in full)
    gate = config.flag("mla_use_output_gate")
    parts = latent_attention(read_latent(config, d.hidden, d.heads), full, output_gate=gate)
    return parts + delta_attention(
        d.hidden,
        sizes.integer("num_heads"),
        sizes.integer("head_dim"),
        sizes.integer("short_conv_kernel_size"),
        rest,
        full_gate=sizes.flag("use_full_rank_gate"),
    )


def _lightning_mixer(config: Config, d: Dimensions, style: Style) -> list[Part]:
    kinds = config.integers("attn_type_list", d.layers)
    words = _words(
        config,
        d.layers,
        {"linear_attention", "full_attention"},
        lambda layer: "full_attention" if kinds and kinds[layer] else "linear_attention",
    )
    full = attention(config, d, style, _chosen(words, "full_attention"))
    linear = _chosen(words, "linear_attention")
    return full + lightning_attention(d.hidden, d.heads, d.head_dim, linear)


def _lfm_mixer(config: Config, d: Dimensions, style: Style) -> list[Part]:
    full_layers = config.integers("full_attn_idxs") or d.all_layers
    words = _words(
        config,
        d.layers,
        {"conv", "full_attention"},
        lambda layer: "full_attention" if layer in full_layers else "conv",
    )
    kernel, bias = config.integer("conv_L_cache"), config.flag("conv_bias")
    full = attention(config, d, style, _chosen(words, "full_attention"))
    return full + short_convolution(d.hidden, kernel, _chosen(words, "conv"), bias=bias)


def _lfm_dimensions(config: Config, defaults: object) -> Dimensions:
    d = dimensions.read(config)
    inner = config.integer("block_ff_dim", default=d.inner)
    if config.flag("block_auto_adjust_ff_dim", default=True):
        factor = config.own("block_ffn_dim_multiplier", default=1)
        if not isinstance(factor, (int, float)) or not 0 < factor < _MOST_STRETCHED:
            raise config.refuse("block_ffn_dim_multiplier", f"{factor!r:.60} is no sensible factor")
        inner = int(factor * (2 * inner // 3))
        multiple = config.size("block_multiple_of", default=256)
        inner = ceil(inner / multiple) * multiple
    return replace(d, inner=inner)


def mamba_2_sizes(config: Config, hidden: int) -> Mamba2Sizes:
    """Read the sizes of Mamba-2 layers under IBM's and TII's key names."""
    heads = config.size("mamba_n_heads")
    inner = config.integer("mamba_d_ssm", default=0)
    inner = inner or config.integer("mamba_expand", default=2) * hidden
    return Mamba2Sizes(
        hidden,
        heads,
        inner // heads,
        config.size("mamba_n_groups", default=1),
        config.integer("mamba_d_state"),
        config.integer("mamba_d_conv", default=4),
    )


def _mamba_2(config: Config, d: Dimensions, layers: Layers, gated_norm: bool = True) -> list[Part]:
    return mamba_2(
        mamba_2_sizes(config, d.hidden),
        layers,
        bias=config.flag("mamba_proj_bias"),
        conv_bias=config.flag("mamba_conv_bias", default=True),
        gated_norm=gated_norm,
        prefix="mamba",
    )


def _bamba_mixer(config: Config, d: Dimensions, style: Style) -> list[Part]:
    listed = config.integers("attn_layer_indices") or ()
    words = _words(
        config,
        d.layers,
        {"mamba", "attention"},
        lambda layer: "attention" if layer in listed else "mamba",
    )
    return attention(config, d, style, _chosen(words, "attention")) + _mamba_2(
        config, d, _chosen(words, "mamba")
    )


def _falcon_h1_mixer(config: Config, d: Dimensions, style: Style) -> list[Part]:
    gated_norm = config.flag("mamba_rms_norm")
    return attention(config, d, style) + _mamba_2(config, d, d.all_layers, gated_norm)


def _jamba_mixer(config: Config, d: Dimensions, style: Style) -> list[Part]:
    period, offset = config.size("attn_layer_period"), config.integer("attn_layer_offset")
    full = tuple(layer for layer in d.all_layers if layer % period == offset)
    rank = config.own("mamba_dt_rank", default="auto")
    parts = mamba_1(
        d.hidden,
        config.integer("mamba_expand") * d.hidden,
        config.integer("mamba_d_state"),
        ceil(d.hidden / 16) if rank == "auto" else config.integer("mamba_dt_rank"),
        config.integer("mamba_d_conv"),
        tuple(layer for layer in d.all_layers if layer not in full),
        bias=config.flag("mamba_proj_bias"),
        conv_bias=config.flag("mamba_conv_bias", default=True),
        prefix="mamba",
        norms=True,
    )
    return parts + attention(config, d, style, full)


def build_granite(config: Config, style: Style) -> Parameters:
    """Build Granite 4: a shared network in every layer, experts beside it where there are any."""
    d = dimensions.read(config)
    sizes = mixtures.read(config)
    parts = outside(config, d, style) + layer_norms(config, d, style) + _bamba_mixer(config, d, style)
    if sizes.experts:
        parts += experts(config, d.hidden, d.all_layers, style)
    else:
        shared = config.integer("shared_intermediate_size")
        parts += feed_forward(d.hidden, shared, d.all_layers, prefix="shared_mlp")
    return Parameters(tuple(parts), d.layers, tied=is_tied(config, style.tied))


_PATTERN = {"M": "mamba", "*": "attention", "-": "mlp", "E": "moe"}


def _nemotron_words(config: Config) -> list[str]:
    pattern = config.own("hybrid_override_pattern")
    if isinstance(pattern, str) and 0 < len(pattern) <= MOST_LAYERS:
        unknown = set(pattern) - set(_PATTERN)
        if unknown:
            raise UnsupportedModelError(
                f"{config.where}: hybrid_override_pattern: {min(unknown)!r} is not one of M * - E"
            )
        return [_PATTERN[letter] for letter in pattern]
    words = config.words("layers_block_type")
    if words is None or set(words) - set(_PATTERN.values()):
        raise UnsupportedModelError(f"{config.where}: layers_block_type: missing or not understood")
    return words


def build_nemotron(config: Config) -> Parameters:
    """Build Nemotron-H: each layer is one of Mamba-2, attention, network or experts, with one norm."""
    words = _nemotron_words(config)
    d = dimensions.read(config, layers=len(words))
    style = Style(norms=1, bias="attention_bias", out_bias="attention_bias", gated=False)
    parts = outside(config, d, style) + layer_norms(config, d, style)
    sizes = Mamba2Sizes(
        d.hidden,
        config.integer("mamba_num_heads"),
        config.integer("mamba_head_dim"),
        config.size("n_groups"),
        config.integer("ssm_state_size"),
        config.integer("conv_kernel"),
    )
    parts += mamba_2(
        sizes,
        _chosen(words, "mamba"),
        bias=config.flag("mamba_proj_bias"),
        conv_bias=config.flag("use_conv_bias", default=True),
    )
    parts += attention(config, d, style, _chosen(words, "attention"), prefix="mixer")
    bias = config.flag("mlp_bias")
    mlp, moe = _chosen(words, "mlp"), _chosen(words, "moe")
    parts += feed_forward(d.hidden, d.inner, mlp, gated=False, bias=bias, prefix="mixer")
    if moe:
        parts += _nemotron_experts(config, d, moe, bias)
    return Parameters(tuple(parts), d.layers, tied=is_tied(config, False))


def _nemotron_experts(config: Config, d: Dimensions, layers: Layers, bias: bool) -> list[Part]:
    m = mixtures.read(config)
    latent = config.integer("moe_latent_size", default=0)
    parts = mixture(
        d.hidden,
        m.inner,
        m.experts,
        m.top_k,
        layers,
        gated=False,
        bias=bias,
        correction=True,
        shared_inner=m.shared_inner,
        prefix="mixer",
        expert_width=latent,
    )
    for module, outputs, inputs in (
        ("fc1_latent_proj", latent, d.hidden),
        ("fc2_latent_proj", d.hidden, latent),
    ):
        if latent:
            parts += linear(
                "shared_experts", f"mixer.{module}", outputs, inputs, layers, bias=bias, split="replicated"
            )
    return parts


_QWEN = Style(
    bias="attention_bias", out_bias="attention_bias", qk_norm="head", gate=("attn_output_gate", True)
)
_QWEN_MOE = replace(_QWEN, sparse=True, shared_gate=True, shared_name="shared_expert")
_LFM = Style(qk_norm="head", tied=True, read=_lfm_dimensions)
_BAMBA = Style(bias="attention_bias", out_bias="attention_bias", mlp_bias="mlp_bias")
_MINIMAX = Style(sparse=True, network="block_sparse_moe")

BUILDERS: dict[str, Callable[[Config], Parameters]] = {
    "qwen3_next": partial(build, style=_QWEN_MOE, mixer=_qwen_mixer),
    "qwen3_5_text": partial(build, style=_QWEN, mixer=_qwen_mixer),
    "qwen3_5_moe_text": partial(build, style=_QWEN_MOE, mixer=_qwen_mixer),
    "kimi_linear": partial(
        build,
        style=Style(
            sparse=True,
            correction=True,
            network="block_sparse_moe",
            read=lambda config, _: dimensions.read(config, head_dim=1),
        ),
        mixer=_kimi_mixer,
    ),
    "minimax": partial(build, style=_MINIMAX, mixer=_lightning_mixer),
    "minimax_text_01": partial(build, style=_MINIMAX, mixer=_lightning_mixer),
    "minimax_m1": partial(build, style=_MINIMAX, mixer=_lightning_mixer),
    "lfm2": partial(build, style=_LFM, mixer=_lfm_mixer),
    "lfm2_moe": partial(
        build,
        style=Style(
            qk_norm="head",
            tied=True,
            sparse=True,
            correction=("use_expert_bias", True),
            network="feed_forward",
        ),
        mixer=_lfm_mixer,
    ),
    "bamba": partial(build, style=_BAMBA, mixer=_bamba_mixer),
    "falcon_h1": partial(build, style=_BAMBA, mixer=_falcon_h1_mixer),
    "jamba": partial(build, style=Style(sparse=True, network="feed_forward"), mixer=_jamba_mixer),
    "granitemoehybrid": partial(
        build_granite,
        style=Style(tied=True, network="block_sparse_moe", bias="attention_bias", out_bias="attention_bias"),
    ),
    "nemotron_h": build_nemotron,
}
