"""Sizes read from headers and indexes, and what malformed files say."""

import json
import struct

import pytest

from kvcalc.errors import ProfileError
from kvcalc.parameters.safetensors import INDEX, read_folder, read_header


def tensor(dtype, shape, begin, end):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def write(path, header, data=0, length=None):
    text = json.dumps(header).encode() if isinstance(header, dict) else header
    path.write_bytes(struct.pack("<Q", len(text) if length is None else length) + text + bytes(data))


def test_a_header_gives_bytes_by_dtype(tmp_path):
    path = tmp_path / "model.safetensors"
    header = {
        "__metadata__": {"format": "pt"},
        "a": tensor("BF16", [2, 3], 0, 12),
        "b": tensor("F32", [2], 12, 20),
    }
    write(path, header, data=20)
    assert read_header(path) == {"BF16": 12, "F32": 8}


def test_a_folder_sums_its_shards(tmp_path):
    for number in (1, 2):
        write(tmp_path / f"{number}.safetensors", {"a": tensor("U8", [5], 0, 5)}, data=5)
    weights = read_folder(tmp_path)
    assert (weights.bytes, weights.by_dtype) == (10, {"U8": 10})


def test_an_index_without_its_shards_gives_its_total(tmp_path):
    index = {"metadata": {"total_size": 123}, "weight_map": {"a": "model-00001-of-00002.safetensors"}}
    (tmp_path / INDEX).write_text(json.dumps(index))
    assert read_folder(tmp_path).bytes == 123


def test_shards_win_over_the_total_of_their_index(tmp_path):
    write(tmp_path / "one.safetensors", {"a": tensor("I8", [4], 0, 4)}, data=4)
    index = {"metadata": {"total_size": 999}, "weight_map": {"a": "one.safetensors"}}
    (tmp_path / INDEX).write_text(json.dumps(index))
    assert read_folder(tmp_path).bytes == 4


def test_a_folder_without_weights_has_none(tmp_path):
    assert read_folder(tmp_path) is None


@pytest.mark.parametrize(
    ("header", "length", "message"),
    [
        pytest.param({}, 2**60, "does not fit the file", id="a header longer than the file"),
        pytest.param(b"[" * 100_000, None, "not valid JSON", id="nesting without end"),
        pytest.param(b"[1]", None, "expected a JSON object", id="a list"),
        pytest.param({"a": tensor("F99", [1], 0, 1)}, None, "'F99' is not known", id="unknown dtype"),
        pytest.param({"a": tensor("U8", [2], 0, 1)}, None, "disagree", id="shape against offsets"),
        pytest.param({"a": tensor("U8", [-1], 0, -1)}, None, "no dtype, shape", id="negative side"),
        pytest.param({"a": 1}, None, "no dtype, shape", id="a number in place of a tensor"),
        pytest.param({"a": tensor("U8", [9], 0, 9)}, None, "larger than the file", id="data missing"),
    ],
)
def test_malformed_files_are_one_line(tmp_path, header, length, message):
    path = tmp_path / "model.safetensors"
    write(path, header, length=length)
    with pytest.raises(ProfileError, match=message) as error:
        read_header(path)
    assert "\n" not in str(error.value)


def test_too_short_a_file(tmp_path):
    (tmp_path / "model.safetensors").write_bytes(b"abc")
    with pytest.raises(ProfileError, match="too short"):
        read_folder(tmp_path)


@pytest.mark.parametrize(
    ("index", "message"),
    [
        ({"weight_map": {"a": "../../etc/passwd"}}, "is not a file name"),
        ({"weight_map": {"a": "x.safetensors"}, "metadata": {"total_size": "big"}}, "total_size"),
        ({"metadata": {}}, "weight_map: missing"),
    ],
)
def test_malformed_indexes_are_one_line(tmp_path, index, message):
    (tmp_path / INDEX).write_text(json.dumps(index))
    with pytest.raises(ProfileError, match=message):
        read_folder(tmp_path)
