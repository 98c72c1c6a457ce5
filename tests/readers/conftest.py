"""GGUF files written with the `gguf` package, which the reader does not use."""

from pathlib import Path

import gguf
import numpy as np

from kvcalc.engines import EngineSettings, lay_out
from kvcalc.shapes.readers.gguf import read_gguf


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

SSM = {
    "ssm.conv_kernel": 4,
    "ssm.inner_size": 128,
    "ssm.state_size": 16,
    "ssm.group_count": 2,
    "ssm.time_step_rank": 8,
}
