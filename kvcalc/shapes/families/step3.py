"""Step 3.5 and 3.7: window and full layers whose query heads differ, with MTP layers of either kind."""

from kvcalc.shapes.components import Component, Growth, ModelShape
from kvcalc.shapes.config import Config
from kvcalc.shapes.families.attention import (
    Dimensions,
    draft_layers,
    kv_component,
    read_dimensions,
    shape_of,
)
from kvcalc.shapes.layer_words import assemble

MODEL_TYPES = ("step3p5", "step3p7")


def build(config: Config) -> ModelShape:
    """Build the layers by `layer_types`, which may go on with the words of the MTP layers."""
    full = read_dimensions(config)
    drafts = draft_layers(config, full.layers)
    words = config.words("layer_types") or ["full_attention"] * full.layers
    words += config.words("mtp_layer_types") or []
    if len(words) == full.layers:  # MTP layers without words of their own attend in full
        words += ["full_attention"] * len(drafts)
    if len(words) != full.layers + len(drafts):
        raise config.refuse("layer_types", f"{len(words)} entries for {full.layers} + {len(drafts)} layers")
    return shape_of(
        config,
        full,
        _components(config, full, words[: full.layers], first=0),
        draft=tuple(_components(config, full, words[full.layers :], first=full.layers)),
    )


def _components(config: Config, full: Dimensions, words: list[str], first: int) -> list[Component]:
    other = config.section("attention_other_setting") or config
    query_heads = config.size("num_sliding_attention_heads", default=None) or other.size(
        "num_attention_heads", default=full.query_heads
    )
    heads = other.size("num_attention_groups", "num_key_value_heads", default=full.kv_heads)
    width = other.size("head_dim", default=full.key_dim)

    def sliding(layers: tuple[int, ...]) -> list[Component]:
        window = Growth("window", config.size("sliding_window"))
        numbers = [first + layer for layer in layers]
        return [kv_component("sliding_window", numbers, heads, width, width, query_heads, window)]

    return assemble(
        config,
        words,
        {
            "full_attention": lambda layers: [
                full.component("full_attention", [first + layer for layer in layers])
            ],
            "sliding_attention": sliding,
        },
    )
