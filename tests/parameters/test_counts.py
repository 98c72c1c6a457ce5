"""Counts of small models, worked out by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvcalc.errors import SettingsError, UnsupportedModelError
from kvcalc.parameters import count_parameters
from kvcalc.parameters.counts import pipeline_stages
from kvcalc.parameters.registry import builders
from kvcalc.shapes.config import Config
from kvcalc.shapes.readers.huggingface import read_config


def counted(values, **options):
    return count_parameters(Config(values, "config.json"), **options)


LLAMA = {
    "model_type": "llama",
    "hidden_size": 8,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 16,
    "vocab_size": 100,
}
# Heads are 8 / 4 = 2 wide.  One layer: query and output 2 x 8 x 8 = 128, key and value
# 2 x 8 x (2 x 2) = 64, three network matrices 3 x 8 x 16 = 384, two norms 2 x 8 = 16: 592.
LLAMA_LAYER = 128 + 64 + 384 + 16
EMBEDDING = 100 * 8


def test_llama_is_layers_embedding_head_and_final_norm():
    parameters = counted(LLAMA)
    assert parameters.total == 2 * LLAMA_LAYER + 2 * EMBEDDING + 8 == 2792
    assert parameters.active == parameters.total
    assert parameters.by_part == {
        "embedding": 800,
        "lm_head": 800,
        "attention": 2 * (128 + 64),
        "mlp": 2 * 384,
        "norms": 2 * 16 + 8,
    }


def test_tied_embedding_counts_once_and_still_serves_as_the_head():
    parameters = counted({**LLAMA, "tie_word_embeddings": True})
    assert parameters.total == 2 * LLAMA_LAYER + EMBEDDING + 8
    assert parameters.lm_head_matmul == EMBEDDING


def test_products_per_prompt_token_leave_out_embedding_head_and_norms():
    assert counted(LLAMA).matmul_active == 2 * (128 + 64 + 384)


@pytest.mark.parametrize(
    ("change", "more"),
    [
        pytest.param({"attention_bias": True}, 2 * (8 + 4 + 4 + 8), id="biases of q, k, v, o"),
        pytest.param({"mlp_bias": True}, 2 * (16 + 16 + 8), id="biases of gate, up, down"),
        pytest.param({"model_type": "qwen2"}, 2 * (8 + 4 + 4), id="Qwen 2 has biases on q, k, v"),
        pytest.param({"model_type": "qwen3"}, 2 * (2 + 2), id="Qwen 3 has a norm per query and key head"),
        pytest.param({"model_type": "olmo2"}, 2 * (8 + 4), id="OLMo 2 norms whole queries and keys"),
        pytest.param({"model_type": "gemma2"}, 2 * 16 - EMBEDDING, id="Gemma 2 has four norms and ties"),
        pytest.param({"model_type": "cohere"}, -2 * 8 - EMBEDDING, id="Cohere has one norm and ties"),
        pytest.param({"model_type": "olmo"}, -2 * 16 - 8, id="OLMo's norms have no weights"),
        pytest.param({"head_dim": 4}, 2 * (128 + 64), id="head_dim wins over hidden / heads"),
        pytest.param({"architectures": ["LlamaModel"]}, -EMBEDDING, id="a bare model has no head"),
    ],
)
def test_what_a_key_or_model_type_adds_to_llama(change, more):
    assert counted({**LLAMA, **change}).total == 2792 + more


def test_gpt_2_has_positions_biases_and_two_network_matrices():
    config = {
        "model_type": "gpt2",
        "n_embd": 8,
        "n_layer": 1,
        "n_head": 2,
        "n_positions": 10,
        "vocab_size": 50,
    }
    layer = 4 * 8 * 8 + 4 * 8 + 2 * 8 * 32 + 32 + 8 + 2 * 16
    assert counted(config).total == layer + 50 * 8 + 10 * 8 + 16


MIXTRAL = {**LLAMA, "model_type": "mixtral", "num_local_experts": 4, "num_experts_per_tok": 2}
EXPERT = 3 * 8 * 16  # gate, up, down


def test_a_token_uses_its_chosen_experts_only():
    parameters = counted(MIXTRAL)
    router = 4 * 8
    assert parameters.experts == 2 * 4 * EXPERT
    assert parameters.total == 2792 + 2 * (router + 3 * EXPERT)
    assert parameters.active == parameters.total - 2 * 2 * EXPERT


DEEPSEEK = {
    "model_type": "deepseek_v3",
    "hidden_size": 8,
    "num_hidden_layers": 3,
    "num_attention_heads": 2,
    "q_lora_rank": 6,
    "kv_lora_rank": 4,
    "qk_nope_head_dim": 3,
    "qk_rope_head_dim": 2,
    "v_head_dim": 3,
    "intermediate_size": 16,
    "moe_intermediate_size": 5,
    "n_routed_experts": 4,
    "num_experts_per_tok": 2,
    "n_shared_experts": 1,
    "first_k_dense_replace": 1,
    "vocab_size": 100,
    "num_nextn_predict_layers": 1,
}
# Latent attention: q down 8 x 6, norm 6, q up 6 x 2 x 5, kv down 8 x (4 + 2), norm 4,
# kv up 4 x 2 x (3 + 3), output 2 x 3 x 8.
LATENT = 48 + 6 + 60 + 48 + 4 + 48 + 48
SPARSE = 4 * 8 + (4 + 1) * 3 * 8 * 5  # router, four routed experts and a shared one


def test_deepseek_has_latent_attention_and_experts_after_the_first_layers():
    parameters = counted(DEEPSEEK)
    layers = 3 * (LATENT + 16) + 3 * 8 * 16 + 2 * SPARSE
    assert parameters.total == layers + 2 * 800 + 8
    assert parameters.active == parameters.total - 2 * 2 * 3 * 8 * 5


def test_draft_layers_stand_apart():
    parameters = counted(DEEPSEEK)
    # A decoder layer with its two norms, behind a 16 -> 8 projection with three norms.
    assert parameters.draft_total == LATENT + SPARSE + 16 + 16 * 8 + 3 * 8
    assert parameters.total == counted({**DEEPSEEK, "num_nextn_predict_layers": 0}).total


MINIMAX = {
    **LLAMA,
    "model_type": "minimax_m2",
    "num_local_experts": 4,
    "num_experts_per_tok": 2,
    "num_mtp_modules": 3,
}
# One layer as in Llama but for its network, with norms of the query and key width, 8 + 4.
MINIMAX_LAYER = 128 + 64 + 12 + 16 + 4 * 8 + 4 * EXPERT
BEHIND = 16 * 8 + 3 * 8  # the projection of a draft layer and its three norms


@pytest.mark.parametrize(
    ("said", "layers"),
    [
        ({}, 3),
        ({"use_mtp": True, "mtp_transformer_layers": 2}, 6),
        ({"use_mtp": False}, 0),
        ({"num_mtp_modules": 0, "num_mtp_layers": 1}, 0),
    ],
)
def test_minimax_has_weights_for_as_many_draft_layers_as_it_caches(said, layers):
    config = {**MINIMAX, **said}
    parameters = counted(config)
    assert parameters.draft_total == layers * (MINIMAX_LAYER + BEHIND)
    assert parameters.total == 2 * MINIMAX_LAYER + 2 * EMBEDDING + 8
    assert sum(len(part.layers) for part in read_config(config).draft) == layers


def test_the_draft_layer_of_minimax_m3_attends_in_full():
    indexer = {
        "sparse_attention_freq": [0, 1],
        "sparse_num_index_heads": 2,
        "sparse_index_dim": 4,
        "sparse_topk_blocks": 2,
        "sparse_block_size": 16,
    }
    own = {"model_type": "minimax_m3_vl", "dense_intermediate_size": 16, "sparse_attention_config": indexer}
    config = {**MINIMAX, **own, "num_mtp_modules": 1}
    # Norms of one head, 2 + 2, in place of those of the whole width, and no indexer.
    assert counted(config).draft_total == MINIMAX_LAYER - 12 + 4 + BEHIND
    assert counted(config).total == counted({**config, "num_mtp_modules": 0}).total


def test_balancing_biases_take_bytes_but_are_no_parameters():
    parameters = counted(DEEPSEEK)
    assert parameters.bytes == 2 * (parameters.total + 2 * 4)  # one per expert in two layers


def test_mamba_2_layer():
    config = {
        "model_type": "mamba2",
        "hidden_size": 8,
        "num_hidden_layers": 1,
        "num_heads": 4,
        "head_dim": 4,
        "n_groups": 2,
        "state_size": 3,
        "conv_kernel": 4,
        "expand": 2,
        "vocab_size": 10,
        "tie_word_embeddings": True,
    }
    inner, both = 16, 2 * 2 * 3  # channels, and B with C
    mixer = 8 * (2 * inner + both + 4) + (inner + both) * (4 + 1) + 3 * 4 + inner + inner * 8
    assert counted(config).total == mixer + 8 + 80 + 8


def test_hybrids_follow_layer_types():
    config = {
        "model_type": "qwen3_5_text",
        **{key: value for key, value in LLAMA.items() if key != "model_type"},
        "layer_types": ["linear_attention", "full_attention"],
        "linear_num_key_heads": 1,
        "linear_num_value_heads": 2,
        "linear_key_head_dim": 4,
        "linear_value_head_dim": 4,
        "linear_conv_kernel_dim": 4,
    }
    # q, k, v 4 + 4 + 8 channels and a gate of 8, two scalars per value head, all from 8; a convolution
    # over 16 channels; two vectors per value head; a norm of 4; the output 8 -> 8.
    delta = 8 * (16 + 8 + 4) + 16 * 4 + 2 * 2 + 4 + 64
    # Full attention has a gate per query channel and norms of one head.
    full = 128 + 64 + 64 + 4
    assert counted(config).total == delta + full + 2 * (384 + 16) + 1600 + 8


def test_an_unknown_model_type_is_refused_with_the_nearest_known_one():
    with pytest.raises(UnsupportedModelError, match="'llamma' cannot be counted, did you mean 'llama'"):
        counted({**LLAMA, "model_type": "llamma"})


def test_a_missing_size_is_refused():
    with pytest.raises(UnsupportedModelError, match=r"config.json: vocab_size|config.json: padded_vocab"):
        counted({key: value for key, value in LLAMA.items() if key != "vocab_size"})


def test_a_tower_that_is_not_understood_is_noted():
    text = {**LLAMA}
    whole = {"model_type": "someones_vlm", "text_config": text, "vision_config": {"hidden_size": 4}}
    assert counted(whole).notes == (
        "only the language model of 'someones_vlm' is counted, nothing around it",
    )


def test_bytes_are_two_per_parameter_in_16_bits():
    assert counted(LLAMA).bytes == 2 * 2792
    assert counted({**LLAMA, "torch_dtype": "float16"}).by_dtype == {"fp16": 2 * 2792}


def test_ranks_split_matrices_and_repeat_norms_and_scarce_heads():
    parameters = counted(LLAMA)
    # Rows of the vocabulary are padded to 128.  At tp 4 each rank keeps one of two KV heads.
    norms, kv, rest = 5 * 8, 2 * 64, 2 * (128 + 384)
    vocabulary = 2 * 128 * 8
    assert parameters.bytes_per_rank(1) == 2 * (norms + kv + rest + vocabulary)
    assert parameters.bytes_per_rank(2) == 2 * (norms + (kv + rest + vocabulary) / 2)
    assert parameters.bytes_per_rank(4) == 2 * (norms + kv / 2 + (rest + vocabulary) / 4)


def test_expert_ranks_hold_whole_experts():
    parameters = counted(MIXTRAL)
    without = parameters.bytes_per_rank(2) - 2 * parameters.experts / 2
    assert parameters.bytes_per_rank(2, ep=4) == without + 2 * 2 * EXPERT
    assert parameters.bytes_per_rank(2, ep=3) == without + 2 * 2 * 2 * EXPERT  # 4 experts on 3 ranks


def test_a_pipeline_is_as_large_as_its_largest_stage():
    parameters = counted({**LLAMA, "num_hidden_layers": 3})
    edge = 2 * 128 * 8  # bytes of embedding or head, padded
    # Two stages of 2 and 1 layers: the first has the embedding, the last head and norm.
    assert pipeline_stages(3, 2) == [range(2), range(2, 3)]
    assert parameters.bytes_per_rank(1, pp=2) == 2 * 2 * LLAMA_LAYER + edge


def test_more_stages_than_layers_are_refused():
    with pytest.raises(SettingsError, match="pp 3"):
        counted(LLAMA).bytes_per_rank(1, pp=3)


NONSENSE = st.sampled_from(
    [None, True, 0, -1, 2**40, 1.5, float("nan"), "", "x", [], [1], [None], {}, {"a": 1}, "auto"]
)


@given(st.sampled_from(sorted(DEEPSEEK)), NONSENSE, st.sampled_from(sorted(builders())))
def test_nonsense_is_counted_or_refused_in_one_line(key, value, model_type):
    config = {**DEEPSEEK, "model_type": model_type, key: value}
    try:
        told = str(counted(config).total)
    except UnsupportedModelError as error:
        told = str(error)
    assert told
    assert "\n" not in told
