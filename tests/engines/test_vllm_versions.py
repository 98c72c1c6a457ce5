"""What changed between versions, and versions that are refused."""

import pytest

from kvcalc.engines import EngineSettings, lay_out
from kvcalc.engines.vllm import default_utilization
from kvcalc.engines.vllm.versions import CHANGES, Rules, parse_version
from kvcalc.errors import SettingsError, UnsupportedModelError
from kvcalc.shapes.components import Component, Growth, Tensor
from tests.engines.conftest import full, model, window

GIB = 2**30


DENSE = model(full(range(32), 8, 128))


def layout(shape, **settings):
    return lay_out(shape, EngineSettings(engine="vllm", **settings))


def test_v0_has_cpu_blocks_and_keeps_windows_in_full():
    pool = layout(DENSE, version="0.6.6", max_len=20_000).pool(4 * GIB)
    assert pool.block_bytes == 2_097_152
    assert (pool.num_blocks, pool.cpu_blocks, pool.kv_tokens) == (2048, 2048, 32_768)
    assert pool.max_concurrency == 32_768 / 20_000
    sliding = model(full([0], 8, 128), window([1], 8, 128, 512))
    assert layout(sliding, version="0.7.3").reserved(16_000) == 1000 * 2 * 65_536


def test_v0_has_no_blocks_where_nothing_grows():
    state = Component("mamba1", (0, 1), (Tensor("state", 100, 16, split="channels"),), Growth("constant", 1))
    pool = layout(model(state, query_heads=0), version="0.6.6").pool(64_000)
    assert (pool.num_blocks, pool.block_bytes, pool.max_concurrency) == (None, None, 10)  # 2 x 3,200 B


@pytest.mark.parametrize(("version", "share"), [("0.19.1", 0.90), ("0.20.0", 0.92), (None, 0.92)])
def test_default_utilization(version, share):
    assert default_utilization(version) == share


@pytest.mark.parametrize("text", ["0.33", "0.33.7", "v0.10.2", "0.10.1.dev101", "0.20.0rc1", "0.6.6.post1"])
def test_versions_that_are_read(text):
    assert parse_version(text)[0] == 0


@pytest.mark.parametrize("version", ["0.34.0", "1.0", "0.0.1"])
def test_versions_beyond_what_is_known_name_the_nearest(version):
    with pytest.raises(SettingsError, match=r"known are 0\.1 to 0\.33, nearest is 0\.(33|1)$"):
        layout(DENSE, version=version)


def test_words_are_no_version():
    with pytest.raises(SettingsError, match="'newest' is not a vLLM version"):
        layout(DENSE, version="newest")


def test_changes_are_in_order_and_name_rules():
    assert [change.since for change in CHANGES] == sorted(change.since for change in CHANGES)
    assert all(hasattr(Rules(), name) for change in CHANGES for name in change.what)


def test_a_model_that_vllm_dropped_is_laid_out_with_a_note():
    gone = model(full(range(32), 8, 128), model_type="mpt")
    assert layout(gone).notes == ("vLLM runs mpt models up to 0.28 only; laid out by its rules all the same",)
    assert layout(gone, version="0.28.0").notes == ()
    absent = model(full(range(32), 8, 128), model_type="yuan")
    assert layout(absent).notes == ("vLLM has no yuan models; laid out by its rules all the same",)


def test_a_compressor_that_is_not_known_is_refused():
    row = (Tensor("state_row", 1, 512, split="replicated", storage="float32"),)
    unknown = model(Component("compressor_state", (0,), row, Growth("window", 2)), full([0], 8, 128))
    with pytest.raises(UnsupportedModelError, match=r"over 2 tokens .* known are 8 and 128"):
        layout(unknown)


def test_rings_of_index_keys_are_refused_rather_than_guessed():
    row = (Tensor("index_key", 1, 128, split="replicated", storage="index"),)
    pooled = model(Component("pooled_index", (0,), row, Growth("strided", 16)), full([0], 8, 128))
    with pytest.raises(UnsupportedModelError, match=r"lays out pooled_index .*--engine generic"):
        layout(pooled)
    with pytest.raises(UnsupportedModelError, match="its convolutions"):
        layout(model(full([0], 8, 128), model_type="inkling_text"))
