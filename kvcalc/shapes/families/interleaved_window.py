"""Sliding and full layers in a fixed rhythm: Gemma 2 and 3, GPT-OSS, Command-A, EXAONE 4, OLMo 3."""

from collections.abc import Callable
from dataclasses import replace

from kvcalc.shapes.components import Component, Growth, ModelShape
from kvcalc.shapes.config import Config
from kvcalc.shapes.families.attention import read_dimensions
from kvcalc.shapes.families.sliding_window import windowed_shape

RHYTHM = {
    "afmoe": 4,
    "cohere2": 4,
    "exaone4": 4,
    "exaone_moe": 4,
    "gemma2": 2,
    "gemma3": 6,
    "gemma3_text": 6,
    "gpt_oss": 2,
    "olmo3": 4,
    "vaultgemma": 2,
}
"""Every n-th layer is full; n as transformers' config classes have it when the file does not say."""

MODEL_TYPES = (*RHYTHM, "cohere2_moe", "cwm", "ministral")

PATTERN = ("sliding_window_pattern", "_sliding_window_pattern", "global_attn_every_n_layers")


def rhythm(config: Config) -> Callable[[int], str]:
    """Return the word of each layer index where `layer_types` is absent."""
    pattern = config.own(*PATTERN)
    if isinstance(pattern, str):
        return _spelled(config, pattern)
    if config.model_type == "ministral":
        return lambda layer: "sliding_attention"
    if config.model_type == "cwm":  # full layers come first in each group of four
        return lambda layer: "sliding_attention" if layer % 4 else "full_attention"
    if config.model_type == "cohere2_moe":  # its dense layers have a rhythm of their own
        config.own("prefix_dense_sliding_window_pattern")
        if config.own("layer_types") is None:
            raise config.refuse("layer_types", "missing")
        return lambda layer: "full_attention"
    every = config.size(*PATTERN, default=RHYTHM[config.model_type])
    return lambda layer: "sliding_attention" if (layer + 1) % every else "full_attention"


def _spelled(config: Config, pattern: str) -> Callable[[int], str]:
    """Read a pattern like LLLG: local, local, local, global, and again."""
    words = {"L": "sliding_attention", "G": "full_attention"}
    if not pattern or set(pattern) - set(words):
        raise config.refuse(PATTERN[0], f"{pattern!r:.60} is not made of L and G")
    return lambda layer: words[pattern[layer % len(pattern)]]


def build(config: Config) -> ModelShape:
    """Build the shape of a model that alternates windows with full layers."""
    if config.flag("use_bidirectional_attention"):
        raise config.refuse("use_bidirectional_attention", "an encoder keeps no cache")
    if config.model_type == "cohere2":
        config.own("order_of_interleaved_layers")  # says in words what the pattern says in numbers
    window = config.own("sliding_window")
    off = window is None and config.has("sliding_window")
    shape = windowed_shape(
        config, read_dimensions(config), (lambda layer: "full_attention") if off else rhythm(config)
    )
    if config.model_type == "cohere2":
        return replace(shape, engine_components={"vllm": tuple(map(_one_wider, shape.components))})
    return shape


def _one_wider(component: Component) -> Component:
    """Return what vLLM keeps of Command-A: it counts the current token on top of the window."""
    if component.growth.kind != "window":
        return component
    return replace(component, growth=Growth("window", component.growth.size + 1))
