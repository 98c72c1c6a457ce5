"""GGUF files written here with the `gguf` package, against bytes worked out by hand.

The reader does not use that package, so each test is also one program reading another's files.
"""

import contextlib
from pathlib import Path

import gguf
import numpy as np
import pytest

from kvcalc.catalog.models import load
from kvcalc.engines import EngineSettings, lay_out
from kvcalc.errors import KvcalcError, ProfileError, UnsupportedModelError
from kvcalc.shapes.readers.gguf import read_gguf
from kvcalc.shapes.readers.gguf.attention import WINDOWED
from kvcalc.shapes.readers.gguf.file import GGML_TYPES, read_header

F32, F16 = gguf.GGMLQuantizationType.F32, gguf.GGMLQuantizationType.F16
Q4_K, Q6_K = gguf.GGMLQuantizationType.Q4_K, gguf.GGMLQuantizationType.Q6_K


def written(
    folder: Path, architecture: str, values: dict, tensors: dict | None = None, name="m.gguf"
) -> Path:
    """Write a GGUF file of metadata, and of tensors given as name -> (rows x columns, type)."""
    file = folder / name
    writer = gguf.GGUFWriter(file, architecture)
    defaults = {"block_count": 2, "context_length": 8192, "embedding_length": 64}
    for key, value in (defaults | values).items():
        add(writer, key if "." in key and key.split(".")[0] == "split" else f"{architecture}.{key}", value)
    for tensor, (shape, kind) in (tensors or {}).items():
        block, size = gguf.GGML_QUANT_SIZES[kind]
        rows = (*shape[:-1], shape[-1] // block * size)
        raw = np.zeros(rows, np.uint8)
        writer.add_tensor(tensor, raw, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return file


def add(writer: gguf.GGUFWriter, key: str, value: object) -> None:
    if isinstance(value, list):
        writer.add_array(key, value)
    elif isinstance(value, str):
        writer.add_string(key, value)
    elif isinstance(value, bool):
        writer.add_bool(key, value)
    elif isinstance(value, float):
        writer.add_float32(key, value)
    elif value is not None:
        writer.add_uint32(key, value)


def layout(file: Path, **settings):
    return lay_out(read_gguf(file), EngineSettings(engine="llama.cpp", **settings))


LLAMA_8B = {
    "block_count": 32,
    "context_length": 131_072,
    "embedding_length": 4096,
    "attention.head_count": 32,
    "attention.head_count_kv": 8,
}


def test_llama(tmp_path):
    made = layout(written(tmp_path, "llama", LLAMA_8B))
    assert made.bytes_per_token == 32 * 8 * (128 + 128) * 2 == 131_072
    assert made.buffers(8192).kv == 2**30
    assert made.shape.max_tokens == 131_072


def test_the_cache_is_f16_until_its_types_are_given(tmp_path):
    file = written(tmp_path, "llama", LLAMA_8B)
    assert read_gguf(file).dtype == "fp16"
    apart = layout(file, k_type="q8_0", v_type="q4_0")
    assert apart.bytes_per_token == 32 * 8 * 4 * (34 + 18)  # 128 values are 4 blocks of 32


def test_a_head_width_of_its_own(tmp_path):
    widths = {"attention.key_length": 192, "attention.value_length": 128}
    assert layout(written(tmp_path, "qwen3", LLAMA_8B | widths)).bytes_per_token == 32 * 8 * 320 * 2


def test_kv_heads_for_each_layer(tmp_path):
    heads = {"block_count": 3, "attention.head_count_kv": [8, 0, 4]}
    shape = read_gguf(written(tmp_path, "deci", LLAMA_8B | heads))
    assert [(part.layers, part.kv_heads) for part in shape.components] == [((0,), 8), ((2,), 4)]


def test_without_kv_heads_there_are_as_many_as_query_heads(tmp_path):
    heads = {"attention.head_count": 32, "attention.head_count_kv": None}
    assert layout(written(tmp_path, "gpt2", LLAMA_8B | heads)).bytes_per_token == 4 * 131_072


GEMMA_2_2B = {
    "block_count": 26,
    "embedding_length": 2304,
    "attention.head_count": 8,
    "attention.head_count_kv": 4,
    "attention.key_length": 256,
    "attention.value_length": 256,
    "attention.sliding_window": 4096,
}


def test_gemma_2_slides_in_every_other_layer(tmp_path):
    made = layout(written(tmp_path, "gemma2", GEMMA_2_2B), parallel=4).buffers(8192)
    assert made.swa_cells == 8192  # 4 slots of 4096 and a batch exceed the context
    assert made.kv == made.swa == 8192 * 13 * 4 * 512 * 2 == 416 * 2**20  # as llama.cpp prints
    shape = read_gguf(tmp_path / "m.gguf")
    assert shape.components[1].layers[:3] == (0, 2, 4)


def test_gemma_2_without_a_window_has_that_of_llamacpp(tmp_path):
    file = written(tmp_path, "gemma2", GEMMA_2_2B | {"attention.sliding_window": None})
    assert read_gguf(file).components[1].growth.size == 4096


GPT_OSS_20B = {
    "block_count": 24,
    "embedding_length": 2880,
    "attention.head_count": 64,
    "attention.head_count_kv": 8,
    "attention.key_length": 64,
    "attention.value_length": 64,
    "attention.sliding_window": 128,
}


def test_gpt_oss(tmp_path):
    made = layout(written(tmp_path, "gpt-oss", GPT_OSS_20B), kv_dtype="q8_0", ubatch=128).buffers(8192)
    assert made.swa_cells == 256
    assert made.kv == 102 * 2**20  # 12 layers x 8192 cells x 2 sides x 16 blocks of 34 bytes
    assert round(made.swa / 2**20, 2) == 3.19


def test_gemma_4_lists_its_windows_and_shares_layers(tmp_path):
    file = written(
        tmp_path,
        "gemma4",
        {
            "block_count": 6,
            "embedding_length": 2560,
            "attention.head_count": 8,
            "attention.head_count_kv": 2,
            "attention.key_length": 512,
            "attention.value_length": 512,
            "attention.key_length_swa": 256,
            "attention.value_length_swa": 256,
            "attention.sliding_window": 512,
            "attention.sliding_window_pattern": [True, True, False, True, True, False],
            "attention.shared_kv_layers": 2,
        },
    )
    made = layout(file).buffers(32_768)
    assert made.kv == 32_768 * 1 * 2 * (512 + 512) * 2
    assert made.swa == 1024 * 3 * 2 * (256 + 256) * 2  # layers 4 and 5 reuse earlier ones


@pytest.mark.parametrize(
    ("architecture", "values", "full"),
    [
        pytest.param("gemma3", {}, [0, 1, 2, 3, 4, 5], id="optional, and not given"),
        pytest.param("gemma3", {"attention.sliding_window": 0}, [0, 1, 2, 3, 4, 5], id="switched off"),
        pytest.param("gemma3", {"attention.sliding_window": 512}, [5], id="the last of 6"),
        pytest.param("cohere2moe", {"attention.sliding_window": 512}, [0, 4], id="the first of 4"),
        pytest.param("llama4", {}, [3], id="chunks, the last of 4 in full"),
        pytest.param("llama4", {"attention.sliding_window": 0}, [0, 1, 2, 3, 4, 5], id="no chunks"),
        pytest.param("exaone4", {"attention.sliding_window": 512}, [0, 1, 2, 3, 4, 5], id="not the 32B"),
        pytest.param("phi3", {"attention.sliding_window": 512}, [0, 1, 2, 3, 4, 5], id="no window there"),
        pytest.param(
            "gpt-oss",
            {"attention.sliding_window": 512, "attention.sliding_window_pattern": 3},
            [2, 5],
            id="a period of its own",
        ),
    ],
)
def test_which_layers_are_full(tmp_path, architecture, values, full):
    heads = {"block_count": 6, "attention.head_count": 4, "attention.head_count_kv": 2}
    shape = read_gguf(written(tmp_path, architecture, heads | values))
    assert list(shape.components[0].layers) == full
    assert {part.kind for part in shape.components[1:]} <= {"sliding_window", "chunked_attention"}
    owned = sorted(layer for part in shape.components for layer in part.layers)
    assert owned == [0, 1, 2, 3, 4, 5]


DEEPSEEK_V3 = {
    "block_count": 61,
    "embedding_length": 7168,
    "attention.head_count": 128,
    "attention.head_count_kv": 1,
    "attention.key_length": 576,
    "attention.value_length": 512,
    "attention.kv_lora_rank": 512,
    "attention.key_length_mla": 192,
    "attention.value_length_mla": 128,
}


def test_deepseek_caches_a_latent(tmp_path):
    made = layout(written(tmp_path, "deepseek2", DEEPSEEK_V3))
    assert made.buffers(32_768).kv == 32_768 * 61 * 576 * 2 == 2196 * 2**20  # as llama.cpp prints
    assert made.shape.components[0].attention.key_dim == 192


def test_an_older_deepseek_file_caches_expanded_heads(tmp_path):
    older = {
        "block_count": 27,
        "attention.head_count": 16,
        "attention.head_count_kv": 16,
        "attention.key_length": 192,
        "attention.value_length": 128,
        "attention.key_length_mla": None,
        "attention.value_length_mla": None,
    }
    made = layout(written(tmp_path, "deepseek2", DEEPSEEK_V3 | older), parallel=8, unified=False)
    assert made.buffers(8 * 2048).kv == 4320 * 2**20  # as llama.cpp prints
    assert "expanded" in made.shape.notes[0]


def test_a_sparse_indexer_has_a_cache_of_keys_alone(tmp_path):
    indexer = {"attention.indexer.head_count": 64, "attention.indexer.key_length": 128}
    made = layout(written(tmp_path, "deepseek32", DEEPSEEK_V3 | indexer)).buffers(256)
    assert made.index == 256 * 61 * 128 * 2
    owners = {"attention.indexer.types": [1, 1, *[0] * 59]}
    made = layout(written(tmp_path, "glm-dsa", DEEPSEEK_V3 | indexer | owners)).buffers(256)
    assert made.index == 256 * 2 * 128 * 2


QWEN_35_9B = {
    "block_count": 33,
    "nextn_predict_layers": 1,
    "embedding_length": 4096,
    "attention.head_count": 16,
    "attention.head_count_kv": 4,
    "attention.key_length": 256,
    "attention.value_length": 256,
    "full_attention_interval": 4,
    "ssm.conv_kernel": 4,
    "ssm.inner_size": 4096,
    "ssm.state_size": 128,
    "ssm.group_count": 16,
    "ssm.time_step_rank": 32,
}


def test_a_deltanet_hybrid(tmp_path):
    made = layout(written(tmp_path, "qwen35", QWEN_35_9B), parallel=4)
    sizes = made.buffers(135_168)
    assert sizes.kv == 135_168 * 8 * 4 * 512 * 2 == 4224 * 2**20  # as llama.cpp prints, like the next two
    assert sizes.state == 4 * 24 * (128 * 4096) * 4 == 192 * 2**20
    assert sizes.conv == 4 * 24 * 3 * (4096 + 2 * 16 * 128) * 4 == 9 * 2**20
    assert made.shape.layers == 32
    assert [part.layers for part in made.shape.draft] == [(32,)]


def test_recurrent_layers_as_listed(tmp_path):
    listed = {"attention.recurrent_layers": [*[True] * 30, False, False, False]}
    shape = read_gguf(written(tmp_path, "qwen35", QWEN_35_9B | listed))
    assert [part.layers for part in shape.components if part.kind == "full_attention"] == [(30, 31)]


SSM = {
    "ssm.conv_kernel": 4,
    "ssm.inner_size": 128,
    "ssm.state_size": 16,
    "ssm.group_count": 2,
    "ssm.time_step_rank": 8,
}


@pytest.mark.parametrize(
    ("architecture", "values", "per_token", "conv", "state"),
    [
        pytest.param("mamba", SSM, 0, 2 * 3 * 128, 2 * 128 * 16),
        pytest.param("mamba2", SSM, 0, 2 * 3 * (128 + 2 * 2 * 16), 2 * 128 * 16),
        pytest.param(
            "jamba",
            {**SSM, "attention.head_count": 4, "attention.head_count_kv": [0, 2]},
            2 * (16 + 16) * 2,
            3 * 128,
            128 * 16,
        ),
        pytest.param(
            "falcon-h1",
            {**SSM, "attention.head_count": 4, "attention.head_count_kv": 2},
            2 * 2 * (16 + 16) * 2,
            2 * 3 * (128 + 2 * 2 * 16),
            2 * 128 * 16,
        ),
        pytest.param(
            "nemotron_h",
            {
                **SSM,
                "block_count": 3,
                "attention.head_count": 4,
                "attention.head_count_kv": [0, 2, 0],
                "feed_forward_length": [0, 0, 256],
            },
            2 * (16 + 16) * 2,
            3 * (128 + 2 * 2 * 16),
            128 * 16,
        ),
        pytest.param(
            "lfm2",
            {"shortconv.l_cache": 3, "attention.head_count": 4, "attention.head_count_kv": [0, 2]},
            2 * (16 + 16) * 2,
            2 * 64,
            0,
        ),
        pytest.param(
            "kimi-linear",
            {
                "ssm.conv_kernel": 4,
                "kda.head_dim": 16,
                "attention.head_count": 4,
                "attention.head_count_kv": [0, 1],
                "attention.key_length": 40,
                "attention.value_length": 32,
                "attention.kv_lora_rank": 32,
                "attention.key_length_mla": 24,
                "attention.value_length_mla": 16,
            },
            40 * 2,
            3 * 3 * 4 * 16,
            4 * 16 * 16,
        ),
        pytest.param("rwkv7", {"wkv.head_size": 16}, 0, 2 * 2 * 64, 2 * 64 * 16),
        pytest.param(
            "minimax-01",
            {"attention.head_count": 4, "attention.head_count_kv": 2, "full_attention_interval": 2},
            2 * (16 + 16) * 2,
            0,
            4 * 16 * 16,
        ),
    ],
)
def test_recurrent_architectures(tmp_path, architecture, values, per_token, conv, state):
    made = layout(written(tmp_path, architecture, values))
    assert made.bytes_per_token == per_token
    sizes = made.buffers(256)
    assert (sizes.conv, sizes.state) == (4 * conv, 4 * state)  # fp32


WEIGHTS = {
    "token_embd.weight": ((512, 256), Q6_K),
    "output_norm.weight": ((256,), F32),
    "blk.0.attn_q.weight": ((256, 256), Q4_K),
    "blk.0.ffn_up.weight": ((1024, 256), Q4_K),
    "blk.0.exp_probs_b.bias": ((4,), F32),
    "blk.1.attn_q.weight": ((256, 256), F16),
    "blk.1.ffn_up_exps.weight": ((4, 128, 256), Q4_K),
    "blk.1.ffn_up_shexp.weight": ((128, 256), Q4_K),
    "blk.2.nextn.eh_proj.weight": ((256, 512), F16),
}
"""A mixture of storage types, as Q4_K_M files are; rows x columns."""

SMALL = {
    "block_count": 3,
    "nextn_predict_layers": 1,
    "embedding_length": 256,
    "attention.head_count": 4,
    "expert_used_count": 2,
}


def test_weights_are_those_of_the_file(tmp_path):
    parameters = load(str(written(tmp_path, "glm4moe", SMALL, WEIGHTS))).parameters
    assert parameters is not None
    assert parameters.tied
    assert parameters.by_part == {
        "embedding": 512 * 256,
        "attention": 2 * 256 * 256,
        "mlp": 1024 * 256,
        "experts": 4 * 128 * 256,
        "shared_experts": 128 * 256,
        "norms": 256,
        "mtp": 256 * 512,
    }
    assert parameters.total == 131_072 + 131_072 + 262_144 + 131_072 + 32_768 + 256
    assert parameters.active == parameters.total - 2 * 128 * 256
    assert parameters.by_dtype == {
        "q6_k": 512 * 210,  # one block of 256 a row
        "f32": (256 + 4) * 4,
        "q4_k": (256 + 1024 + 512 + 128) * 144,
        "f16": 256 * 256 * 2,
    }
    assert parameters.draft_bytes == 256 * 512 * 2


def test_a_file_of_metadata_alone_has_no_weights(tmp_path):
    model = load(str(written(tmp_path, "llama", LLAMA_8B)))
    assert model.parameters is None
    assert model.notes == ("the weights are not counted: the file holds none",)


def test_bytes_agree_with_the_package_for_every_storage_type(tmp_path):
    kinds = [kind for kind in gguf.GGML_QUANT_SIZES if kind.name not in ("Q8_1", "Q8_K")]
    tensors = {f"blk.0.ffn_up.{kind.name}": ((3, 512), kind) for kind in kinds}
    file = written(tmp_path, "llama", LLAMA_8B, tensors)
    ours = {tensor.name: tensor.bytes for tensor in read_header(file).tensors}
    theirs = {tensor.name: int(tensor.n_bytes) for tensor in gguf.GGUFReader(file).tensors}
    assert ours == theirs
    assert len(ours) == len(kinds) >= 30
    assert set(GGML_TYPES) >= {int(kind) for kind in kinds}


def test_a_split_model_is_read_as_one(tmp_path):
    first = {**SMALL, "split.count": 2, "split.no": 0}
    one, two = dict(list(WEIGHTS.items())[:4]), dict(list(WEIGHTS.items())[4:])
    file = written(tmp_path, "glm4moe", first, one, "x-00001-of-00002.gguf")
    alone = load(str(file))
    assert alone.parameters is None
    assert "x-00002-of-00002.gguf is not there" in alone.notes[-1]
    written(tmp_path, "glm4moe", {"split.count": 2, "split.no": 1}, two, "x-00002-of-00002.gguf")
    whole = load(str(written(tmp_path, "glm4moe", SMALL, WEIGHTS))).parameters
    assert load(str(file)).parameters.bytes == whole.bytes


@pytest.mark.parametrize(
    ("architecture", "values", "words"),
    [
        pytest.param("lama", LLAMA_8B, "'lama' is not understood, did you mean 'llama'"),
        pytest.param("llama", {**LLAMA_8B, "block_count": None}, "llama.block_count: missing"),
        pytest.param("llama", {**LLAMA_8B, "block_count": 4_000_000_000}, "more than 512 layers"),
        pytest.param("llama", {**LLAMA_8B, "block_count": "32"}, "expected a whole number, got '32'"),
        pytest.param("llama", {**LLAMA_8B, "block_count": 0}, "must be at least 1"),
        pytest.param("llama", {**LLAMA_8B, "nextn_predict_layers": 32}, "32 of 32 layers"),
        pytest.param("llama", {**LLAMA_8B, "attention.head_count": None}, "attention.head_count: missing"),
        pytest.param("llama", {**LLAMA_8B, "attention.head_count_kv": [8] * 9}, "9 entries for 32 layers"),
        pytest.param("llama", {**LLAMA_8B, "context_length": None}, "context_length: missing"),
        pytest.param("llama", {**LLAMA_8B, "attention.key_length": 1.5}, "expected a whole number, got 1.5"),
        pytest.param("gpt-oss", LLAMA_8B, "attention.sliding_window: missing"),
        pytest.param("mimo2", {**LLAMA_8B, "attention.sliding_window": 8}, "sliding_window_pattern: missing"),
        pytest.param("mamba", {}, "ssm.inner_size: missing"),
        pytest.param("mamba2", {**SSM, "ssm.time_step_rank": 7}, "128 is no multiple of the 7 heads"),
        pytest.param("deepseek2", {**DEEPSEEK_V3, "attention.head_count_kv": 4}, "4 for a latent"),
        pytest.param("bert", LLAMA_8B, "'bert' is not understood"),
    ],
)
def test_what_is_not_understood_is_refused_by_name(tmp_path, architecture, values, words):
    with pytest.raises(UnsupportedModelError, match=words) as caught:
        read_gguf(written(tmp_path, architecture, values))
    assert str(tmp_path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_header_cut_anywhere_is_one_line(tmp_path):
    whole = written(tmp_path, "llama", LLAMA_8B, WEIGHTS).read_bytes()
    end = whole.rindex(b"nextn.eh_proj") + 52  # the rest of its name, and its sizes, type and offset
    cut = tmp_path / "cut.gguf"
    for size in range(0, end, 7):
        cut.write_bytes(whole[:size])
        with pytest.raises(ProfileError, match=r"truncated|empty|begin") as caught:
            read_gguf(cut)
        assert "\n" not in str(caught.value)


def test_a_header_with_any_byte_changed_answers_or_is_refused(tmp_path):
    whole = bytearray(written(tmp_path, "llama", LLAMA_8B, WEIGHTS).read_bytes())
    changed = tmp_path / "changed.gguf"
    generator = np.random.default_rng(7)
    for _ in range(300):
        copy = bytearray(whole)
        for place in generator.integers(0, len(whole) // 2, 3):
            copy[place] = generator.integers(0, 256)
        changed.write_bytes(copy)
        with contextlib.suppress(KvcalcError):
            load(str(changed))  # anything else that it raises fails the test


def a_list(kind: int, count: int) -> bytes:
    """Return a header of version 3, without tensors, whose one key `k` is a list (type 9)."""
    key = (1).to_bytes(8, "little") + b"k" + (9).to_bytes(4, "little")
    numbers = kind.to_bytes(4, "little") + count.to_bytes(8, "little")
    return b"GGUF\x03\0\0\0" + bytes(8) + (1).to_bytes(8, "little") + key + numbers


@pytest.mark.parametrize(
    ("data", "words"),
    [
        pytest.param(b"GGUF\x03\0\0\0" + b"\xff" * 16, "tensors are more than the 65,536"),
        pytest.param(b"GGUF\x01\0\0\0" + b"\0" * 16, "version 1 is not read"),
        pytest.param(b"PK\x03\x04" + b"\0" * 20, "does not begin with 'GGUF'"),
        pytest.param(
            a_list(kind=0, count=2**62),
            "truncated",
            id="a list of 2^62 bytes",
        ),
        pytest.param(
            a_list(kind=8, count=2**62),
            "beyond the 4,000,000 texts",
            id="a list of 2^62 texts",
        ),
        pytest.param(
            a_list(kind=9, count=2),
            "values of type 9 are not read",
            id="a list of lists",
        ),
    ],
)
def test_hostile_headers(tmp_path, data, words):
    file = tmp_path / "bad.gguf"
    file.write_bytes(data)
    with pytest.raises(ProfileError, match=words):
        read_gguf(file)


def with_vocabulary(folder, words):
    file = folder / "vocabulary.gguf"
    writer = gguf.GGUFWriter(file, "llama")
    writer.add_array("tokenizer.ggml.tokens", words)
    for key, value in LLAMA_8B.items():
        add(writer, f"llama.{key}", value)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    return file


def test_a_vocabulary_is_passed_over(tmp_path):
    file = with_vocabulary(tmp_path, [f"word {number}" for number in range(1000)])
    assert read_gguf(file).layers == 32


def test_a_vocabulary_that_runs_over_the_end(tmp_path):
    file = with_vocabulary(tmp_path, ["one", "two", "three"])
    whole = file.read_bytes()
    for kept in (whole.index(b"one") + 1, whole.index(b"two") - 4, whole.index(b"three") + 2):
        file.write_bytes(whole[:kept])
        with pytest.raises(ProfileError, match="truncated"):
            read_gguf(file)


def test_big_endian_files_are_read(tmp_path):
    file = tmp_path / "big.gguf"
    writer = gguf.GGUFWriter(file, "llama", endianess=gguf.GGUFEndian.BIG)
    for key, value in LLAMA_8B.items():
        add(writer, f"llama.{key}", value)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    assert layout(file).bytes_per_token == 131_072


def test_every_windowed_architecture_says_which_layers_slide():
    assert all(rule.period is None or rule.period > 1 for rule in WINDOWED.values())
