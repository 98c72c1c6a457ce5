"""How serving engines hold a shape: bytes, pages, replication and pools, by engine and version.

`lay_out` is the way in; each engine is one module (or package) with its own ``lay_out``, loaded
when it is asked for.
"""

from importlib import import_module

from kvcalc.engines.checks import check_settings
from kvcalc.engines.layout import ComponentBytes, Layout, Pool
from kvcalc.engines.settings import EngineSettings
from kvcalc.errors import SettingsError, did_you_mean
from kvcalc.shapes.components import ModelShape

__all__ = ["ENGINE_MODULES", "ComponentBytes", "EngineSettings", "Layout", "Pool", "lay_out"]

ENGINE_MODULES = {
    "generic": "kvcalc.engines.generic",
    "vllm": "kvcalc.engines.vllm",
    "sglang": "kvcalc.engines.sglang",
    "llama.cpp": "kvcalc.engines.llamacpp",
    "transformers": "kvcalc.engines.transformers",
}

VERSIONED = ("vllm",)
"""Engines of which the rules of each version are known."""


def lay_out(shape: ModelShape, settings: EngineSettings) -> Layout:
    """Return how `settings.engine` holds `shape`.

    Raises
    ------
    SettingsError
        If the engine is unknown or the settings cannot be run.
    """
    module = ENGINE_MODULES.get(settings.engine)
    if module is None:
        known = list(ENGINE_MODULES)
        raise SettingsError(
            f"--engine: unknown engine {settings.engine!r}{did_you_mean(settings.engine, known)}"
        )
    check_settings(shape, settings)
    layout: Layout = import_module(module).lay_out(shape, settings)
    layout.notes += _version_note(settings)
    return layout


def _version_note(settings: EngineSettings) -> tuple[str, ...]:
    """Say that a version changes nothing where only one set of rules is known."""
    if settings.version is None or settings.engine in VERSIONED:
        return ()
    return (
        f"kvcalc has one set of rules for {settings.engine}, whatever its version: --engine-version "
        f"{settings.version} changes nothing",
    )
