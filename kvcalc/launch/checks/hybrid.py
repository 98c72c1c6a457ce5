"""A connector may turn vLLM's hybrid KV cache manager off, and windows and states are then kept in full."""

from collections.abc import Iterator
from dataclasses import replace

from kvcalc.engines import lay_out
from kvcalc.engines.vllm.deployment import is_state
from kvcalc.launch.checks.check import Check, Finding, gb
from kvcalc.launch.checks.deployment import Deployment
from kvcalc.launch.connectors import HYBRID_CONNECTORS, connectors_of, turns_hybrid_off
from kvcalc.launch.settings import LaunchSettings


def find(deployment: Deployment) -> Iterator[Finding]:
    """Refuse what vLLM refuses, and say what a sequence costs with and without the manager."""
    launch, scenario = deployment.launch, deployment.scenario
    yield from _forced(launch)
    off = turns_hybrid_off(launch)
    if not off and not launch.value("hybrid_disabled"):
        return
    parts = scenario.model.shape.components_for("vllm")
    states = [part for part in parts if is_state(part)]
    windows = [part for part in parts if part.growth.kind in ("window", "chunk")]
    if not windows and len(states) in (0, len(parts)):
        return
    names = ", ".join(connectors_of(launch))
    why = f"{names} turns the hybrid KV cache manager off" if off else "the hybrid KV cache manager is off"
    where = launch.where("hybrid_disabled", "connector", "host_size")
    if states:
        message = f"{why}, and {scenario.model.name} has recurrent states, which vLLM serves only with it"
        yield Finding("error", message, _INSTEAD, where)
        return
    tokens = float(deployment.prompt + deployment.generate)
    on, without = (_sequence(deployment, manager, tokens) for manager in (True, False))
    if without > on:
        yield Finding(
            "warning",
            f"{why}: a sequence of {tokens:,.0f} tokens takes {gb(without)} a GPU instead of {gb(on)}, "
            f"{without / on:.2g} times as much, since windows are kept in full",
            _INSTEAD,
            where,
        )


def _forced(launch: LaunchSettings) -> Iterator[Finding]:
    given = launch.field("hybrid_disabled")
    others = set(connectors_of(launch)) - HYBRID_CONNECTORS
    if given is not None and not given.value and others:
        yield Finding(
            "error",
            f"{given.flag} and {', '.join(sorted(others))}, which does without the hybrid KV cache "
            "manager: vLLM does not start",
            "leave the flag out",
            given.where,
        )


def _sequence(deployment: Deployment, manager: bool, tokens: float) -> float:
    """Return what one sequence reserves on a GPU with or without the manager."""
    settings = replace(deployment.scenario.settings, hybrid_manager=manager)
    return float(lay_out(deployment.scenario.model.shape, settings).reserved(tokens))


_INSTEAD = "vLLM 0.22 or later with a connector that keeps it, such as OffloadingConnector"

CHECK = Check(
    "hybrid-manager-off",
    "https://docs.vllm.ai/en/latest/design/hybrid_kv_cache_manager/",
    find,
    engines=("vllm",),
)
