"""DeepSeek V4: one shared key-value head, compressed caches, and several residual streams."""

from kvcalc.errors import UnsupportedModelError
from kvcalc.parameters import dimensions
from kvcalc.parameters.blocks.tensors import linear, norm, single, vector, whole
from kvcalc.parameters.counts import Layers, Parameters, Part
from kvcalc.parameters.dimensions import Dimensions
from kvcalc.parameters.families.decoder import Style, is_tied, layer_norms, networks, outside
from kvcalc.shapes.config import Config

_STYLE = Style(sparse=True, correction=True, network="ffn")
_OVERLAPPING, _DISJOINT = 4, 128
"""Tokens per compressed entry; windows of the short one overlap, so it has two of each projection."""


def build(config: Config) -> Parameters:
    """Build DeepSeek V4 in any size."""
    d = dimensions.read(config)
    parts = outside(config, d, _STYLE) + layer_norms(config, d, _STYLE)
    parts += _attention(config, d) + _streams(config, d)
    ratios = _ratios(config, d.layers)
    for ratio in (_OVERLAPPING, _DISJOINT):
        layers = tuple(layer for layer, own in enumerate(ratios) if own == ratio)
        copies = 2 if ratio == _OVERLAPPING else 1
        parts += _compressor("attn.compressor", d.hidden, copies * d.head_dim, ratio, d.head_dim, layers)
        if ratio == _OVERLAPPING:
            parts += _indexer(config, d.hidden, layers)
    parts += networks(config, d, _STYLE)
    return Parameters(tuple(parts), d.layers, tied=is_tied(config, False))


def _ratios(config: Config, layers: int) -> list[int]:
    ratios = config.integers("compress_ratios")
    if ratios is None or len(ratios) < layers:
        raise config.refuse("compress_ratios", f"expected one ratio for each of {layers} layers")
    unknown = set(ratios[:layers]) - {0, _OVERLAPPING, _DISJOINT}
    if unknown:
        raise UnsupportedModelError(
            f"{config.where}: compress_ratios: {min(unknown)} is not understood, known are 0, 4, 128"
        )
    return ratios[:layers]  # ratios of draft layers follow those of the decoder


def _attention(config: Config, d: Dimensions) -> list[Part]:
    rank, groups = config.integer("q_lora_rank"), config.size("o_groups")
    out_rank, layers, prefix = config.integer("o_lora_rank"), d.all_layers, "attn"
    width = d.heads * d.head_dim
    parts = linear("attention", f"{prefix}.wq_a", rank, d.hidden, layers, split="replicated")
    parts += norm(f"{prefix}.q_norm", rank, layers)
    parts += linear("attention", f"{prefix}.wq_b", width, rank, layers)
    parts += linear("attention", f"{prefix}.wkv", d.head_dim, d.hidden, layers, split="replicated")
    parts += norm(f"{prefix}.kv_norm", d.head_dim, layers)
    parts += linear("attention", f"{prefix}.wo_a", groups * out_rank, width // groups, layers)
    parts += linear("attention", f"{prefix}.wo_b", d.hidden, groups * out_rank, layers)
    return parts + single("attention", f"{prefix}.attn_sink", d.heads, layers, split="columns")


def _compressor(prefix: str, hidden: int, width: int, ratio: int, dim: int, layers: Layers) -> list[Part]:
    parts: list[Part] = []
    for name in ("wkv", "wgate"):
        parts += whole("attention", f"{prefix}.{name}", width, hidden, layers)
    parts += vector("attention", f"{prefix}.ape", ratio * width, layers)
    return parts + norm(f"{prefix}.norm", dim, layers)


def _indexer(config: Config, hidden: int, layers: Layers) -> list[Part]:
    heads, dim = config.integer("index_n_heads"), config.integer("index_head_dim")
    prefix = "attn.indexer"
    rank = config.integer("q_lora_rank")
    parts = _compressor(f"{prefix}.compressor", hidden, 2 * dim, _OVERLAPPING, dim, layers)
    parts += linear("attention", f"{prefix}.wq_b", heads * dim, rank, layers, split="replicated")
    return parts + whole("attention", f"{prefix}.weights_proj", heads, hidden, layers)


def _streams(config: Config, d: Dimensions) -> list[Part]:
    """Return what mixes the residual streams before attention, before the experts and at the end."""
    streams = config.integer("hc_mult")
    mixes, width = (2 + streams) * streams, streams * d.hidden
    parts = single("other", "hc_attn", mixes * width + mixes + 3, d.all_layers)
    parts += single("other", "hc_ffn", mixes * width + mixes + 3, d.all_layers)
    return parts + single("other", "hc_head", streams * width + streams + 1)


BUILDERS = {"deepseek_v4": build, "deepseek_ref": build}
