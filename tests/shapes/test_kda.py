"""Kimi Linear: KDA states that ranks divide, and MLA latents that every rank keeps."""

import pytest

from kvcalc.errors import UnsupportedModelError
from kvcalc.shapes.config import Config
from kvcalc.shapes.families.kda import build

KIMI = {
    "model_type": "kimi_linear",
    "num_hidden_layers": 4,
    "hidden_size": 64,
    "num_attention_heads": 4,
    "kv_lora_rank": 32,
    "qk_nope_head_dim": 16,
    "qk_rope_head_dim": 8,
    "v_head_dim": 16,
    "linear_attn_config": {
        "kda_layers": [1, 2, 3],
        "full_attn_layers": [4],
        "head_dim": 16,
        "num_heads": 4,
        "short_conv_kernel_size": 4,
    },
}


def test_query_key_and_value_are_convolved_and_the_state_is_square():
    kda, mla = build(Config(KIMI)).components
    # conv: 3 inputs x 3 projections x 4 heads x 16 = 576; state: 4 x 16 x 16 = 1024.
    assert [tensor.elements for tensor in kda.entry] == [576, 1024]
    assert kda.layers == (0, 1, 2)  # the config counts from 1
    assert mla.layers == (3,)


def test_ranks_divide_the_state_but_not_the_latent():
    kda, mla = build(Config(KIMI)).components
    assert [tensor.heads_per_rank(4) * tensor.width * tensor.rows for tensor in kda.entry] == [144, 256]
    assert sum(tensor.heads_per_rank(4) * tensor.width * tensor.rows for tensor in mla.entry) == 32 + 8


def test_mtp_layers_are_mla():
    (draft,) = build(Config({**KIMI, "num_nextn_predict_layers": 1})).draft
    assert (draft.kind, draft.layers) == ("mla", (4,))


@pytest.mark.parametrize("kda_layers", [[1, 2], [1, 2, 3, 4], [0, 1, 2], [1, 2, 2]])
def test_lists_that_do_not_name_each_layer_once_are_refused(kda_layers):
    linear = {**KIMI["linear_attn_config"], "kda_layers": kda_layers}
    with pytest.raises(UnsupportedModelError, match="kda_layers"):
        build(Config({**KIMI, "linear_attn_config": linear}))
