"""The header of a GGUF file: metadata and tensor infos, read without the weights and with limits.

A header comes from a stranger.  Counts and lengths in it are checked before they are followed, text
lists (a vocabulary has 256 thousand entries) are walked over and not kept, and nothing is executed.
The layout is that of ggml's docs/gguf.md, versions 2 and 3.
"""

import mmap
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from kvcalc.errors import ProfileError
from kvcalc.shapes.components import MOST_ELEMENTS

MAX_KEYS = 65_536
"""Most metadata keys that are read; real files have 20 to 60."""

MAX_TENSORS = 65_536
"""Most tensors that are read; the largest known models have some 3,000."""

MAX_TEXT = 65_535
"""Longest key, and longest text that is kept; chat templates beyond it are passed over [byte]."""

MAX_NUMBERS = 65_536
"""Longest list of numbers that is kept; per-layer lists have one entry a layer."""

MAX_LISTED_TEXTS = 4_000_000
"""Most list entries of text that are walked over; vocabulary and merges of known models have 1 million."""

MAX_DIMENSIONS = 4
"""ggml's GGML_MAX_DIMS."""

_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
"""GGUF value type -> struct code."""

_TEXT, _LIST = 8, 9

SKIPPED = object()
"""Value of a key whose list or text was passed over."""


@dataclass(frozen=True)
class GgmlType:
    """How ggml stores a row: `block` elements in `size` bytes."""

    name: str
    block: int
    size: int


GGML_TYPES: Mapping[int, GgmlType] = {
    number: GgmlType(name, block, size)
    for number, name, block, size in (
        *((0, "f32", 1, 4), (1, "f16", 1, 2), (30, "bf16", 1, 2), (28, "f64", 1, 8)),
        *((24, "i8", 1, 1), (25, "i16", 1, 2), (26, "i32", 1, 4), (27, "i64", 1, 8)),
        *((2, "q4_0", 32, 18), (3, "q4_1", 32, 20), (6, "q5_0", 32, 22), (7, "q5_1", 32, 24)),
        *((8, "q8_0", 32, 34), (20, "iq4_nl", 32, 18), (39, "mxfp4", 32, 17)),
        *((40, "nvfp4", 64, 36), (41, "q1_0", 128, 18), (42, "q2_0", 64, 18)),
        *((10, "q2_k", 256, 84), (11, "q3_k", 256, 110), (12, "q4_k", 256, 144), (13, "q5_k", 256, 176)),
        *((14, "q6_k", 256, 210), (34, "tq1_0", 256, 54), (35, "tq2_0", 256, 66)),
        *((16, "iq2_xxs", 256, 66), (17, "iq2_xs", 256, 74), (22, "iq2_s", 256, 82)),
        *((18, "iq3_xxs", 256, 98), (21, "iq3_s", 256, 110), (23, "iq4_xs", 256, 136)),
        *((19, "iq1_s", 256, 50), (29, "iq1_m", 256, 56)),
    )
}
"""ggml_type -> block (llama.cpp as vendored in llama-cpp-python 0.3.36, ggml.h and ggml-common.h);
without the two formats, q8_1 and q8_K, that exist between two operations only."""


@dataclass(frozen=True)
class TensorInfo:
    """One tensor: its dimensions, the fastest first, and how it is stored."""

    name: str
    dimensions: tuple[int, ...]
    type: GgmlType

    @property
    def elements(self) -> int:
        """Elements of the tensor."""
        return prod(self.dimensions)

    @property
    def bytes(self) -> int:
        """Bytes of the tensor in the file."""
        return self.elements // self.type.block * self.type.size


@dataclass(frozen=True)
class Header:
    """What a GGUF file says before its weights begin."""

    where: str
    metadata: Mapping[str, Any]
    tensors: tuple[TensorInfo, ...]


def read_header(path: Path) -> Header:
    """Read the header of a GGUF file.

    Raises
    ------
    ProfileError
        If the file cannot be read, is no GGUF file, or its header is truncated or malformed.
    """
    where = str(path)
    try:
        with path.open("rb") as file:
            if not file.read(4):
                raise ProfileError(f"{where}: empty")
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                return _Cursor(data, where).header()
    except (OSError, ValueError) as error:
        if isinstance(error, ProfileError):
            raise
        reason = getattr(error, "strerror", None) or str(error)
        raise ProfileError(f"{where}: cannot be read: {reason}") from None


class _Cursor:
    """Reads values one after the other; every length is checked against the end of the file."""

    def __init__(self, data: mmap.mmap, where: str) -> None:
        self.data, self.where, self.at, self.order = data, where, 0, "<"
        self.texts_left = MAX_LISTED_TEXTS

    def header(self) -> Header:
        if self.take(4) != b"GGUF":
            raise ProfileError(f"{self.where}: not a GGUF file; it does not begin with 'GGUF'")
        version = self.number("I")
        if version > 0xFFFF:  # written on a big-endian machine
            self.order, self.at = ">", 4
            version = self.number("I")
        if version not in (2, 3):
            raise ProfileError(f"{self.where}: GGUF version {version} is not read, only 2 and 3")
        tensors = self.count("Q", MAX_TENSORS, "tensors")
        keys = self.count("Q", MAX_KEYS, "metadata keys")
        metadata: dict[str, Any] = {}
        for _ in range(keys):
            key = self.text()
            if key in metadata:
                raise ProfileError(f"{self.where}: {key}: given twice")
            metadata[key] = self.value(key)
        return Header(self.where, metadata, tuple(self.tensor() for _ in range(tensors)))

    def take(self, size: int) -> bytes:
        self.check(size)
        self.at += size
        return self.data[self.at - size : self.at]

    def check(self, size: int) -> None:
        if size > len(self.data) - self.at:
            raise ProfileError(f"{self.where}: truncated: the header goes on after byte {len(self.data):,}")

    def number(self, code: str) -> Any:  # noqa: ANN401 - an int, a float or a flag
        shape = struct.Struct(self.order + code)
        return shape.unpack(self.take(shape.size))[0]

    def count(self, code: str, most: int, what: str) -> int:
        found = int(self.number(code))
        if found > most:
            raise ProfileError(f"{self.where}: {found:,} {what} are more than the {most:,} that are read")
        return found

    def text(self) -> str:
        raw = self.take(self.count("Q", MAX_TEXT, "bytes of a name"))
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError:
            raise ProfileError(f"{self.where}: byte {self.at:,}: not UTF-8 text") from None

    def value(self, key: str) -> Any:  # noqa: ANN401 - whatever type the file gives
        kind = self.number("I")
        if kind == _TEXT:
            return self.text_or_skip()
        if kind == _LIST:
            return self.items(key)
        return self.number(self.code(kind, key))

    def code(self, kind: int, key: str) -> str:
        if kind not in _SCALARS:
            raise ProfileError(f"{self.where}: {key}: values of type {kind} are not read")
        return _SCALARS[kind]

    def text_or_skip(self) -> Any:  # noqa: ANN401 - text, or SKIPPED
        length = int(self.number("Q"))
        if length > MAX_TEXT:
            self.skip(length)
            return SKIPPED
        return self.take(length).decode("utf-8", "replace")

    def skip(self, size: int) -> None:
        self.check(size)
        self.at += size

    def skip_texts(self, count: int) -> None:
        """Walk over texts; one loop without calls, since a vocabulary has hundreds of thousands."""
        unpack, end, at = struct.Struct(self.order + "Q").unpack_from, len(self.data), self.at
        for _ in range(count):
            if at + 8 > end:
                self.check(end + 1)
            at += 8 + unpack(self.data, at)[0]
        self.skip(at - self.at)

    def items(self, key: str) -> Any:  # noqa: ANN401 - a tuple of numbers, or SKIPPED
        kind, length = self.number("I"), int(self.number("Q"))
        if kind == _TEXT:
            self.texts_left -= length
            if self.texts_left < 0:
                raise ProfileError(f"{self.where}: {key}: beyond the {MAX_LISTED_TEXTS:,} texts read")
            self.skip_texts(length)
            return SKIPPED
        shape = struct.Struct(self.order + self.code(kind, key))
        if length > MAX_NUMBERS:
            self.skip(length * shape.size)
            return SKIPPED
        return tuple(value for (value,) in shape.iter_unpack(self.take(length * shape.size)))

    def tensor(self) -> TensorInfo:
        name = self.text()
        axes = self.count("I", MAX_DIMENSIONS, f"dimensions of {name}")
        dimensions = tuple(int(self.number("Q")) for _ in range(axes))
        kind = int(self.number("I"))
        self.number("Q")  # offset of the data
        if kind not in GGML_TYPES:
            raise ProfileError(f"{self.where}: {name}: ggml type {kind} is not known")
        info = TensorInfo(name, dimensions, GGML_TYPES[kind])
        if not 0 < info.elements < MOST_ELEMENTS or dimensions[0] % info.type.block:
            sizes = " x ".join(map(str, dimensions))
            raise ProfileError(f"{self.where}: {name}: {sizes} is no size of a {info.type.name} tensor")
        return info
