"""Nemotron-NAS: a Llama from which a search removed or shrank blocks, layer by layer."""

from collections.abc import Mapping
from typing import Any

from kvcalc.parameters import dimensions
from kvcalc.parameters.blocks.attention import grouped_query
from kvcalc.parameters.blocks.feedforward import feed_forward
from kvcalc.parameters.blocks.tensors import norm
from kvcalc.parameters.counts import Parameters
from kvcalc.parameters.families.decoder import Style, is_tied, outside
from kvcalc.shapes.config import Config

_LEAST, _MOST = 0.001, 10_000  # sensible factors and group sizes lie between
_INNER_MULTIPLE = 256  # widths of networks are rounded up to it


def build(config: Config) -> Parameters:
    """Build Nemotron-NAS; layers without an attention or network block lack its norm as well."""
    d = dimensions.read(config)
    blocks = config.own("block_configs")
    if not isinstance(blocks, list) or len(blocks) != d.layers:
        raise config.refuse("block_configs", f"expected one entry for each of {d.layers} layers")
    parts = outside(config, d, Style())
    for layer, block in enumerate(blocks):
        own = (layer,)
        attention, network = _part(config, block, "attention"), _part(config, block, "ffn")
        if attention:
            kv_heads = max(1, d.heads // max(1, int(attention["n_heads_in_group"])))
            parts += grouped_query(d.hidden, d.heads, kv_heads, d.head_dim, d.head_dim, own)
            parts += norm("input_layernorm", d.hidden, own)
        if network:
            inner = int(2 * network["ffn_mult"] * d.hidden / 3)
            parts += feed_forward(d.hidden, -(-inner // _INNER_MULTIPLE) * _INNER_MULTIPLE, own)
            parts += norm("post_attention_layernorm", d.hidden, own)
    return Parameters(tuple(parts), d.layers, tied=is_tied(config, False))


def _part(config: Config, block: object, name: str) -> Mapping[str, Any]:
    """Return what a layer says about one of its blocks; empty where the block was removed."""
    part = block.get(name) if isinstance(block, Mapping) else None
    if not isinstance(part, Mapping):
        raise config.refuse("block_configs", f"a layer has no {name!r} section")
    if part.get("replace_with_linear"):
        raise config.refuse("block_configs", "replace_with_linear is not understood")
    size = "n_heads_in_group" if name == "attention" else "ffn_mult"
    value = part.get(size)
    if not part.get("no_op") and not (isinstance(value, (int, float)) and _LEAST < value < _MOST):
        raise config.refuse("block_configs", f"{size} of {name} is {value!r:.60}")
    return {} if part.get("no_op") else part


BUILDERS = {"nemotron-nas": build}
