"""Bytes of quantized weights, worked out by hand on one small model."""

import pytest

from kvcalc.errors import SettingsError, UnsupportedModelError
from kvcalc.parameters import count_parameters
from kvcalc.parameters.patterns import Patterns
from kvcalc.parameters.quantization import with_dtype
from kvcalc.shapes.config import Config

BASE = {
    "model_type": "llama",
    "hidden_size": 256,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 512,
    "vocab_size": 64,
}
SQUARE = 256 * 256  # each of the four attention matrices
WIDE = 256 * 512  # each of the three network matrices
LAYER = 4 * SQUARE + 3 * WIDE
PLAIN = 2 * (2 * 64 * 256 + 5 * 256)  # embedding, head and norms stay in 16 bits


def size(quantization, **change):
    return count_parameters(Config({**BASE, **change, "quantization_config": quantization}, "c.json")).bytes


def test_fp8_blocks_have_a_scale_per_128_by_128():
    scales = 4 * (4 * 2 * 2 + 3 * 2 * 4)
    fp8 = {"quant_method": "fp8", "weight_block_size": [128, 128]}
    assert size(fp8) == PLAIN + 2 * (LAYER + scales)


def test_fp8_per_tensor_and_per_channel():
    assert size({"quant_method": "fp8"}) == PLAIN + 2 * (LAYER + 7 * 4)
    rows = 4 * 256 + 2 * 512 + 256
    assert size({"quant_method": "fbgemm_fp8"}) == PLAIN + 2 * (LAYER + 4 * rows)


def test_awq_packs_zero_points_and_gptq_symmetric_ones_are_dropped():
    groups = LAYER // 128
    awq = {"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True}
    gptq = {"quant_method": "gptq", "bits": 4, "group_size": 128, "sym": True}
    assert size(awq) == PLAIN + 2 * (LAYER / 2 + groups * 2.5)
    assert size(gptq) == PLAIN + 2 * (LAYER / 2 + groups * 2)


def test_nvfp4_by_modelopt_has_a_byte_per_16_and_two_scales_per_matrix():
    nvfp4 = {"quant_method": "modelopt", "quant_algo": "NVFP4"}
    assert size(nvfp4) == PLAIN + 2 * (LAYER / 2 + LAYER / 16 + 7 * 8)


def test_compressed_tensors_declares_formats_by_group():
    weights = {"num_bits": 4, "type": "int", "group_size": 32, "strategy": "group", "symmetric": True}
    groups = {"group_0": {"targets": ["Linear"], "weights": weights}}
    packed = {"quant_method": "compressed-tensors", "config_groups": groups, "ignore": ["re:.*self_attn.*"]}
    kept = 2 * 2 * 4 * SQUARE
    assert size(packed) == PLAIN + kept + 2 * 3 * WIDE * (1 / 2 + 2 / 32)


def test_ignored_layers_stay_in_16_bits():
    fp8 = {"quant_method": "fp8", "modules_to_not_convert": ["model.layers.0.mlp", "lm_head"]}
    assert size(fp8) == PLAIN + 2 * LAYER + 11 * 4 + 3 * WIDE


def test_mixed_recipes_name_their_modules():
    named = {"model.layers.1.mlp.down_proj": {"quant_algo": "FP8"}}
    mixed = {"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION", "quantized_layers": named}
    assert size(mixed) == PLAIN + 4 * LAYER - WIDE + 4


def test_mxfp4_is_for_experts_alone():
    sparse = {"model_type": "gpt_oss", "num_local_experts": 2, "num_experts_per_tok": 1}
    plain = count_parameters(Config({**BASE, **sparse}))
    experts = 2 * 2 * 3 * WIDE
    assert size({"quant_method": "mxfp4"}, **sparse) == plain.bytes - 2 * experts + experts * (1 / 2 + 1 / 32)


def test_a_sidecar_is_used_where_the_config_is_silent():
    sidecar = {"quantization": {"quant_algo": "FP8", "exclude_modules": ["lm_head"]}}
    parameters = count_parameters(Config(BASE), quantization=sidecar)
    assert parameters.bytes == PLAIN + 2 * (LAYER + 7 * 4)


def test_asking_for_a_dtype_overrides_the_checkpoint():
    config = Config({**BASE, "quantization_config": {"quant_method": "something new"}})
    assert count_parameters(config, dtype="bf16").bytes == PLAIN + 4 * LAYER
    assert with_dtype(count_parameters(Config(BASE)), "fp8").bytes == PLAIN + 2 * (LAYER + 7 * 4)
    with pytest.raises(SettingsError, match="did you mean 'fp8'"):
        count_parameters(config, dtype="fp88")


@pytest.mark.parametrize(
    ("quantization", "message"),
    [
        ({"quant_method": "magic"}, "quant_method: 'magic' is not known"),
        ({"quant_method": "fp8", "weight_block_size": [128]}, "weight_block_size"),
        ({"quant_method": "awq", "bits": "four", "group_size": 128}, "bits: 'four'"),
        ({"quant_method": "modelopt", "quant_algo": "FP5"}, "quant_algo: 'FP5' is not known"),
        ({"quant_method": "fp8", "ignore": "lm_head"}, "ignore: expected a list"),
        ("fp8", "quantization_config: expected a mapping"),
    ],
)
def test_what_is_not_understood_is_refused(quantization, message):
    with pytest.raises(UnsupportedModelError, match=message):
        size(quantization)


def test_patterns_match_whole_names():
    patterns = Patterns(["gate", "model.layers.1.*", "re:.*k_proj$"], "c.json")
    assert patterns.match("layers.0.mlp.gate")
    assert not patterns.match("layers.0.mlp.gate_proj")
    assert patterns.match("layers.1.mlp.up_proj")
    assert not patterns.match("layers.10.mlp.up_proj")
    assert patterns.match("layers.5.self_attn.k_proj")


@pytest.mark.parametrize("pattern", ["re:(a+)+$", "re:" + ".*a" * 20, "re:" + "a" * 400, "re:("])
def test_regular_expressions_that_could_hang_are_refused(pattern):
    with pytest.raises(UnsupportedModelError, match=r"c\.json: quantization_config: pattern"):
        Patterns([pattern], "c.json")
