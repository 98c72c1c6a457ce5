"""A Hugging Face config.json, with the files beside it that matter, as a shape."""

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from kvcalc.errors import ProfileError, UnsupportedModelError
from kvcalc.shapes.components import ModelShape
from kvcalc.shapes.config import Config
from kvcalc.shapes.defaults import NESTED_DEFAULTS, TEXT_TYPES
from kvcalc.shapes.families import builders, family_for
from kvcalc.shapes.readers.json_file import checked_object, read_json
from kvcalc.shapes.readers.quantization import declared_kv_dtype

SIDECAR = "hf_quant_config.json"
"""Where ModelOpt up to 0.29 writes what it quantized, the KV cache included."""

DTYPES = {
    "float32": "fp32",
    "float": "fp32",
    "float16": "fp16",
    "half": "fp16",
    "bfloat16": "bf16",
}
"""What torch calls the dtypes that checkpoints are run in, and what kvcalc calls them."""

HEADS = ("ForCausalLM", "ForConditionalGeneration", "LMHeadModel", "Model")
"""Endings of `architectures` names after the part that names the model."""


def read_config(source: str | Path | Mapping[str, Any], where: str | None = None) -> ModelShape:
    """Return the shape that a config.json describes.

    `source` is the file, the folder that holds it, or its parsed contents; `where` names it in
    errors.  Raises `ProfileError` for a malformed file and `UnsupportedModelError` for a model
    that is not understood in full.
    """
    if isinstance(source, Mapping):
        where = where or "config.json"
        return shape_from(checked_object(source, where), None, where)
    path = Path(source)
    if path.is_dir():
        path = path / "config.json"
    where = where or str(path)
    return shape_from(read_json(path), read_sidecar(path), where)


def shape_from(data: Mapping[str, Any], sidecar: Mapping[str, Any] | None, where: str) -> ModelShape:
    """Return the shape of parsed files: the config, and the quantization sidecar if there is one."""
    config = Config(data, where)
    if config.nested and config.outer_model_type in TEXT_TYPES:
        config = config.with_defaults({"model_type": TEXT_TYPES[config.outer_model_type]})
    model_type = _known_type(config)
    if not config.model_type:
        config = Config({**data, "model_type": model_type}, where)
    build = family_for(model_type, where)
    if config.nested:
        config = config.with_defaults(NESTED_DEFAULTS.get(config.model_type, {}))
    shape = build(config)
    dtype = _dtype(config, "torch_dtype", "dtype", where=where) or shape.dtype
    state_dtype = _dtype(config, "mamba_ssm_cache_dtype", "mamba_ssm_dtype", where=where)
    kv_dtype, notes = declared_kv_dtype(data, sidecar, where)
    config.refuse_unread()
    return replace(
        shape,
        name=_name(data, where),
        dtype=dtype,
        state_dtype=state_dtype or shape.state_dtype,
        kv_dtype=kv_dtype or shape.kv_dtype,
        notes=(*shape.notes, *notes),
    )


def _name(data: Mapping[str, Any], where: str) -> str:
    """Return the hub id that the config gives, else the name of the file, or of its folder."""
    given = data.get("_name_or_path")
    if isinstance(given, str) and re.fullmatch(r"[\w-][\w.-]*/[\w.-]+", given):
        return given
    path = Path(where)
    return path.parent.name or path.stem if path.name == "config.json" else path.stem


def _known_type(config: Config) -> str:
    """Return `model_type`; without one, the known type that the architecture's name spells."""
    if config.model_type:
        return config.model_type
    names = config.get("architectures", default=[])
    for name in names if isinstance(names, list) else []:
        stem = str(name)
        for ending in HEADS:
            stem = stem.removesuffix(ending)
        for model_type in builders():
            if model_type.replace("_", "").replace("-", "").lower() == stem.lower():
                return model_type
    said = f"architectures {names!r:.80}" if names else "no architectures either"
    raise UnsupportedModelError(f"{config.where}: model_type: missing, and {said}: not understood")


def _dtype(config: Config, *names: str, where: str) -> str | None:
    """Return the dtype under the first of `names`, of the whole checkpoint before the text part."""
    for source in (config.top, config.text):
        for name in names:
            config.read.add(name)
            value = source.get(name)
            if value in (None, "auto"):
                continue
            word = str(value).removeprefix("torch.")
            if word not in DTYPES:
                raise ProfileError(
                    f"{where}: {name}: {word!r:.60} is not a dtype, known are {', '.join(sorted(DTYPES))}"
                )
            return DTYPES[word]
    return None


def read_sidecar(path: Path) -> Mapping[str, Any] | None:
    """Read the sidecar in the config's folder, or the one of the same name in a folder of sidecars."""
    beside = path.parent / SIDECAR if path.name == "config.json" else None
    for candidate in (beside, path.parent / SIDECAR.removesuffix(".json") / path.name):
        if candidate is not None and candidate.is_file():
            return read_json(candidate)
    return None
