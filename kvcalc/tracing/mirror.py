"""Loads kvcalc's calculating modules a second time, for traced numbers.

The source is that of the modules that everybody runs; only what Python itself decides is handed to
functions (see `rewriting`), and builtins, math and numpy know traced numbers beside plain ones.
"""

import builtins
import importlib
import importlib.util
import types
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Lock
from typing import Any

from kvcalc.tracing.arrays import Numpy
from kvcalc.tracing.builtin import BUILTINS, Functools, Math
from kvcalc.tracing.rewriting import rewritten

MIRRORED = (
    *("formulas", "shapes", "parameters", "engines", "profiles", "scenario", "model", "tiers", "planning"),
    *("catalog.scenarios", "catalog.load"),
)
"""Modules and packages of kvcalc that calculate; all others are the ones that everybody runs."""

Stand = Mapping[str, Mapping[str, Any]]
"""Module -> what stands in place of its own names."""


class _Importlib(types.ModuleType):
    """`importlib`, which finds mirrored modules."""

    import_module: Callable[..., Any]

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib, name)


class Mirror:
    """The mirrored modules, by name."""

    def __init__(self, stand_ins: Stand) -> None:
        self.stand_ins = stand_ins
        self.modules: dict[str, types.ModuleType] = {}
        finder = _Importlib("importlib")
        finder.import_module = self.load
        self.others = {
            "math": Math("math"),
            "numpy": Numpy("numpy"),
            "functools": Functools("functools"),
            "importlib": finder,
        }
        self.builtins = {**BUILTINS, "__import__": self._import}

    def load(self, name: str) -> Any:
        """Return a module: its mirrored copy if it calculates."""
        if not is_mirrored(name):
            return importlib.import_module(name)
        if name in self.modules:
            return self.modules[name]
        parent, _, last = name.rpartition(".")
        if is_mirrored(parent):
            self.load(parent)
        spec = importlib.util.find_spec(name)
        if spec is None or spec.origin is None:
            raise ImportError(name)
        module = types.ModuleType(name)
        module.__file__ = spec.origin
        if spec.submodule_search_locations:
            module.__path__ = list(spec.submodule_search_locations)
        module.__package__ = name if spec.submodule_search_locations else parent
        module.__dict__["__builtins__"] = self.builtins
        self.modules[name] = module
        exec(_code_of(spec.origin), module.__dict__)
        for key, value in self.stand_ins.get(name, {}).items():
            if not hasattr(module, key):  # renamed: a stand-in that nobody calls would pass unseen
                raise ImportError(f"{name} has no {key} that something could stand in for")
            setattr(module, key, value)
        if is_mirrored(parent):
            setattr(self.modules[parent], last, module)
        return module

    def _import(
        self,
        name: str,
        scope: Mapping[str, Any] | None = None,
        local: Mapping[str, Any] | None = None,
        fromlist: tuple[str, ...] = (),
        level: int = 0,
    ) -> Any:
        if name in self.others:
            return self.others[name]
        if not name.startswith("kvcalc"):
            return builtins.__import__(name, scope, local, fromlist, level)
        found = self.load(name)
        for item in fromlist or ():
            if is_mirrored(f"{name}.{item}") and not hasattr(found, item):
                self.load(f"{name}.{item}")
        if name == "kvcalc":
            return _Top(self)
        return found


_SYNTAX = Lock()
"""Lets one thread at a time make syntax trees: CPython 3.11 counts their depth in one place for all threads.

Where two make one at once it raises a SystemError (https://github.com/python/cpython/issues/106905).
"""


def _code_of(file: str) -> types.CodeType:
    """Return what a module runs in the mirror."""
    source = Path(file).read_text(encoding="utf-8")
    with _SYNTAX:
        return compile(rewritten(source, file), file, "exec")


class _Top:
    """The package itself, of which some modules are mirrored."""

    def __init__(self, mirror: Mirror) -> None:
        self.mirror = mirror

    def __getattr__(self, name: str) -> Any:
        return self.mirror.load(f"kvcalc.{name}")


def is_mirrored(name: str) -> bool:
    """Tell a module of which the mirror has a copy."""
    own = name.removeprefix("kvcalc.")
    return own != name and any(f"{own}.".startswith(f"{part}.") for part in MIRRORED)
