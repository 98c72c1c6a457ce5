"""Weights in llama.cpp's types and mixtures, against sizes that it prints and by hand."""

import pytest

from kvcalc.catalog import models
from kvcalc.errors import SettingsError
from kvcalc.parameters import count_parameters
from kvcalc.parameters.quantization import with_dtype
from kvcalc.shapes.config import Config

SMALL = {
    "model_type": "llama",
    "hidden_size": 256,
    "num_hidden_layers": 16,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "intermediate_size": 512,
    "vocab_size": 64,
}
SQUARE, WIDE, VOCAB = 256 * 256, 256 * 512, 64 * 256
NORMS = 33 * 256 * 4  # two a layer and one after the last, in fp32
Q4, Q5, Q6 = 144 / 256, 176 / 256, 210 / 256  # bytes per value of q4_K, q5_K and q6_K


def weights(name, **change):
    return with_dtype(count_parameters(Config({**SMALL, **change}, "c.json")), name)


@pytest.mark.parametrize(
    ("name", "bits"),
    [
        # tools/quantize/README.md of llama.cpp: bits per weight of Llama-3.1-8B
        *(("q3_k_s", 3.6429), ("q3_k_l", 4.2979), ("q4_k_s", 4.6672), ("q4_k_m", 4.8944)),
        *(("q5_k_s", 5.5704), ("q5_k_m", 5.7036), ("Q6_K", 6.5633), ("q8_0", 8.5008)),
    ],
)
def test_bits_per_weight_are_those_that_llama_quantize_prints(name, bits):
    parameters = models.load("llama-3.1-8b").parameters
    assert with_dtype(parameters, name).bytes * 8 / parameters.total == pytest.approx(bits, abs=5e-5)


@pytest.mark.parametrize(
    ("name", "block", "size"),
    [
        *(("q8_0", 32, 34), ("q5_0", 32, 22), ("q4_0", 32, 18), ("iq4_nl", 32, 18)),
        *(("q6_k", 256, 210), ("q5_k", 256, 176), ("q4_k", 256, 144), ("q3_k", 256, 110)),
        *(("q2_k", 256, 84), ("iq4_xs", 256, 136)),
    ],
)
def test_a_type_holds_every_matrix_and_norms_are_fp32(name, block, size):
    matrices = 16 * (4 * SQUARE + 3 * WIDE) + 2 * VOCAB
    assert weights(name).bytes == matrices // block * size + NORMS


def test_q4_k_m_gives_more_bits_to_the_ends_and_to_every_third_layer_between():
    # of 16 layers: 0, 1 and 14, 15 are the ends; between, 4, 7, 10 and 13 are two after a multiple of 3
    better, layers = 4 + 4, 16
    by_hand = (
        layers * (3 * SQUARE + 2 * WIDE) * Q4
        + (better * Q6 + (layers - better) * Q4) * (SQUARE + WIDE)
        + VOCAB * Q4  # embedding
        + VOCAB * Q6  # head
    )
    assert weights("q4_k_m").bytes == by_hand + NORMS


def test_a_tied_embedding_is_stored_as_the_head():
    tied = weights("q4_k_s", tie_word_embeddings=True)
    first = 4 * SQUARE + 2 * WIDE  # attn_v of four layers, ffn_down of an eighth of 16
    rest = 16 * (4 * SQUARE + 3 * WIDE) - first
    assert tied.bytes == first * Q5 + rest * Q4 + VOCAB * Q6 + NORMS


def test_rows_that_are_no_multiple_of_256_fall_back_to_blocks_of_32():
    odd = weights("q4_k", hidden_size=96, num_attention_heads=3, num_key_value_heads=3)
    assert set(odd.by_dtype) == {"q5_0", "q4_k", "fp32"}  # 96 values a row, and 512 in down_proj


def test_routers_stay_in_fp32_and_experts_do_not():
    stored = with_dtype(models.load("qwen3-30b-a3b").parameters, "q8_0")
    kinds = {part.name: part.format.name for part in stored.parts}
    assert (kinds["router"], kinds["experts"]) == ("fp32", "q8_0")


def test_an_unknown_mixture_lists_the_nearest():
    with pytest.raises(SettingsError, match=r"'Q4_K_X' is unknown, did you mean .*'q4_k_m'"):
        weights("Q4_K_X")
