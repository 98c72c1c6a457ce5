"""Which keys are questioned, and that the list of exceptions has no dead weight."""

import pytest

from kvcalc.shapes import harmless_keys
from kvcalc.shapes.harmless_keys import HARMLESS, looks_cache_relevant, suspicious


@pytest.mark.parametrize(
    "name",
    [
        *("num_kv_shared_layers", "kv_compress_ratio", "attention_type", "attn_kind", "cacheLayers"),
        *("sliding_window", "latent_dim", "mamba_d_state", "conv_width", "n_heads", "layer_types"),
        *("sparse_topk", "index_heads", "share_every", "linear_layers", "recurrent_width", "chunk_tokens"),
        *("use_mla", "cla_factor", "yoco_layers", "mtp_depth", "swa_layers", "num_sink_tokens"),
    ],
)
def test_keys_that_speak_of_a_cache_are_questioned(name):
    assert looks_cache_relevant(name)


@pytest.mark.parametrize("name", ["vocab_size", "rope_theta", "hidden_act", "num_experts", "class_num"])
def test_other_keys_are_not(name):
    assert not looks_cache_relevant(name)


def test_every_exception_is_needed(monkeypatch):
    monkeypatch.setattr(harmless_keys, "HARMLESS", frozenset())
    assert [name for name in sorted(HARMLESS) if not looks_cache_relevant(name)] == []


def test_what_was_understood_what_is_off_and_what_is_foreign_raise_no_suspicion():
    config = {
        "sliding_window": 4096,
        "kv_ratio": 1,
        "cache_pages": None,
        "vision_config": {"window_size": 8},
        "part": {"window_stride": 2, "sliding_window": 3},
    }
    assert list(suspicious(config, {"sliding_window"})) == ["window_stride"]
