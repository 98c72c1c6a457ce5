"""Qwen's switchable window: it acts only under `use_sliding_window`, and then in some layers."""

from collections.abc import Callable
from dataclasses import replace

from kvcalc.shapes.components import Component, Growth, ModelShape
from kvcalc.shapes.config import Config
from kvcalc.shapes.families.attention import Dimensions, read_dimensions
from kvcalc.shapes.families.sliding_window import windowed_shape

MODEL_TYPES = (
    *("dots1", "mimo", "minicpmv", "qwen2", "qwen2_5_omni_text", "qwen2_5_vl", "qwen2_5_vl_text"),
    *("qwen2_audio", "qwen2_moe", "qwen2_vl", "qwen2_vl_text", "qwen3", "qwen3_asr", "qwen3_asr_text"),
    *("qwen3_moe", "qwen3_omni_moe_text", "qwen3_vl", "qwen3_vl_moe", "qwen3_vl_moe_text"),
    *("qwen3_vl_text", "smollm3"),
)

ALWAYS_ON = ("dots1",)
"""Types that have a `sliding_window` but no switch for it."""


def sliding_layers(config: Config, layers: int) -> Callable[[int], bool]:
    """Return which layers slide once the switch is on.

    Qwen2 and Qwen3 keep the first `max_window_layers` full; Qwen2-MoE lets every other layer before
    that index slide; Qwen3-MoE slides everywhere; SmolLM3 in its layers without rotary positions.
    """
    if config.model_type == "smollm3":
        return _without_rope(config, layers)
    full = config.integer("max_window_layers", default=layers)
    if config.model_type == "qwen2_moe":
        return lambda layer: layer % 2 == 0 and layer < full
    if config.model_type in ("qwen3_moe", "qwen3_omni_moe_text"):
        return lambda layer: True
    return lambda layer: layer >= full


def _without_rope(config: Config, layers: int) -> Callable[[int], bool]:
    every = config.size("no_rope_layer_interval", default=4)
    rope = config.integers("no_rope_layers", layers) or [(layer + 1) % every for layer in range(layers)]
    return lambda layer: not rope[layer]


def build(config: Config) -> ModelShape:
    """Build the shape of a model whose window may be declared and yet switched off."""
    dimensions = read_dimensions(config)
    slides = sliding_layers(config, dimensions.layers)
    switch = config.flag("use_sliding_window", default=config.model_type in ALWAYS_ON)
    on = bool(config.integer("sliding_window", default=0)) and switch
    shape = windowed_shape(
        config,
        dimensions,
        lambda layer: "sliding_attention" if on and slides(layer) else "full_attention",
    )
    if config.model_type == "mimo" and config.integer("sliding_window", default=0):
        return replace(shape, engine_components={"vllm": (_unswitched(config, dimensions),)})
    return shape


def _unswitched(config: Config, dimensions: Dimensions) -> Component:
    """Return what vLLM keeps of MiMo: its implementation has the window but not the switch."""
    growth = Growth("window", config.size("sliding_window"))
    return dimensions.component("sliding_window", range(dimensions.layers), growth)
