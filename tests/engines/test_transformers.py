import pytest

from kvcalc.engines import EngineSettings, lay_out
from kvcalc.errors import SettingsError
from kvcalc.shapes.components import Component, Growth, ModelShape, Tensor
from kvcalc.shapes.families.attention import kv_component


def transformers(*parts, settings=None, **more):
    shape = ModelShape("made up", "made_up", parts, 8, 64, 8, 4096, **more)
    return lay_out(shape, EngineSettings(engine="transformers", **(settings or {})))


def window(size, kind="window"):
    return kv_component("sliding_window", range(6), 2, 16, 16, 8, Growth(kind, size))


FULL = kv_component("full_attention", range(6, 8), 2, 16, 16, 8)
ROW = 2 * (16 + 16) * 2  # two KV heads of 16, key and value, bf16


@pytest.mark.parametrize("kind", ["window", "chunk"])
def test_a_window_keeps_one_token_less(kind):
    layout = transformers(window(100, kind), FULL)
    assert layout.reserved(99) == layout.reserved(99) == 8 * 99 * ROW
    assert layout.reserved(100) == 2 * 100 * ROW + 6 * 99 * ROW
    assert layout.constant_bytes == 6 * 99 * ROW


def test_a_window_as_long_as_the_context_is_full_attention():
    assert transformers(window(4096), FULL).bytes_per_token == 8 * ROW
    assert transformers(window(4095), FULL).bytes_per_token == 2 * ROW


def test_convolutions_keep_k_columns_and_states_are_fp32():
    entry = (
        Tensor("conv", 64, 1, rows=3, split="channels", storage="conv"),
        Tensor("state", 4, 256, storage="state"),
    )
    part = Component("gated_deltanet", (0, 1), entry, Growth("constant", 1))
    assert transformers(part, FULL).constant_bytes == 2 * (64 * 4 * 2 + 4 * 256 * 4)


def test_lightning_states_keep_the_models_dtype():
    entry = (Tensor("state", 4, 256, storage="state"),)
    part = Component("lightning", (0, 1), entry, Growth("constant", 1))
    assert transformers(part, FULL).constant_bytes == 2 * 4 * 256 * 2


def test_a_token_shift_is_no_convolution():
    entry = (Tensor("token_shift", 64, 1, rows=2, split="channels", storage="conv"),)
    part = Component("rwkv", (0, 1), entry, Growth("constant", 1))
    assert transformers(part, FULL).constant_bytes == 2 * 64 * 2 * 2


def test_the_checkpoints_fp8_scheme_is_not_applied():
    assert transformers(FULL, kv_dtype="fp8").bytes_per_token == 2 * ROW
    with pytest.raises(SettingsError, match="transformers has no 'fp8'"):
        transformers(FULL, settings={"kv_dtype": "fp8"})


def test_the_encoders_length_may_be_given():
    cross = kv_component("cross_attention", range(6, 8), 2, 16, 16, 8, Growth("constant", 1500))
    assert transformers(cross, FULL).constant_bytes == 2 * 1500 * ROW
    assert transformers(cross, FULL, settings={"encoder_tokens": 512}).constant_bytes == 2 * 512 * ROW


def test_nothing_is_allocated_in_blocks():
    assert transformers(FULL, settings={"block_size": 16}).reserved(17) == 17 * 2 * ROW
