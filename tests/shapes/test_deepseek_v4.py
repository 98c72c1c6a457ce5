"""DeepSeek V4: windows, compressed rows, index keys and compressor states, layer by layer."""

import pytest

from kvcalc.errors import UnsupportedModelError
from kvcalc.shapes.config import Config
from kvcalc.shapes.families.deepseek_v4 import build

V4 = {
    "model_type": "deepseek_v4",
    "num_hidden_layers": 4,
    "hidden_size": 64,
    "num_attention_heads": 4,
    "num_key_value_heads": 1,
    "head_dim": 32,
    "qk_rope_head_dim": 8,
    "sliding_window": 16,
    "index_head_dim": 24,
    "index_n_heads": 2,
    "index_topk": 8,
    "num_nextn_predict_layers": 1,
    "compress_ratios": [0, 4, 128, 4, 0],
}
V41 = {
    **V4,
    "model_type": "deepseek_v41_text",
    "compress_ratios": [0, 2, 2, 1],
    "kv_source_layer_ids": [1, 3],
    "index_source_layer_ids": [1, 2, 3],
}


def per_token(parts):
    """Return the elements that each further token costs in the long run."""
    return sum(
        tensor.elements * len(part.layers) * part.growth.slope for part in parts for tensor in part.entry
    )


def kinds(parts):
    """Return what each component is, where, and by which growth."""
    return [(part.kind, part.layers, part.growth.kind, part.growth.size) for part in parts]


def test_layers_keep_what_their_ratio_says():
    assert kinds(build(Config(V4)).components) == [
        ("sliding_latent", (0, 1, 2, 3), "window", 16),
        ("compressed_latent", (1, 3), "strided", 4),
        ("compressed_index", (1, 3), "strided", 4),
        ("compressor_state", (1, 3), "window", 8),  # the indexer's, over two overlapping groups
        ("compressor_state", (1, 3), "window", 8),
        ("compressed_latent", (2,), "strided", 128),
        ("compressor_state", (2,), "window", 128),
    ]


def test_marginal_cost_is_compressed():
    # Ratio 4: 2 layers x (32 + 24) / 4 = 28; ratio 128: 32 / 128 = 0.25; windows cost nothing more.
    assert per_token(build(Config(V4)).components) == 28.25


def test_overlapping_groups_double_the_compressors_rows():
    states = [part for part in build(Config(V4)).components if part.kind == "compressor_state"]
    widths = [sum(tensor.width for tensor in part.entry) for part in states]
    # A row and a gate: 2 x 2 x 24 for the index, 2 x 2 x 32 at ratio 4, 2 x 32 at ratio 128.
    assert widths == [96, 128, 64]
    assert {tensor.storage for part in states for tensor in part.entry} == {"float32"}


def test_nothing_is_divided_by_ranks():
    for part in build(Config(V4)).components:
        for tensor in part.entry:
            assert tensor.heads_per_rank(8) * tensor.width * tensor.rows == tensor.elements


def test_mtp_layers_have_the_ratios_behind_the_models():
    assert kinds(build(Config(V4)).draft) == [("sliding_latent", (4,), "window", 16)]


def test_words_and_rates_say_the_same_as_ratios():
    words = [
        "sliding_attention",
        "compressed_sparse_attention",
        "heavily_compressed_attention",
        "compressed_sparse_attention",
    ]
    rates = {"compressed_sparse_attention": 4, "heavily_compressed_attention": 128}
    config = {**V4, "compress_ratios": None, "layer_types": words, "compress_rates": rates}
    assert build(Config(config)).components == build(Config(V4)).components


def test_transformers_keeps_the_overlap_of_one_group_alone():
    parts = build(Config(V4)).components_for("transformers")
    states = [part for part in parts if part.kind == "compressor_state"]
    # 4 rows of a latent and its fp32 gate, and of an index key and its gate; none at ratio 128.
    assert [part.growth.saturated for part in states] == [4, 4]
    assert [part.entry[0].width for part in states] == [24, 32]


def test_transformers_keeps_uncompressed_layers_as_key_and_value():
    parts = build(Config(V4)).components_for("transformers")
    windows = {part.layers: part for part in parts if part.kind == "sliding_latent"}
    # Layer 0 is not compressed: its rows of 32 are stored twice.
    assert sum(tensor.elements for tensor in windows[0,].entry) == 64
    assert sum(tensor.elements for tensor in windows[1, 2, 3].entry) == 32


def test_v41_keeps_compressed_rows_in_source_layers_alone():
    parts = build(Config(V41)).components
    assert kinds(parts) == [
        ("sliding_latent", (0, 1, 2, 3), "window", 16),
        ("compressed_latent", (3,), "strided", 1),
        ("compressed_index", (3,), "strided", 1),
        ("compressed_latent", (1,), "strided", 2),
        ("compressed_index", (1,), "strided", 2),
        ("compressor_state", (1,), "window", 2),
    ]
    assert per_token(parts) == (32 + 24) * (1 + 1 / 2)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("compress_ratios", [0, 4]),
        ("compress_ratios", None),
        ("num_key_value_heads", 2),
        ("qk_rope_head_dim", 32),
    ],
)
def test_an_odd_value_is_refused_by_key(key, value):
    with pytest.raises(UnsupportedModelError, match=key):
        build(Config({**V4, key: value}))


@pytest.mark.parametrize("sources", [[9], [0]])
def test_a_source_that_compresses_nothing_is_refused(sources):
    with pytest.raises(UnsupportedModelError, match="kv_source_layer_ids"):
        build(Config({**V41, "kv_source_layer_ids": sources}))
