"""From a config to its weights: the family by `model_type`, then towers, then storage formats."""

import importlib
import pkgutil
from collections.abc import Callable
from functools import cache

from kvcalc.errors import UnsupportedModelError, did_you_mean
from kvcalc.parameters import families
from kvcalc.parameters.counts import Parameters
from kvcalc.shapes.config import Config

Builder = Callable[[Config], Parameters]


@cache
def builders() -> dict[str, Builder]:
    """Return the builder of each `model_type`, from all family modules."""
    found: dict[str, Builder] = {}
    for module in pkgutil.iter_modules(families.__path__):
        loaded = importlib.import_module(f"{families.__name__}.{module.name}")
        found.update(getattr(loaded, "BUILDERS", {}))
    return found


def count_parameters(config: Config) -> Parameters:
    """Count the weights of a model, from its config alone.

    Raises
    ------
    UnsupportedModelError
        If the `model_type` is unknown or the config lacks a size; nothing is guessed.
    """
    known = builders()
    builder = known.get(config.model_type)
    if builder is None:
        raise UnsupportedModelError(
            f"{config.where}: model_type: the weights of {config.model_type!r} cannot be counted"
            f"{did_you_mean(config.model_type, tuple(known))}"
        )
    return builder(config)
