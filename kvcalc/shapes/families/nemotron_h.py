"""Nemotron-H and Nemotron 3: Mamba-2, attention and feed-forward blocks in any order.

Each block is a layer of its own here, so most layers cache nothing that grows.  The order is a text
(`hybrid_override_pattern`: M Mamba-2, * attention, - MLP, E experts) or a list of words.
"""

from collections.abc import Sequence
from dataclasses import replace

from kvcalc.shapes.components import Component, ModelShape
from kvcalc.shapes.config import Config
from kvcalc.shapes.families.attention import Dimensions, read_dimensions, shape_of
from kvcalc.shapes.families.mamba2 import mamba2_component
from kvcalc.shapes.families.recurrent import conv_rows
from kvcalc.shapes.layer_words import assemble

MODEL_TYPES = ("nemotron_h",)

LETTERS = {"M": "mamba", "*": "attention", "-": "mlp", "E": "moe"}

STATE_DTYPE = "fp32"
"""What the model's configuration class asks when a checkpoint says nothing (transformers 5.24,
`NemotronHConfig.mamba_ssm_cache_dtype`); vLLM follows it."""


def _words(config: Config, pattern: str, words: str) -> list[str] | None:
    """Return the block of each layer, from letters or from words; None when neither is given."""
    letters = config.own(pattern)
    listed = config.words(words)
    if letters is None:
        return listed
    unknown = set(str(letters)) - set(LETTERS)
    if unknown:
        raise config.refuse(pattern, f"{min(unknown)!r} is not understood, known are {' '.join(LETTERS)}")
    return [LETTERS[letter] for letter in str(letters)]


def _components(
    config: Config, dimensions: Dimensions, key: str, words: Sequence[str], first: int = 0
) -> list[Component]:
    """Return the components of blocks that begin at layer index `first`."""
    components = assemble(
        config,
        words,
        {
            "attention": lambda layers: [dimensions.component("full_attention", layers)],
            "mamba": lambda layers: [_mamba(config, layers)],
            "mlp": lambda _: [],
            "moe": lambda _: [],
        },
        key,
    )
    return [replace(part, layers=tuple(first + layer for layer in part.layers)) for part in components]


def _mamba(config: Config, layers: Sequence[int]) -> Component:
    return mamba2_component(
        layers,
        heads=config.size("mamba_num_heads"),
        head_dim=config.size("mamba_head_dim"),
        groups=config.size("n_groups", "mamba_n_groups"),
        state_dim=config.size("ssm_state_size", "mamba_state_dim"),
        rows=conv_rows(config, "conv_kernel", "mamba_d_conv"),
    )


def build(config: Config) -> ModelShape:
    """Build the shape of a Nemotron-H model; MTP blocks repeat their own pattern."""
    words = _words(config, "hybrid_override_pattern", "layers_block_type")
    if not words:
        raise config.refuse("hybrid_override_pattern", "missing, so that the layers are unknown")
    dimensions = read_dimensions(config.with_defaults({"num_hidden_layers": len(words)}))
    if dimensions.layers != len(words):
        raise config.refuse("num_hidden_layers", f"{dimensions.layers} for a pattern of {len(words)} blocks")
    if config.own("sliding_window") is not None:
        raise config.refuse("sliding_window", "a window is not understood between Mamba layers")
    config.own(
        "expand", "mamba_expand", "chunk_size"
    )  # the heads alone make up the width; the chunk is the kernel's
    repeats = config.layer_count("num_nextn_predict_layers", default=0, least=0)
    mtp = _words(config, "mtp_hybrid_override_pattern", "mtp_layers_block_type") or []
    caching = [word for word in mtp if word not in ("mlp", "moe")]
    draft = _components(
        config, dimensions, "mtp_hybrid_override_pattern", caching * repeats, dimensions.layers
    )
    return shape_of(
        config,
        dimensions,
        _components(config, dimensions, "hybrid_override_pattern", words),
        state_dtype=STATE_DTYPE,
        draft=tuple(draft),
    )
