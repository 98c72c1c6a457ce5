"""Pieces by hand: what one copy moves, by the layout of model, engine, TP and block size."""

import math

import pytest

from kvcalc import api
from kvcalc.engines import lay_out
from kvcalc.errors import SettingsError
from kvcalc.tiers import mechanism, mechanisms, tier_kind, tier_kinds
from kvcalc.tiers.pieces import piece_bytes


def layout(model, machine="h100-sxm-80gb", **said):
    scenario = api.scenario(api.question_of(model, on=machine, prompt=4096, **({"engine": "vllm"} | said)))
    return lay_out(scenario.model.shape, scenario.settings)


@pytest.mark.parametrize(
    ("model", "said", "name", "expected"),
    [
        # 16 tokens x 32 layers x 2 x 8 heads x 128 x 2 B
        ("llama-3.1-8b", {}, "vllm-offload", 16 * 32 * 2 * 8 * 128 * 2),
        # keys or values of one layer: 16 x 8 x 128 x 2 B
        ("llama-3.1-8b", {}, "vllm-per-layer", 16 * 8 * 128 * 2),
        ("llama-3.1-8b", {"block_size": 64}, "vllm-per-layer", 64 * 8 * 128 * 2),
        # an engine without blocks: blocks of 16
        ("llama-3.1-8b", {"engine": "generic"}, "vllm-offload", 2**21),
        # four ranks have 2 of 8 heads each, over 80 layers
        ("llama-3.1-70b", {"tp": 4}, "vllm-offload", 16 * 80 * 2 * 2 * 128 * 2),
        ("llama-3.1-70b", {"tp": 4}, "vllm-per-layer", 16 * 2 * 128 * 2),
        # 256 tokens of all layers
        ("llama-3.1-8b", {}, "lmcache", 256 * 131072),
        ("llama-3.1-8b", {}, "mooncake", 65536),
        ("llama-3.1-8b", {}, "plain", math.inf),
        # a latent is one tensor that every rank has whole: 576 x 2 B a token and layer
        ("deepseek-v3", {"tp": 8, "gpus": 8, "block_size": 64}, "vllm-per-layer", 64 * 576 * 2),
    ],
)
def test_pieces_by_hand(model, said, name, expected):
    assert piece_bytes(mechanism(name), layout(model, **said)) == expected


def test_a_hybrid_without_its_manager_moves_whole_layers():
    """gpt-oss-20b has 12 windows and 12 full layers of 8 heads x 64; two ranks have 4 heads each."""
    page = 16 * 2 * 4 * 64 * 2
    assert piece_bytes(mechanism("vllm-batched"), layout("gpt-oss-20b", tp=2)) == 12 * page
    assert (
        piece_bytes(mechanism("vllm-batched"), layout("gpt-oss-20b", tp=2, hybrid_manager=False)) == 24 * page
    )


def test_every_figure_has_a_source_and_every_name_exists():
    for found in mechanisms().values():
        assert set(found.tiers) <= set(tier_kinds())
        assert found.then is None or mechanism(found.then)
        for rates in (found.general, *found.special.values()):
            for name in ("per_piece", "share", "limit", "host_limit", "fixed", "first", "streams"):
                figure = getattr(rates, name)
                assert figure is None or (figure.source and figure.value >= 0)
    assert all(kind.shared for kind in tier_kinds().values())


def test_an_unknown_name_is_refused_with_the_nearest():
    with pytest.raises(SettingsError, match="vllm-offload"):
        mechanism("vllm-ofload")
    with pytest.raises(SettingsError, match="nvme"):
        tier_kind("nvm")
