"""Models whose layers differ in heads: Nemotron-NAS (some layers without attention), OpenELM, Laguna."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from kvcalc.shapes.components import Component, ModelShape
from kvcalc.shapes.config import Config
from kvcalc.shapes.families.attention import Dimensions, read_dimensions, shape_of
from kvcalc.shapes.families.sliding_window import window_growth

MODEL_TYPES = ("nemotron-nas", "openelm", "laguna")

NO_ATTENTION = 0
"""KV heads of a layer that has none to cache."""


def by_heads(dimensions: Dimensions, kv_heads: Sequence[int]) -> list[Component]:
    """Return full attention layers grouped by their KV heads, skipping layers without any."""
    counts = [count for count in dict.fromkeys(kv_heads) if count != NO_ATTENTION]
    return [
        replace(dimensions, kv_heads=count).component(
            "full_attention", [layer for layer, own in enumerate(kv_heads) if own == count]
        )
        for count in counts
    ]


def _block_kv_heads(config: Config, index: int, block: object, query_heads: int) -> int:
    """Return the KV heads of one block of a searched model; 0 where its attention was removed."""
    attention = block.get("attention") if isinstance(block, Mapping) else None
    if not isinstance(attention, Mapping):
        raise config.refuse("block_configs", f"block {index} has no attention section")
    part = Config(
        {"model_type": config.model_type, **attention}, f"{config.where}: block_configs[{index}].attention"
    )
    for name in ("window_length", "num_sink_tokens", "sparsify"):
        if part.own(name) is not None:
            raise part.refuse(name, "only null is understood")
    if part.flag("unshifted_sink") or part.flag("use_prefill_window_in_sink_attention"):
        raise part.refuse("unshifted_sink", "attention sinks are not understood")
    if part.flag("no_op") or part.flag("replace_with_linear"):
        return NO_ATTENTION
    group = part.size("n_heads_in_group")
    if query_heads % group:
        raise part.refuse("n_heads_in_group", f"{group} does not divide {query_heads} query heads")
    return query_heads // group


def _build_nas(config: Config) -> ModelShape:
    query_heads = config.size("num_attention_heads")
    dimensions = read_dimensions(config)
    blocks = config.own("block_configs")
    if not isinstance(blocks, Sequence) or isinstance(blocks, str) or len(blocks) != dimensions.layers:
        raise config.refuse("block_configs", f"expected a section for each of {dimensions.layers} layers")
    heads = [_block_kv_heads(config, index, block, query_heads) for index, block in enumerate(blocks)]
    return shape_of(config, dimensions, by_heads(dimensions, heads))


def _build_openelm(config: Config) -> ModelShape:
    layers = config.layer_count("num_transformer_layers")
    kv_heads = config.integers("num_kv_heads", layers)
    query_heads = config.integers("num_query_heads", layers)
    if not kv_heads or not query_heads or min(*kv_heads, *query_heads) < 1:
        raise config.refuse("num_kv_heads", "expected at least one head for each layer")
    head_dim = config.size("head_dim")
    config.own("num_gqa_groups", "qkv_multipliers", "share_input_output_layers")  # led to the heads above
    dimensions = Dimensions(
        layers, config.size("model_dim"), max(query_heads), max(kv_heads), head_dim, head_dim
    )
    max_tokens = config.size("max_context_length", default=None)
    return shape_of(config, dimensions, by_heads(dimensions, kv_heads), max_tokens=max_tokens)


def _build_laguna(config: Config) -> ModelShape:
    """Query heads differ between layers, KV heads do not: only the FLOPs of prefill depend on it."""
    dimensions = read_dimensions(config)
    words = config.words("layer_types", dimensions.layers) or []
    unknown = set(words) - {"full_attention", "sliding_attention"}
    if unknown or not words:
        raise config.refuse("layer_types", f"{min(unknown, default='nothing')!r} is not understood")
    heads = config.integers("num_attention_heads_per_layer", dimensions.layers)
    per_layer = heads or [dimensions.query_heads] * dimensions.layers
    components = []
    for word, count in dict.fromkeys(zip(words, per_layer, strict=True)):
        own = [i for i in range(dimensions.layers) if (words[i], per_layer[i]) == (word, count)]
        heads_of_layer = replace(dimensions, query_heads=count)
        if word == "full_attention":
            components.append(heads_of_layer.component("full_attention", own))
        else:
            components.append(heads_of_layer.component("sliding_window", own, window_growth(config)))
    return shape_of(config, dimensions, components)


_BUILDERS = {"nemotron-nas": _build_nas, "openelm": _build_openelm, "laguna": _build_laguna}


def build(config: Config) -> ModelShape:
    """Build the shape of a model whose layers differ in heads."""
    return _BUILDERS[config.model_type](config)
