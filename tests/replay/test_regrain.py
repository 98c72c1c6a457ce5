"""A trace in the engine's blocks, and what they take of its memory."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvcalc.api import load_model
from kvcalc.engines import EngineSettings, lay_out
from kvcalc.errors import SettingsError
from kvcalc.replay.regrain import regrained
from kvcalc.replay.sizing import engine_block, sized
from kvcalc.replay.trace import build_trace
from tests.replay.conftest import expanded, found

prompts = st.lists(st.text("ab", max_size=30), min_size=1, max_size=7)


def hashed(words, block, partial):
    """Return the trace of prompts of one letter a token, with the last block kept or left out."""
    ids = {}
    chains = []
    for word in words:
        ends = list(range(block, len(word) + 1, block))
        if partial and len(word) % block:
            ends.append(len(word))
        chains.append([ids.setdefault(word[:end], len(ids)) for end in ends])
    return build_trace(chains, block, input_tokens=[len(word) for word in words])


def shared(trace):
    """Return for each request how many of its blocks earlier ones had."""
    seen, result = set(), []
    for chain in expanded(trace):
        result.append(sum(block in seen for block in chain))
        seen.update(chain)
    return result


@given(prompts, st.integers(1, 4), st.integers(1, 4), st.booleans())
def test_multiples_hit_what_hashing_in_large_blocks_hits(words, block, times, partial):
    coarse = regrained(hashed(words, block, partial), block * times)
    direct = hashed(words, block * times, partial=False)
    assert coarse.request_blocks.tolist() == direct.request_blocks.tolist()
    assert shared(coarse) == shared(direct)


@given(prompts, st.integers(1, 6), st.integers(0, 7), st.booleans())
def test_other_sizes_hit_what_the_fine_blocks_prove_and_no_more(words, block, more, partial):
    size = block + more
    fine = hashed(words, block, partial)
    coarse, direct = regrained(fine, size), hashed(words, size, partial=False)
    # A full block of the engine counts where the trace's blocks reach its end.
    reach = [len(chain) * block for chain in expanded(fine)]
    expected = [min(end // size, len(word) // size) for end, word in zip(reach, words, strict=True)]
    assert coarse.request_blocks.tolist() == expected
    for mine, true in zip(shared(coarse), shared(direct), strict=True):
        assert mine <= true
    hits = zip(shared(fine), words, expanded(fine), strict=True)
    full = [min(hit * block, len(word)) // size for hit, word, _ in hits]
    assert shared(coarse) == full


def test_finer_blocks_and_components_are_refused():
    trace = build_trace([[0]], 16)
    with pytest.raises(SettingsError, match="blocks of 16 tokens say nothing of blocks of 8"):
        regrained(trace, 8)
    with pytest.raises(SettingsError, match="different sizes"):
        regrained(build_trace([[0]], 0), 8)


def layout(model, **settings):
    return lay_out(load_model(model).shape, EngineSettings(**settings))


def test_a_plain_model_takes_its_bytes_per_token():
    # Llama 3.1 8B: 2 x 8 heads x 128 x 32 layers x 2 bytes = 131,072 bytes a token.
    trace = build_trace([[0, 1]], 512)
    kept, sizing, notes = sized(trace, layout("llama-3.1-8b", engine="vllm"))
    assert kept is trace
    assert (sizing.block_tokens, sizing.per_gpu) == (16, 512 * 131_072)
    assert "lower bound" in notes[0]
    assert sizing.blocks_in(10 * 512 * 131_072 + 1) == 10


def test_tensor_ranks_share_heads_but_each_holds_all_of_mla():
    trace = build_trace([[0]], 16)
    heads = sized(trace, layout("llama-3.1-8b", engine="vllm", tp=2))[1]
    assert (heads.per_gpu, heads.bytes_of(1)) == (16 * 65_536, 16 * 131_072)
    # DeepSeek-V3: (512 + 64) x 61 layers x 2 bytes = 70,272 bytes a token, on every rank.
    latent = sized(trace, layout("deepseek-v3", engine="vllm", tp=8))[1]
    assert (latent.per_gpu, latent.bytes_of(1)) == (16 * 70_272, 8 * 16 * 70_272)


def test_a_hybrid_with_large_blocks_takes_a_row_in_each_group():
    held = layout("qwen3-next-80b-a3b", engine="vllm")
    assert engine_block(held) == 576
    trace = build_trace([[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]], 64)
    kept, sizing, notes = sized(trace, held)
    assert kept.block_tokens == 576
    assert kept.request_blocks.tolist() == [1]
    assert found(kept, "regrained").count == 576
    # 36 state layers and 12 of attention: four groups of 12, each with a row of 12 pages of 1,179,648 bytes.
    assert sizing.per_gpu == 4 * 12 * 1_179_648
    assert "cannot be compared" in notes[0]


def test_windows_are_kept_at_the_end_of_every_block():
    # gpt-oss-120b: 18 window and 18 full layers, 8 KV heads of 64: 2,048 bytes a token and layer.
    trace = build_trace([[0]], 512)
    # The 128 tokens of a window lie at each block's end; under vLLM in 8 blocks of 16.
    for engine in ("generic", "vllm"):
        _, sizing, notes = sized(trace, layout("gpt-oss-120b", engine=engine))
        assert sizing.per_gpu == (512 * 18 + 128 * 18) * 2_048
        assert any("windows and states" in note for note in notes)


def test_bytes_are_told_per_gpu_and_in_all():
    trace = build_trace([[0]], 16)
    one = sized(trace, layout("llama-3.1-8b", engine="vllm"))[1]
    assert one.told(16) == "a block of 16 tokens takes 2,097,152 bytes of the one GPU that holds the model"
    two = sized(trace, layout("llama-3.1-8b", engine="vllm", tp=2))[1].told(16)
    assert "1,048,576 bytes of each of the 2 GPUs of a replica, 2,097,152 of all of them" in two


def test_components_are_sized_by_the_token():
    trace = build_trace([[0]], 0)
    assert sized(trace, layout("llama-3.1-8b", engine="vllm"))[1].per_gpu == 131_072
