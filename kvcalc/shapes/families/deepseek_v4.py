"""DeepSeek V4: every layer keeps a short window of latents, most keep compressed latents as well.

A latent row is `head_dim` wide, the last `qk_rope_head_dim` of it rotary, shared by all heads, so
nothing is divided by tensor parallelism.  Kinds:

* ``sliding_latent``: the last `sliding_window` rows, in every layer;
* ``compressed_latent``: one row per `ratio` tokens, where a layer's compression ratio is not 0;
* ``compressed_index``: one index key per `ratio` tokens, where the ratio is small enough (4) that the
  layer picks among compressed rows instead of reading all;
* ``compressor_state``: what the compressor must hold of tokens not yet pooled, in fp32, as a window of
  tokens: a row and its gate, twice as wide over twice the tokens where groups overlap (ratio 4).  The
  indexer's own compressor is a component of its own with the same window.

V4.1 shares caches: `compress_ratios` says what a layer reads, and only `kv_source_layer_ids` keep
compressed rows and index keys; its groups do not overlap and ratio 1 pools nothing.
"""

from collections.abc import Sequence
from dataclasses import replace

from kvcalc.shapes.components import Attention, Component, Growth, ModelShape, Tensor
from kvcalc.shapes.config import Config
from kvcalc.shapes.families.attention import Dimensions, read_dimensions, shape_of

MODEL_TYPES = ("deepseek_v4", "deepseek_ref", "deepseek_v41", "deepseek_v41_text")

INDEXED_RATIO = 4
"""Layers of this ratio have an indexer and overlapping groups (vLLM 0.33, `deepseek_v4` attention)."""

WORDS = {
    "sliding_attention": "",
    "compressed_sparse_attention": "compressed_sparse_attention",
    "heavily_compressed_attention": "heavily_compressed_attention",
}
"""transformers' names of V4's layers, and the `compress_rates` entry each takes its ratio from."""

NOT_CACHED = (
    *("q_lora_rank", "o_lora_rank", "compress_rope_theta", "candidate_block_size", "candidate_topk_blocks"),
    *("engram_n_heads", "engram_compressed_vocab_size", "dspark_block_size", "dspark_markov_rank"),
)
"""Keys about projections, the choice of rows, lookup tables and drafting."""


def _latent(config: Config, width: int) -> tuple[Tensor, ...]:
    rope = config.integer("qk_rope_head_dim")
    if rope >= width:
        raise config.refuse("qk_rope_head_dim", f"{rope} leaves nothing of a head of {width}")
    latent = Tensor("latent", 1, width - rope, split="replicated")
    return (latent, Tensor("rope_key", 1, rope, split="replicated")) if rope else (latent,)


class _Builder:
    """The widths that all parts share."""

    def __init__(self, config: Config, dimensions: Dimensions) -> None:
        self.config = config
        self.width = dimensions.key_dim
        self.entry = _latent(config, dimensions.key_dim)
        self.attention = Attention(dimensions.query_heads, dimensions.key_dim, dimensions.key_dim)
        self.index_width = config.size("index_head_dim")
        self.index_heads = config.size("index_n_heads")
        self.top_k = config.size("index_topk")

    def sliding(self, layers: Sequence[int]) -> Component:
        growth = Growth("window", self.config.size("sliding_window"))
        return Component("sliding_latent", tuple(layers), self.entry, growth, self.attention)

    def compressed(self, layers: Sequence[int], ratio: int, indexed: bool) -> Component:
        attention = Attention(
            self.attention.query_heads, self.width, self.width, self.top_k if indexed else None
        )
        return Component("compressed_latent", tuple(layers), self.entry, Growth("strided", ratio), attention)

    def index(self, layers: Sequence[int], ratio: int) -> Component:
        key = Tensor("index_key", 1, self.index_width, split="replicated", storage="index")
        attention = Attention(self.index_heads, self.index_width, 0)
        return Component("compressed_index", tuple(layers), (key,), Growth("strided", ratio), attention)

    def state(self, layers: Sequence[int], width: int, ratio: int, overlap: bool) -> Component:
        times = 2 if overlap else 1
        rows = (
            Tensor("state_row", 1, times * width, split="replicated", storage="float32"),
            Tensor("state_gate", 1, times * width, split="replicated", storage="float32"),
        )
        return Component("compressor_state", tuple(layers), rows, Growth("window", times * ratio))


def _ratios(config: Config, layers: int) -> tuple[list[int], list[int]]:
    """Return the compression ratios of the model's layers and of the MTP layers after them."""
    ratios = config.integers("compress_ratios")
    words = config.words("layer_types")
    rates = config.section("compress_rates")
    if ratios is None and words is not None and rates is not None:
        unknown = set(words) - set(WORDS)
        if unknown:
            raise config.refuse("layer_types", f"{min(unknown)!r} is not understood")
        ratios = [rates.size(WORDS[word]) if WORDS[word] else 0 for word in words]
    if ratios is None:
        raise config.refuse("compress_ratios", "missing, and no layer_types with compress_rates either")
    if len(ratios) < layers:
        raise config.refuse("compress_ratios", f"{len(ratios)} entries for {layers} layers")
    return ratios[:layers], ratios[layers:]


def _own_caches(build: _Builder, ratios: Sequence[int], first: int = 0) -> list[Component]:
    """Return the parts of V4's layers, each with its own compressed cache."""
    parts = [build.sliding(range(first, first + len(ratios)))]
    for ratio in sorted(set(ratios) - {0}):
        layers = [first + index for index, own in enumerate(ratios) if own == ratio]
        indexed = ratio == INDEXED_RATIO
        parts.append(build.compressed(layers, ratio, indexed))
        if indexed:
            parts.append(build.index(layers, ratio))
            parts.append(build.state(layers, build.index_width, ratio, overlap=True))
        parts.append(build.state(layers, build.width, ratio, overlap=indexed))
    return [part for part in parts if part.layers]


def _shared_caches(build: _Builder, ratios: Sequence[int], sources: Sequence[int]) -> list[Component]:
    """Return the parts of V4.1's layers, of which only the sources keep compressed rows."""
    parts = [build.sliding(range(len(ratios)))]
    strangers = set(sources).difference(range(len(ratios)))
    if strangers:
        reason = f"{max(strangers)} is no layer of {len(ratios)}"
        raise build.config.refuse("kv_source_layer_ids", reason)
    for ratio in sorted({ratios[layer] for layer in sources}):
        layers = [layer for layer in sources if ratios[layer] == ratio]
        if ratio == 0:
            raise build.config.refuse("kv_source_layer_ids", f"layer {layers[0]} has a ratio of 0")
        parts.append(build.compressed(layers, ratio, indexed=True))
        parts.append(build.index(layers, ratio))
        if ratio > 1:
            parts.append(build.state(layers, build.width, ratio, overlap=False))
    return parts


def _in_transformers(parts: Sequence[Component], ratios: Sequence[int]) -> tuple[Component, ...]:
    """Return what transformers keeps of V4's layers (5.24, the caches of its DeepSeek V4).

    Layers without compression use the ordinary window cache, which stores a row as key and again as
    value.  Of a compressor, only the overlap is left at the border of a group: at ratio 4 a row and
    an fp32 gate for each token of the last group.
    """
    kept = []
    for part in parts:
        if part.kind == "sliding_latent":
            kept += _twice_where_plain(part, [layer for layer, ratio in enumerate(ratios) if not ratio])
        elif part.kind != "compressor_state":
            kept.append(part)
        elif part.growth.size == 2 * INDEXED_RATIO:
            width = part.entry[0].width // 2
            rows = (
                Tensor("overlap_row", 1, width, split="replicated"),
                Tensor("overlap_gate", 1, width, split="replicated", storage="float32"),
            )
            kept.append(replace(part, entry=rows, growth=Growth("constant", INDEXED_RATIO)))
    return tuple(kept)


def _twice_where_plain(sliding: Component, plain: Sequence[int]) -> list[Component]:
    """Return the window layers, of which the `plain` ones keep every row a second time."""
    width = sum(tensor.width for tensor in sliding.entry)
    value = Tensor("value", 1, width, split="replicated")
    others = tuple(layer for layer in sliding.layers if layer not in plain)
    split = (
        replace(sliding, layers=tuple(plain), entry=(*sliding.entry, value)),
        replace(sliding, layers=others),
    )
    return [part for part in split if part.layers]


def build(config: Config) -> ModelShape:
    """Build the shape of a DeepSeek V4 or V4.1 model."""
    dimensions = read_dimensions(config)
    if dimensions.kv_heads != 1:
        raise config.refuse("num_key_value_heads", f"{dimensions.kv_heads} instead of one shared latent")
    parts_of = _Builder(config, dimensions)
    ratios, draft = _ratios(config, dimensions.layers)
    config.own("num_nextn_predict_layers")  # the ratios beyond the model's layers say it better
    config.own(*NOT_CACHED)
    sources = config.integers("kv_source_layer_ids")
    config.integers("index_source_layer_ids")  # who computes an index; its keys are the sources'
    in_transformers: dict[str, tuple[Component, ...]] = {}
    if sources is None:
        parts = _own_caches(parts_of, ratios)
        in_transformers = {"transformers": _in_transformers(parts, ratios)}
    else:
        parts = _shared_caches(parts_of, ratios, sources)
    return shape_of(
        config,
        dimensions,
        parts,
        draft=tuple(_own_caches(parts_of, draft, dimensions.layers)) if draft else (),
        engine_components=in_transformers,
    )
