"""A model split over several GGUF files, as llama-gguf-split names them: x-00001-of-00003.gguf."""

import re
from dataclasses import replace
from pathlib import Path

from kvcalc.errors import ProfileError
from kvcalc.shapes.readers.gguf.file import Header, read_header

MOST_PARTS = 1000
"""Most parts that are looked for; the largest known models have some 50."""

_NAMED = re.compile(r"(.+-)00001(-of-(\d{5})\.gguf)")


def with_all_parts(path: Path, header: Header) -> tuple[Header, str | None]:
    """Return the header with the tensors of all parts, or as it is with the name of a missing part."""
    parts = header.metadata.get("split.count", 1)
    if parts == 1 or parts == 0:
        return header, None
    name = _NAMED.fullmatch(path.name)
    if name is None or not isinstance(parts, int) or int(name[3]) != parts or parts > MOST_PARTS:
        raise ProfileError(f"{path}: is one of {parts} parts, but not named as the first of so many")
    tensors = list(header.tensors)
    for number in range(2, parts + 1):
        part = path.with_name(f"{name[1]}{number:05}{name[2]}")
        if not part.is_file():
            return header, part.name
        tensors += read_header(part).tensors
    return replace(header, tensors=tuple(tensors)), None
