"""Exact weight bytes from the files next to a config, without reading a single weight.

A safetensors file opens with the length of its header, then JSON that places every tensor.  Files come
from strangers: sizes are limited, nothing is executed, and anything malformed is one line of error.
"""

import json
import struct
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from kvcalc.errors import ProfileError
from kvcalc.shapes.components import MOST_ELEMENTS

INDEX = "model.safetensors.index.json"

_MAX_HEADER = 100 * 2**20  # bytes; the format's own limit
_MAX_INDEX = 200 * 2**20  # bytes; the largest published index has some 20 MB
_MAX_FILES = 4096  # shards of one checkpoint

_BITS = {
    "F64": 64,
    "F32": 32,
    "F16": 16,
    "BF16": 16,
    "I64": 64,
    "I32": 32,
    "I16": 16,
    "I8": 8,
    "U64": 64,
    "U32": 32,
    "U16": 16,
    "U8": 8,
    "BOOL": 8,
    "F8_E4M3": 8,
    "F8_E5M2": 8,
    "F8_E8M0": 8,
    "F4": 4,
}


@dataclass(frozen=True)
class StoredWeights:
    """What a checkpoint's own files say about their size."""

    bytes: int
    by_dtype: dict[str, int]  # bytes by safetensors dtype; empty where only an index was read
    where: str  # the file that said so


def read_folder(folder: Path) -> StoredWeights | None:
    """Return the size of the checkpoint in `folder`, or None when it holds no safetensors file.

    Headers of the shards are preferred: an index states only a total.
    """
    index = folder / INDEX
    if index.is_file():
        names = _shard_names(index)
        shards = [folder / name for name in names]
        if shards and all(shard.is_file() for shard in shards):
            return _sum(shards, str(folder))
        return StoredWeights(_index_total(index), {}, str(index))
    found = sorted(folder.glob("*.safetensors"))[: _MAX_FILES + 1]
    return _sum(found, str(folder)) if found else None


def _sum(shards: list[Path], where: str) -> StoredWeights:
    if len(shards) > _MAX_FILES:
        raise ProfileError(f"{where}: more than {_MAX_FILES} safetensors files")
    total: dict[str, int] = {}
    for shard in shards:
        for dtype, size in read_header(shard).items():
            total[dtype] = total.get(dtype, 0) + size
    return StoredWeights(sum(total.values()), total, where)


def read_header(path: Path) -> dict[str, int]:
    """Return the bytes of one safetensors file by dtype, from its header alone.

    Raises
    ------
    ProfileError
        If the header is too long, is not JSON, or its tensors do not fit the file.
    """
    size = path.stat().st_size
    with path.open("rb") as file:
        start = file.read(8)
        if len(start) < 8:
            raise ProfileError(f"{path}: too short for a safetensors file")
        (length,) = struct.unpack("<Q", start)
        if length > min(_MAX_HEADER, size - 8):
            raise ProfileError(f"{path}: a header of {length} bytes does not fit the file")
        header = _parse(file.read(length), path)
    total: dict[str, int] = {}
    for name, tensor in header.items():
        if name != "__metadata__":
            dtype, count = _tensor(tensor, f"{path}: {name!r:.80}")
            total[dtype] = total.get(dtype, 0) + count
    if sum(total.values()) > size - 8 - length:
        raise ProfileError(f"{path}: the tensors in the header are larger than the file")
    return total


def _tensor(tensor: object, where: str) -> tuple[str, int]:
    """Return dtype and bytes of one tensor of a header, after checking them against each other."""
    match tensor:
        case {"dtype": str(dtype), "shape": [*shape], "data_offsets": [int(begin), int(end)]}:
            if dtype not in _BITS:
                raise ProfileError(f"{where}: dtype {dtype!r:.20} is not known")
            if all(type(side) is int and 0 <= side < MOST_ELEMENTS for side in shape):
                if end - begin == prod(shape) * _BITS[dtype] // 8:
                    return dtype, end - begin
                raise ProfileError(f"{where}: shape and offsets disagree")
    raise ProfileError(f"{where}: no dtype, shape and data_offsets")


def _shard_names(index: Path) -> list[str]:
    names = _read_index(index).get("weight_map")
    if not isinstance(names, dict):
        raise ProfileError(f"{index}: weight_map: missing")
    shards = sorted({str(name) for name in names.values()})
    for name in shards:
        if Path(name).name != name:
            raise ProfileError(f"{index}: weight_map: {name!r:.80} is not a file name")
    return shards


def _index_total(index: Path) -> int:
    metadata = _read_index(index).get("metadata")
    total = metadata.get("total_size") if isinstance(metadata, dict) else None
    if isinstance(total, float) and total.is_integer():
        total = int(total)
    if type(total) is not int or total < 1:
        raise ProfileError(f"{index}: metadata.total_size: {total!r:.40} is no size in bytes")
    return total


def _read_index(index: Path) -> dict[str, Any]:
    if index.stat().st_size > _MAX_INDEX:
        raise ProfileError(f"{index}: larger than {_MAX_INDEX} bytes")
    return _parse(index.read_bytes(), index)


def _parse(text: bytes, path: Path) -> dict[str, Any]:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        raise ProfileError(f"{path}: not valid JSON") from None
    if not isinstance(data, dict):
        raise ProfileError(f"{path}: expected a JSON object")
    return data
