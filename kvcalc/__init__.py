"""Does a model's KV cache fit a machine, what limits it first, is moving it worth it: kvcalc.

    import kvcalc
    result = kvcalc.plan("llama-3.1-8b", on="h100-sxm-80gb", concurrency=32)
    kvcalc.break_even_bandwidth(size, prefill, remaining, overhead)

Every formula is found here as well as in `kvcalc.formulas`, where type checkers know its signature.
Names are looked up on first use, so that importing kvcalc costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from kvcalc import errors, explain, formulas
    from kvcalc.api import kv, load_hardware, load_model, plan, plan_batch, plan_frame, restore
    from kvcalc.comparing.answer import compare
    from kvcalc.comparing.results import CompareResult
    from kvcalc.diagnose.answer import diagnose_engine
    from kvcalc.engines import EngineSettings, Layout, lay_out
    from kvcalc.errors import (
        DomainError,
        KvcalcError,
        ProfileError,
        SettingsError,
        UnitError,
        UnknownProfileError,
        UnsupportedModelError,
    )
    from kvcalc.eviction.rank_answer import evict_rank
    from kvcalc.eviction.simulate_answer import evict_simulate
    from kvcalc.exports import export
    from kvcalc.fit_results import FitResult
    from kvcalc.fitting import fit
    from kvcalc.probe.command import probe_machine
    from kvcalc.probe.imported import probe_import
    from kvcalc.profiles import Hardware
    from kvcalc.quota.api import quota_reclaim, quota_show
    from kvcalc.replay.answer import replay_trace
    from kvcalc.replay.describe import describe_trace
    from kvcalc.results import KVResult, PlanResult, RestoreResult
    from kvcalc.shapes.components import ModelShape
    from kvcalc.sweeping.answer import sweep
    from kvcalc.sweeping.results import SweepResult
    from kvcalc.units import to_base, to_tokens

_HOME = {
    "CompareResult": "comparing.results",
    "DomainError": "errors",
    "EngineSettings": "engines",
    "FitResult": "fit_results",
    "Hardware": "profiles",
    "KVResult": "results",
    "KvcalcError": "errors",
    "Layout": "engines",
    "ModelShape": "shapes.components",
    "PlanResult": "results",
    "ProfileError": "errors",
    "RestoreResult": "results",
    "SettingsError": "errors",
    "SweepResult": "sweeping.results",
    "UnitError": "errors",
    "UnknownProfileError": "errors",
    "UnsupportedModelError": "errors",
    "compare": "comparing.answer",
    "describe_trace": "replay.describe",
    "diagnose_engine": "diagnose.answer",
    "errors": "",
    "evict_rank": "eviction.rank_answer",
    "evict_simulate": "eviction.simulate_answer",
    "explain": "",
    "export": "exports",
    "fit": "fitting",
    "formulas": "",
    "kv": "api",
    "lay_out": "engines",
    "load_hardware": "api",
    "load_model": "api",
    "plan": "api",
    "plan_batch": "api",
    "plan_frame": "api",
    "probe_import": "probe.imported",
    "probe_machine": "probe.command",
    "quota_reclaim": "quota.api",
    "quota_show": "quota.api",
    "replay_trace": "replay.answer",
    "restore": "api",
    "sweep": "sweeping.answer",
    "to_base": "units",
    "to_tokens": "units",
}
"""Public name -> the module that has it; '' for a module of that name."""

__all__ = [
    "CompareResult",
    "DomainError",
    "EngineSettings",
    "FitResult",
    "Hardware",
    "KVResult",
    "KvcalcError",
    "Layout",
    "ModelShape",
    "PlanResult",
    "ProfileError",
    "RestoreResult",
    "SettingsError",
    "SweepResult",
    "UnitError",
    "UnknownProfileError",
    "UnsupportedModelError",
    "compare",
    "describe_trace",
    "diagnose_engine",
    "errors",
    "evict_rank",
    "evict_simulate",
    "explain",
    "export",
    "fit",
    "formulas",
    "kv",
    "lay_out",
    "load_hardware",
    "load_model",
    "plan",
    "plan_batch",
    "plan_frame",
    "probe_import",
    "probe_machine",
    "quota_reclaim",
    "quota_show",
    "replay_trace",
    "restore",
    "sweep",
    "to_base",
    "to_tokens",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - any public name
    home = _HOME.get(name)
    if home is None:
        home = "formulas"
        if name.startswith("__") or name not in _formulas():
            raise AttributeError(f"module 'kvcalc' has no attribute {name!r}")
    value = import_module(f"kvcalc.{home or name}")
    if home:
        value = getattr(value, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, *_formulas()})


def _formulas() -> list[str]:
    """Return the names of all formulas, none of which this loads."""
    return dir(import_module("kvcalc.formulas"))
