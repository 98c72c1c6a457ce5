"""Encoder-decoder models: self-attention grows, cross-attention stays at the encoder's length."""

import pytest

from kvcalc.errors import UnsupportedModelError
from kvcalc.shapes.config import Config
from kvcalc.shapes.families.encoder_decoder import build
from kvcalc.shapes.readers.huggingface import read_config

WHISPER = {
    "model_type": "whisper",
    "d_model": 64,
    "decoder_layers": 3,
    "decoder_attention_heads": 4,
    "encoder_layers": 5,
    "encoder_attention_heads": 2,
    "max_source_positions": 1500,
    "max_target_positions": 448,
}
T5 = {"model_type": "t5", "d_model": 64, "d_kv": 8, "num_heads": 16, "num_layers": 4, "num_decoder_layers": 2}


def test_whisper_keeps_1500_encoder_tokens_whatever_it_writes():
    shape = build(Config(WHISPER))
    own, cross = shape.components
    # Both: 2 x 64 elements per entry in each of 3 layers; 448 grow, 1500 are written once.
    assert sum(tensor.elements for tensor in own.entry) == 128
    assert own.layers == cross.layers == (0, 1, 2)
    assert (own.growth.entries(448), cross.growth.entries(448)) == (448, 1500)
    assert shape.max_tokens == 448


def test_ranks_divide_cross_attention_by_heads():
    _, cross = build(Config(WHISPER)).components
    assert sum(tensor.heads_per_rank(2) * tensor.width * tensor.rows for tensor in cross.entry) == 64


def test_t5_is_wider_than_its_model_and_may_have_a_shallower_decoder():
    shape = build(Config(T5))
    own, cross = shape.components
    # 16 heads of 8, keys and values: 256 per token and layer; no limit on the input is declared.
    assert sum(tensor.elements for tensor in own.entry) == 256
    assert own.layers == (0, 1)
    assert cross.growth.saturated == 512
    assert any("512 input tokens" in note for note in shape.notes)


def test_bart_reads_as_many_tokens_as_it_has_positions():
    bart = {**WHISPER, "model_type": "bart", "max_position_embeddings": 1024}
    del bart["max_source_positions"]
    assert build(Config(bart)).components[1].growth.saturated == 1024


def test_heads_that_do_not_divide_the_width_are_refused():
    with pytest.raises(UnsupportedModelError, match="decoder_attention_heads: 7 heads do not divide"):
        build(Config({**WHISPER, "decoder_attention_heads": 7}))


def test_further_keys_of_published_checkpoints_change_nothing():
    published = {"relative_attention_num_buckets": 32, "relative_attention_max_distance": 128}
    assert read_config({**T5, **published}).components == build(Config(T5)).components
