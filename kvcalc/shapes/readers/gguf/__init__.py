"""A GGUF file's metadata as a shape, by the rules with which llama.cpp builds its cache from it.

GGUF is what llama.cpp runs, and its keys mean what llama.cpp makes of them: where a key is absent,
llama.cpp has a value of its own, which is given below with the architecture.  Read in llama.cpp as
vendored in llama-cpp-python 0.3.36: src/llama-model.cpp (load_hparams, create_memory),
src/llama-hparams.cpp and src/models/*.cpp.  An architecture that is not listed is refused by name.
"""

from pathlib import Path

from kvcalc.errors import UnsupportedModelError, did_you_mean
from kvcalc.shapes.components import ModelShape
from kvcalc.shapes.readers.gguf import attention, recurrent
from kvcalc.shapes.readers.gguf.file import Header, read_header
from kvcalc.shapes.readers.gguf.keys import Keys, read_architecture

__all__ = ["Header", "read_gguf", "read_header", "shape_of_header"]

MOST_OF_A_NAME = 80
"""Longest model name that is taken from a file [character]."""


def read_gguf(path: Path) -> ModelShape:
    """Return the shape that a GGUF file's metadata describe.

    Raises
    ------
    ProfileError
        If the file is no GGUF file, or truncated or malformed.
    UnsupportedModelError
        If the architecture is not known, or a key that it needs is missing.
    """
    return shape_of_header(read_header(path))


def shape_of_header(header: Header) -> ModelShape:
    """Return the shape that a GGUF header describes."""
    architecture = read_architecture(header)
    builders = {**attention.BUILDERS, **recurrent.BUILDERS}
    if architecture not in builders:
        raise UnsupportedModelError(
            f"{header.where}: general.architecture: {architecture!r:.60} is not understood"
            f"{did_you_mean(architecture, list(builders))}"
        )
    keys = Keys(header, architecture)
    components, draft, notes = builders[architecture](keys)
    return ModelShape(
        name=_name(header),
        model_type=architecture,
        components=tuple(part for part in components if part.layers),
        layers=keys.layers,
        hidden=keys.size("embedding_length"),
        query_heads=max(keys.per_layer("attention.head_count", [0])),
        max_tokens=keys.size("context_length"),
        dtype="fp16",  # llama.cpp caches in f16 unless told otherwise, whatever the weights are
        draft=tuple(part for part in draft if part.layers),
        notes=notes,
    )


def _name(header: Header) -> str:
    given = header.metadata.get("general.name")
    name = " ".join(given.split()) if isinstance(given, str) else ""
    return name if name.isprintable() and 0 < len(name) <= MOST_OF_A_NAME else Path(header.where).stem
