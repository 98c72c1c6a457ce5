"""Llama 3.2 Vision: a Llama whose chosen layers attend to the image instead of the text."""

from kvcalc.parameters import dimensions
from kvcalc.parameters.blocks.attention import grouped_query
from kvcalc.parameters.blocks.feedforward import feed_forward
from kvcalc.parameters.blocks.frame import frame
from kvcalc.parameters.blocks.tensors import norm, vector
from kvcalc.parameters.counts import Parameters
from kvcalc.parameters.families.decoder import is_tied
from kvcalc.shapes.config import Config

_EXTRA_ROWS = 8  # embedding rows for image tokens, which the output head lacks


def build(config: Config) -> Parameters:
    """Build the language model of Llama 3.2 Vision."""
    d = dimensions.read(config)
    crossing = tuple(config.integers("cross_attention_layers") or ())
    own = tuple(layer for layer in d.all_layers if layer not in crossing)
    tied = is_tied(config, False)
    parts = frame(d.vocabulary, d.hidden, tied=tied)
    parts += vector("embedding", "embed_tokens.image_rows", _EXTRA_ROWS * d.hidden)
    parts += grouped_query(d.hidden, d.heads, d.kv_heads, d.head_dim, d.head_dim, own)
    parts += grouped_query(
        d.hidden,
        d.heads,
        d.kv_heads,
        d.head_dim,
        d.head_dim,
        crossing,
        qk_norm="head",
        prefix="cross_attn",
    )
    parts += vector("attention", "cross_attn.gates", 2, crossing)
    parts += feed_forward(d.hidden, d.inner, d.all_layers)
    parts += norm("layernorms", 2 * d.hidden, d.all_layers)
    return Parameters(tuple(parts), d.layers, tied=tied)


BUILDERS = {"mllama_text_model": build}
