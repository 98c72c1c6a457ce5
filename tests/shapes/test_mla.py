"""Latent attention and its sparse indexer; values per token worked by hand."""

import pytest

from kvcalc.errors import UnsupportedModelError
from kvcalc.shapes.readers.huggingface import read_config

LATENT = {
    "model_type": "deepseek_v3",
    "num_hidden_layers": 6,
    "hidden_size": 256,
    "num_attention_heads": 8,
    "num_key_value_heads": 8,
    "q_lora_rank": 48,
    "kv_lora_rank": 64,
    "qk_nope_head_dim": 32,
    "qk_rope_head_dim": 16,
    "v_head_dim": 24,
}
SPARSE = {
    **LATENT,
    "model_type": "glm_moe_dsa",
    "index_topk": 128,
    "index_n_heads": 4,
    "index_head_dim": 32,
}


def elements(part):
    return sum(tensor.elements for tensor in part.entry)


def test_one_latent_and_one_rotary_key_per_token_on_every_rank():
    (part,) = read_config(LATENT).components
    assert (part.kind, part.layers, elements(part)) == ("mla", tuple(range(6)), 64 + 16)
    assert sum(tensor.heads_per_rank(8) * tensor.width * tensor.rows for tensor in part.entry) == 64 + 16
    # Prefill multiplies full keys and values: nope + rope wide, and v_head_dim wide.
    assert (part.attention.query_heads, part.attention.key_dim, part.attention.value_dim) == (8, 48, 24)


def test_without_rotary_part_the_latent_stands_alone():
    (part,) = read_config({**LATENT, "qk_rope_head_dim": 0}).components
    assert [tensor.name for tensor in part.entry] == ["latent"]


@pytest.mark.parametrize("off", [{"kv_lora_rank": None}, {"use_mla": False}])
def test_small_members_of_the_family_attend_in_the_ordinary_way(off):
    (part,) = read_config({**LATENT, "model_type": "deepseek_v2", **off}).components
    assert (part.kind, elements(part)) == ("full_attention", 8 * (32 + 32))


def test_longcat_attends_twice_in_each_layer():
    config = {key: value for key, value in LATENT.items() if key != "num_hidden_layers"}
    shape = read_config({**config, "model_type": "longcat_flash", "num_layers": 3, "attention_method": "MLA"})
    assert shape.layers == 6
    assert shape.components[0].layers == tuple(range(6))


def test_minicpm3_is_expanded_in_vllm():
    shape = read_config({**LATENT, "model_type": "minicpm3", "v_head_dim": None})
    assert elements(shape.components[0]) == 64 + 16
    (expanded,) = shape.components_for("vllm")
    assert elements(expanded) == 8 * (48 + 48)  # values padded to the keys' nope + rope
    assert shape.components[0].attention.value_dim == 256 // 8


def test_mtp_layers_keep_latents_too():
    (draft,) = read_config({**LATENT, "num_nextn_predict_layers": 1}).draft
    assert (draft.layers, elements(draft)) == ((6,), 80)


@pytest.mark.parametrize(
    ("rule", "owners"),
    [
        pytest.param({}, (0, 1, 2, 3, 4, 5), id="all own one by default"),
        # max(i - 2 + 1, 0) % 2 == 0: i = 0, 1 give 0; i = 3 gives 2; i = 5 gives 4.
        pytest.param({"index_topk_freq": 2}, (0, 1, 3, 5), id="frequency 2 from offset 2"),
        pytest.param(
            {"index_topk_freq": 4, "index_skip_topk_offset": 3}, (0, 1, 2), id="frequency 4 from offset 3"
        ),
        pytest.param({"index_topk_pattern": "FFSSFS"}, (0, 1, 4), id="pattern in letters"),
        pytest.param(
            {"indexer_types": ["full", "shared"] * 3, "index_topk_freq": 1}, (0, 2, 4), id="list wins"
        ),
    ],
)
def test_which_layers_own_an_indexer(rule, owners):
    latent, indexer = read_config({**SPARSE, **rule}).components
    assert latent.layers == tuple(range(6))
    assert latent.attention.top_k == 128
    assert (indexer.kind, indexer.layers, elements(indexer)) == ("indexer", owners, 32)
    assert indexer.entry[0].storage == "index"
    assert indexer.attention.query_heads == 4


def test_glm_5_2_has_21_indexers_in_78_layers():
    rule = {"num_hidden_layers": 78, "index_topk_freq": 4, "index_skip_topk_offset": 3}
    assert len(read_config({**SPARSE, **rule}).components[1].layers) == 21


@pytest.mark.parametrize(
    ("config", "named"),
    [
        ({**SPARSE, "indexer_types": ["full"] * 5 + ["lazy"]}, "lazy"),
        ({**SPARSE, "index_topk_pattern": "FS"}, "2 entries for 6 layers"),
        ({**SPARSE, "layer_types": ["full_attention"] * 6}, "full_attention"),
        ({**LATENT, "index_topk": 128, "index_n_heads": 4, "index_head_dim": 32}, "index_head_dim"),
        ({**LATENT, "attention_method": "MHA"}, "MHA"),
        ({**LATENT, "kv_lora_rank": "512"}, "not a whole number"),
    ],
)
def test_what_is_not_understood_is_refused_by_name(config, named):
    with pytest.raises(UnsupportedModelError, match=named):
        read_config(config)
