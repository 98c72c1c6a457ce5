"""Mamba-2: a recurrence with one decay per head, alone or mixed with attention.

Kind ``mamba2``: the convolution covers I = heads x head_dim channels and, once per group, the two
projections of `state_dim` that its heads share; the state is heads x head_dim x state_dim.  Tensor
parallelism deals out heads; groups that it does not divide are repeated until it does.
"""

from collections.abc import Sequence
from dataclasses import replace

from kvcalc.shapes.components import Component, ModelShape, Tensor
from kvcalc.shapes.config import Config
from kvcalc.shapes.families.attention import Dimensions, read_dimensions, shape_of
from kvcalc.shapes.families.recurrent import attention_free, conv_rows, state_component
from kvcalc.shapes.layer_words import assemble

MODEL_TYPES = ("mamba2", "bamba", "granitemoehybrid", "falcon_h1", "zamba2")


def mamba2_component(
    layers: Sequence[int], heads: int, head_dim: int, groups: int, state_dim: int, rows: int
) -> Component:
    """Return a component of Mamba-2 layers."""
    return state_component(
        "mamba2",
        layers,
        Tensor("conv", heads, head_dim, rows=rows, storage="conv"),
        Tensor("conv_groups", groups, 2 * state_dim, rows=rows, split="groups", storage="conv"),
        Tensor("state", heads, head_dim * state_dim, storage="state"),
    )


def check_width(config: Config, key: str, heads: int, head_dim: int, width: int) -> None:
    """Refuse heads that do not make up the inner width, rather than choose one of the two."""
    if heads * head_dim != width:
        raise config.refuse(key, f"{heads} heads of {head_dim} do not make up an inner width of {width}")


def _read_prefixed(config: Config, layers: Sequence[int]) -> Component:
    """Read a Mamba-2 part whose keys begin with ``mamba_`` (Bamba, Granite, Falcon-H1)."""
    heads = config.size("mamba_n_heads")
    width = config.size("mamba_d_ssm", default=None) or config.size("mamba_expand") * config.size(
        "hidden_size"
    )
    given = config.own("mamba_d_head", default="auto")
    head_dim = width // heads if given == "auto" else config.size("mamba_d_head")
    check_width(config, "mamba_n_heads", heads, head_dim, width)
    config.own("mamba_expand")
    return mamba2_component(
        layers,
        heads,
        head_dim,
        groups=config.size("mamba_n_groups"),
        state_dim=config.size("mamba_d_state"),
        rows=conv_rows(config, "mamba_d_conv"),
    )


def _build_mamba2(config: Config) -> ModelShape:
    dimensions = attention_free(config)
    config.own("chunk_size", "intermediate_size")  # of the kernel, and the inner width again
    width = config.size("expand") * dimensions.hidden
    head_dim = config.size("head_dim")
    heads = config.size("num_heads", default=width // head_dim)
    check_width(config, "num_heads", heads, head_dim, width)
    component = mamba2_component(
        range(dimensions.layers),
        heads,
        head_dim,
        groups=config.size("n_groups"),
        state_dim=config.size("state_size"),
        rows=conv_rows(config, "conv_kernel"),
    )
    return shape_of(config, dimensions, [component])


def _mixed(config: Config, dimensions: Dimensions, key: str, words: Sequence[str]) -> ModelShape:
    """Build a model each layer of which is either attention or Mamba-2."""
    components = assemble(
        config,
        words,
        {
            "attention": lambda layers: [dimensions.component("full_attention", layers)],
            "full_attention": lambda layers: [dimensions.component("full_attention", layers)],
            "mamba": lambda layers: [_read_prefixed(config, layers)],
        },
        key,
    )
    if "mamba" not in words and config.own("mamba_n_heads") is not None:
        _read_prefixed(config, ())  # no layer uses them, but they are understood
    return shape_of(config, dimensions, components)


def _build_bamba(config: Config) -> ModelShape:
    dimensions = read_dimensions(config)
    attention = set(config.integers("attn_layer_indices") or ())
    strangers = attention.difference(range(dimensions.layers))
    if strangers:
        raise config.refuse("attn_layer_indices", f"{min(strangers)} is no layer of {dimensions.layers}")
    words = ["attention" if layer in attention else "mamba" for layer in range(dimensions.layers)]
    return _mixed(config, dimensions, "attn_layer_indices", words)


def _build_granite(config: Config) -> ModelShape:
    dimensions = read_dimensions(config)
    words = config.words("layer_types", dimensions.layers)
    if words is None:
        raise config.refuse("layer_types", "missing, so that attention and Mamba layers are unknown")
    return _mixed(config, dimensions, "layer_types", words)


def _build_falcon_h1(config: Config) -> ModelShape:
    """Every layer runs attention and Mamba-2 side by side, and caches both."""
    dimensions = read_dimensions(config)
    layers = range(dimensions.layers)
    components = [dimensions.component("full_attention", layers), _read_prefixed(config, layers)]
    return shape_of(config, dimensions, components)


def _build_zamba2(config: Config) -> ModelShape:
    """Every layer is Mamba-2; hybrid ones also run a shared attention block on a cache of their own."""
    dimensions = read_dimensions(config)
    groups = config.size("num_query_groups", default=dimensions.kv_heads)
    if groups != dimensions.kv_heads:
        raise config.refuse("num_query_groups", f"{groups} contradicts {dimensions.kv_heads} KV heads")
    config.own("chunk_size", "lora_rank", "state_size")  # the kernel's, the adapters', and once more
    width = config.size("attention_hidden_size", default=2 * dimensions.hidden)
    head_dim = config.size("attention_head_dim", default=width // dimensions.query_heads)
    dimensions = replace(dimensions, key_dim=head_dim, value_dim=head_dim)
    words = config.words("layers_block_type", dimensions.layers)
    hybrid = config.integers("hybrid_layer_ids")
    if words is None and hybrid is None:
        raise config.refuse("layers_block_type", "missing, so that the attention layers are unknown")
    if words is None:
        words = ["hybrid" if layer in (hybrid or ()) else "mamba" for layer in range(dimensions.layers)]
    heads, inner = config.size("n_mamba_heads"), config.size("mamba_expand") * dimensions.hidden
    mamba_dim = config.size("mamba_headdim", default=inner // heads)
    check_width(config, "n_mamba_heads", heads, mamba_dim, inner)
    attention = assemble(
        config,
        words,
        {"hybrid": lambda layers: [dimensions.component("full_attention", layers)], "mamba": lambda _: []},
        "layers_block_type",
    )
    mamba = mamba2_component(
        range(dimensions.layers),
        heads,
        mamba_dim,
        groups=config.size("mamba_ngroups"),
        state_dim=config.size("mamba_d_state"),
        rows=conv_rows(config, "mamba_d_conv"),
    )
    return shape_of(config, dimensions, [*attention, mamba])


_BUILDERS = {
    "mamba2": _build_mamba2,
    "bamba": _build_bamba,
    "granitemoehybrid": _build_granite,
    "falcon_h1": _build_falcon_h1,
    "zamba2": _build_zamba2,
}


def build(config: Config) -> ModelShape:
    """Build the shape of a Mamba-2 model or hybrid."""
    return _BUILDERS[config.model_type](config)
