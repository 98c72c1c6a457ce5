"""Qwen4 (Qwen3.8-Flash-Next): gated DeltaNet, and sparse grouped-query attention with pooled index keys.

Layers with n-gram embeddings (`ple_layer_ids`, counted from 1) also keep past inputs of a dilated
convolution over all residual streams: (kernel - 1) x n-gram size of them, on every rank.
"""

from collections.abc import Sequence

from kvcalc.shapes.components import Component, ModelShape, Tensor
from kvcalc.shapes.config import Config
from kvcalc.shapes.families.attention import Dimensions, full_draft, read_dimensions, shape_of
from kvcalc.shapes.families.gated_deltanet import read_gated_deltanet
from kvcalc.shapes.families.pooled_index import pooled_index_components
from kvcalc.shapes.families.recurrent import conv_rows, state_component
from kvcalc.shapes.layer_words import assemble

MODEL_TYPES = ("qwen4_exp", "qwen4_exp_text")


def _sparse(config: Config, dimensions: Dimensions, layers: Sequence[int]) -> list[Component]:
    if config.size("indexer_kv_heads", default=1) != 1:
        raise config.refuse("indexer_kv_heads", "only one is understood")
    config.own("indexer_budget")  # how many keys are read, not kept
    index = pooled_index_components(
        layers,
        query_heads=config.size("indexer_n_heads"),
        width=config.size("indexer_head_dim"),
        ratio=config.size("indexer_compress_ratio"),
        gated=False,
    )
    return [dimensions.component("full_attention", layers), *index]


def _embedding_convs(config: Config, dimensions: Dimensions) -> list[Component]:
    numbers = config.integers("ple_layer_ids") or []
    if not numbers:
        return []
    if not set(numbers) <= set(range(1, dimensions.layers + 1)):
        raise config.refuse("ple_layer_ids", f"they do not lie within 1 to {dimensions.layers}")
    rows = conv_rows(config, "ple_conv_kernel_size") * config.size("ngram_size")
    width = config.size("hc_count") * dimensions.hidden
    conv = Tensor("ple_conv", width, 1, rows=rows, split="replicated", storage="conv")
    return [state_component("short_conv", [number - 1 for number in numbers], conv)]


def build(config: Config) -> ModelShape:
    """Build the shape of a Qwen4 model; its MTP layers attend in full."""
    dimensions = read_dimensions(config)
    words = config.words("layer_types", dimensions.layers)
    if words is None:
        raise config.refuse("layer_types", "missing, so that sparse and full layers cannot be told apart")
    config.own("full_attention_interval", "heads_per_ngram")  # layer_types says it all; a table's heads
    components = assemble(
        config,
        words,
        {
            "linear_attention": lambda layers: [read_gated_deltanet(config, layers)],
            "full_attention": lambda layers: [dimensions.component("full_attention", layers)],
            "qwen_sparse_attention": lambda layers: _sparse(config, dimensions, layers),
        },
    )
    return shape_of(
        config,
        dimensions,
        [*components, *_embedding_convs(config, dimensions)],
        draft=full_draft(config, dimensions),
        notes=("the ring of index keys not yet pooled is from source alone, no server's log confirms it",),
    )
