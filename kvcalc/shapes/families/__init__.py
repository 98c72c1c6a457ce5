"""One file per attention family; each says which `model_type`s it builds, and how.

A family module has ``MODEL_TYPES`` (the `model_type` values of the language model it builds) and
``build(config) -> ModelShape``.  Adding a family is adding a file here: modules are found by name.
Families share component builders by importing them from the file of the kind (`attention`, ...).
"""

import pkgutil
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from importlib import import_module
from types import ModuleType

from kvcalc.errors import UnsupportedModelError, nearest
from kvcalc.shapes.components import ModelShape
from kvcalc.shapes.config import Config

Builder = Callable[[Config], ModelShape]


def register(modules: Iterable[ModuleType]) -> dict[str, Builder]:
    """Return the builder of each `model_type`; two modules that claim one are an error."""
    owners: dict[str, ModuleType] = {}
    for module in modules:
        for model_type in getattr(module, "MODEL_TYPES", ()):
            if model_type in owners:
                raise RuntimeError(
                    f"model_type {model_type!r} is claimed by {owners[model_type].__name__} "
                    f"and by {module.__name__}"
                )
            owners[model_type] = module
    return {model_type: module.build for model_type, module in owners.items()}


@cache
def builders() -> Mapping[str, Builder]:
    """Return the builder of every known `model_type`; family modules are imported on first use."""
    names = sorted(info.name for info in pkgutil.iter_modules(__path__))
    return register(import_module(f"{__name__}.{name}") for name in names)


def family_for(model_type: str, where: str = "config.json") -> Builder:
    """Return what builds the shape of `model_type`, or refuse the type by name."""
    known = builders()
    if model_type in known:
        return known[model_type]
    similar = nearest(model_type, list(known))
    hint = f"; similar but not assumed equal: {', '.join(similar)}" if similar else ""
    raise UnsupportedModelError(f"{where}: model_type: {model_type!r} is not understood{hint}")
