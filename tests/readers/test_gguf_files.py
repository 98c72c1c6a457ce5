"""What a GGUF file holds beside its shape: weights, parts, a vocabulary; and files that are refused."""

import contextlib

import gguf
import numpy as np
import pytest

from kvcalc.catalog.models import load
from kvcalc.errors import KvcalcError, ProfileError, UnsupportedModelError
from kvcalc.shapes.readers.gguf import read_gguf
from kvcalc.shapes.readers.gguf.file import GGML_TYPES, read_header
from tests.readers.conftest import DEEPSEEK_V3, LLAMA_8B, SSM, add, layout, written

F32, F16 = gguf.GGMLQuantizationType.F32, gguf.GGMLQuantizationType.F16
Q4_K, Q6_K = gguf.GGMLQuantizationType.Q4_K, gguf.GGMLQuantizationType.Q6_K


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
