"""A plan -> the launch that realises it, one module an engine."""

from importlib import import_module

from kvcalc.errors import SettingsError, did_you_mean
from kvcalc.launch.emitters.plan import Target
from kvcalc.results import PlanResult
from kvcalc.scenario import Scenario

TARGETS = {"vllm": "vllm", "sglang": "sglang", "lmcache": "vllm", "llama.cpp": "llama.cpp"}
"""What can be written -> the engine whose plan it is."""

_MODULES = {"llama.cpp": "llamacpp"}


def engine_of(name: str) -> str:
    """Return the engine of a target.

    Raises
    ------
    SettingsError
        If there is no such target; names the nearest.
    """
    if name not in TARGETS:
        raise SettingsError(f"--emit: unknown engine {name!r}{did_you_mean(name, list(TARGETS))}")
    return TARGETS[name]


def emit(name: str, scenario: Scenario, result: PlanResult) -> str:
    """Return the launch of a plan as text.

    Raises
    ------
    SettingsError
        If the target is unknown, or the plan holds not one sequence.
    """
    engine_of(name)
    module = import_module(f"kvcalc.launch.emitters.{_MODULES.get(name, name)}")
    text: str = module.emit(Target(scenario, result))
    return text
