"""How serving engines hold a shape: bytes, pages, replication and pools, by engine and version.

`lay_out` is the way in; each engine is one module (or package) with its own ``lay_out``, loaded
when it is asked for.  What else tells engines apart is in `kinds`.
"""

from importlib import import_module

from kvcalc.engines.checks import check_settings
from kvcalc.engines.kinds import KINDS, Kind, kind_of
from kvcalc.engines.layout import ComponentBytes, Layout, Pool
from kvcalc.engines.settings import EngineSettings
from kvcalc.shapes.components import ModelShape

__all__ = ["KINDS", "ComponentBytes", "EngineSettings", "Kind", "Layout", "Pool", "kind_of", "lay_out"]


def lay_out(shape: ModelShape, settings: EngineSettings) -> Layout:
    """Return how `settings.engine` holds `shape`.

    Raises
    ------
    SettingsError
        If the engine is unknown or the settings cannot be run.
    """
    kind = kind_of(settings.engine)
    check_settings(shape, settings)
    layout: Layout = import_module(kind.module).lay_out(shape, settings)
    layout.notes += _version_note(settings)
    return layout


def _version_note(settings: EngineSettings) -> tuple[str, ...]:
    """Say that a version changes nothing where only one set of rules is known."""
    if settings.version is None or kind_of(settings.engine).versioned:
        return ()
    return (
        f"kvcalc has one set of rules for {settings.engine}, whatever its version: --engine-version "
        f"{settings.version} changes nothing",
    )
