"""A folder with a config and weights: the two are compared."""

import json
import struct

import pytest

from kvcalc.catalog.models import load

CONFIG = {
    "model_type": "llama",
    "num_hidden_layers": 1,
    "hidden_size": 64,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 128,
    "vocab_size": 128,
    "max_position_embeddings": 1024,
    "tie_word_embeddings": True,
    "torch_dtype": "bfloat16",
}
# Embedding, q and o, k and v, gate, up and down, three norms.
PARAMETERS = 128 * 64 + 2 * 64 * 64 + 2 * 32 * 64 + 3 * 128 * 64 + 3 * 64


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    return tmp_path


def add_weights(folder, elements, dtype="BF16", width=2):
    tensor = {"dtype": dtype, "shape": [elements], "data_offsets": [0, width * elements]}
    header = json.dumps({"everything": tensor}).encode()
    body = struct.pack("<Q", len(header)) + header + bytes(width * elements)
    (folder / "model.safetensors").write_bytes(body)


def test_files_that_agree_need_no_note(folder):
    add_weights(folder, PARAMETERS)
    model = load(str(folder))
    assert model.parameters.bytes == 2 * PARAMETERS
    assert model.notes == ()


def test_files_that_hold_more_are_said_and_not_followed(folder):
    add_weights(folder, PARAMETERS, "F32", 4)
    model = load(str(folder / "config.json"))
    assert model.parameters.bytes == 2 * PARAMETERS  # engines load fp32 files in 16 bits
    assert len(model.notes) == 1
    assert str(folder) in model.notes[0]


def test_an_index_alone_is_enough_to_compare(folder):
    index = {"metadata": {"total_size": 8 * PARAMETERS}, "weight_map": {"a": "model-1.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    assert "model.safetensors.index.json: holds" in load(str(folder)).notes[0]
