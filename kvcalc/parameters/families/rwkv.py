"""RWKV 4: time mixing and channel mixing in place of attention and network."""

from kvcalc.parameters.blocks.frame import frame
from kvcalc.parameters.blocks.tensors import linear, norm, vector
from kvcalc.parameters.counts import Parameters
from kvcalc.parameters.families.decoder import is_tied
from kvcalc.shapes.config import Config


def build(config: Config) -> Parameters:
    """Build RWKV 4."""
    hidden = config.integer("hidden_size")
    wide = config.integer("attention_hidden_size", default=hidden)
    inner = config.integer("intermediate_size", default=4 * hidden)
    layers = tuple(range(config.layer_count("num_hidden_layers")))
    tied = is_tied(config, False)
    parts = frame(config.integer("vocab_size"), hidden, tied=tied, norm_bias=True)
    parts += norm("pre_ln", hidden, layers[:1], bias=True)
    parts += norm("layer_norms", 2 * hidden, layers, bias=True)
    parts += vector("state_mixer", "attention.time", 2 * wide + 3 * hidden, layers)
    for name in ("key", "value", "receptance"):
        parts += linear("state_mixer", f"attention.{name}", wide, hidden, layers)
    parts += linear("state_mixer", "attention.output", hidden, wide, layers)
    parts += vector("mlp", "feed_forward.time", 2 * hidden, layers)
    parts += linear("mlp", "feed_forward.key", inner, hidden, layers)
    parts += linear("mlp", "feed_forward.receptance", hidden, hidden, layers)
    parts += linear("mlp", "feed_forward.value", hidden, inner, layers)
    return Parameters(tuple(parts), len(layers), tied=tied)


BUILDERS = {"rwkv": build}
