"""Gemma 3n and 4: the last layers read the cache of earlier ones, so they own nothing."""

from kvcalc.shapes.components import ModelShape
from kvcalc.shapes.config import Config
from kvcalc.shapes.families.attention import Dimensions, kv_component, read_dimensions, shape_of
from kvcalc.shapes.families.sliding_window import window_growth
from kvcalc.shapes.layer_words import assemble, layer_words

MODEL_TYPES = ("gemma3n", "gemma3n_text", "gemma4", "gemma4_text", "gemma4_unified_text")

RHYTHM = {"gemma3n": 5, "gemma3n_text": 5}
"""Every n-th layer is full where `layer_types` is absent."""

Heads = tuple[int, int]
"""KV heads and head dimension of a layer."""


def build(config: Config) -> ModelShape:
    """Build the layers before the sharing ones; full layers may have a head shape of their own."""
    if (both_ways := config.own("use_bidirectional_attention")) not in (None, False, "vision"):
        raise config.refuse("use_bidirectional_attention", f"{both_ways!r:.60} makes an encoder of it")
    sliding = read_dimensions(config)
    shared = config.integer("num_kv_shared_layers", default=0)
    if shared >= sliding.layers:
        raise config.refuse("num_kv_shared_layers", f"{shared} of {sliding.layers} layers leave no owner")
    every = RHYTHM.get(config.model_type, 6)
    words = layer_words(
        config, sliding.layers, lambda layer: "sliding_attention" if (layer + 1) % every else "full_attention"
    )
    full = sliding.kv_heads, sliding.key_dim
    if config.model_type.startswith("gemma4"):
        words[-1] = "full_attention"  # whatever the pattern says
        full = _global_heads(config, sliding)
    owners = words[: sliding.layers - shared]
    for word in set(words) - set(owners):
        raise config.refuse("layer_types", f"{word!r:.60} layers share a cache that no layer owns")
    window = window_growth(config)
    components = assemble(
        config,
        owners,
        {
            "full_attention": lambda layers: [
                kv_component("full_attention", layers, full[0], full[1], full[1], sliding.query_heads)
            ],
            "sliding_attention": lambda layers: [sliding.component("sliding_window", layers, window)],
        },
    )
    return shape_of(config, sliding, components)


def _global_heads(config: Config, sliding: Dimensions) -> Heads:
    """Return the heads of Gemma 4's full layers.

    Under `attention_k_eq_v` keys and values come from one projection, but both are cached: they
    differ by norm and rotation.  Files saved by newer libraries list overrides layer by layer.
    """
    tied = config.flag("attention_k_eq_v")
    heads = config.size("num_global_key_value_heads", default=sliding.kv_heads)
    head_dim = config.size("global_head_dim", default=512)
    overrides = config.section("per_layer_config")
    if overrides is None:
        return (heads if tied else sliding.kv_heads), head_dim
    found = set()
    for layer in overrides.text:
        part = overrides.section(layer)
        if part is not None:
            found.add((part.size("num_key_value_heads", default=sliding.kv_heads), part.size("head_dim")))
    if len(found) != 1:
        raise config.refuse("per_layer_config", f"{len(found)} head shapes among the full layers")
    return found.pop()
