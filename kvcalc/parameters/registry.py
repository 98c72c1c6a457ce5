"""From a config to its weights: the family by `model_type`, then towers, then storage formats."""

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from types import ModuleType
from typing import Any

from kvcalc.errors import UnsupportedModelError, did_you_mean
from kvcalc.parameters import families, towers
from kvcalc.parameters.counts import Parameters, Part
from kvcalc.parameters.formats import BF16, FP16
from kvcalc.parameters.quantization import quantize, with_dtype
from kvcalc.shapes.config import Config
from kvcalc.shapes.defaults import NESTED_DEFAULTS, TEXT_TYPES

Builder = Callable[[Config], Parameters]
Tower = Callable[[Config, int], list[Part]]

_SECTIONS = ("vision_config", "audio_config", "vision_tower_cfg", "mm_vision_tower", "img_processor")
"""Keys by which a config shows that there is more than a language model."""


@cache
def builders() -> dict[str, Builder]:
    """Return the builder of each `model_type`, from all family modules."""
    return _collect(families, "BUILDERS")


@cache
def tower_builders() -> dict[str, Tower]:
    """Return the builder of what surrounds the language model, by outer `model_type`."""
    return _collect(towers, "TOWERS")


def _collect(package: ModuleType, table: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for module in pkgutil.iter_modules(package.__path__):
        loaded = importlib.import_module(f"{package.__name__}.{module.name}")
        found.update(getattr(loaded, table, {}))
    return found


def count_parameters(
    config: Config, *, dtype: str | None = None, quantization: Mapping[str, Any] | None = None
) -> Parameters:
    """Count the weights of a model, from its config alone.

    Parameters
    ----------
    config : the model's config.json
    dtype : a storage format to assume in place of the declared one
    quantization : what an `hf_quant_config.json` next to the config says, for a config without a
        `quantization_config` of its own

    Raises
    ------
    UnsupportedModelError
        If the `model_type` is unknown or the config lacks a size; nothing is guessed.
    """
    config = _with_class_defaults(config)
    known = builders()
    builder = known.get(config.model_type)
    if builder is None:
        raise UnsupportedModelError(
            f"{config.where}: model_type: the weights of {config.model_type!r} cannot be counted"
            f"{did_you_mean(config.model_type, tuple(known))}"
        )
    parameters = _without_empty(_with_tower(builder(config), config))
    if dtype is not None:
        return with_dtype(parameters, dtype)
    parameters = _in_model_dtype(parameters, config)
    declared = config.get("quantization_config") or quantization
    if not declared:
        return parameters
    if not isinstance(declared, Mapping):
        raise UnsupportedModelError(f"{config.where}: quantization_config: expected a mapping")
    inner = declared.get("quantization")
    raw = inner if isinstance(inner, Mapping) else declared
    return quantize(parameters, raw, config.where, expert_dtype=config.own("expert_dtype"))


def _with_class_defaults(config: Config) -> Config:
    """Fill in what a nested text config leaves out because its class has it as default."""
    if not config.nested:
        return config
    if config.outer_model_type in TEXT_TYPES:
        config = config.with_defaults({"model_type": TEXT_TYPES[config.outer_model_type]})
    return config.with_defaults(NESTED_DEFAULTS.get(config.model_type, {}))


def _with_tower(parameters: Parameters, config: Config) -> Parameters:
    """Add vision or audio towers, or a note that the checkpoint has one that is not understood."""
    tower = tower_builders().get(config.outer_model_type)
    sections = [name for name in _SECTIONS if config.top.get(name)]
    if tower is not None and (sections or config.nested):
        width = next(part.columns for part in parameters.parts if part.name == "embedding")
        return replace(parameters, parts=parameters.parts + tuple(tower(config, width)))
    if not sections and not config.nested:
        return parameters
    note = f"only the language model of {config.outer_model_type!r} is counted, nothing around it"
    return replace(parameters, notes=(*parameters.notes, note))


def _without_empty(parameters: Parameters) -> Parameters:
    """Leave out tensors that no layer of this model has."""
    return replace(parameters, parts=tuple(part for part in parameters.parts if part.count))


def _in_model_dtype(parameters: Parameters, config: Config) -> Parameters:
    """Store plain tensors in the model's dtype; engines load fp32 checkpoints in 16 bits."""
    name = str(config.get("dtype", "torch_dtype", default="bfloat16")).removeprefix("torch.")
    if name != "float16":
        return parameters
    return parameters.map(lambda part: replace(part, format=FP16) if part.format == BF16 else part)
