"""A connector may turn vLLM's hybrid KV cache manager off, and windows and states are then kept in full."""

from collections.abc import Iterator
from dataclasses import replace

from kvcalc.engines import lay_out
from kvcalc.engines.layout import Layout
from kvcalc.engines.vllm.deployment import is_state
from kvcalc.launch.checks.check import Check, Finding, gb
from kvcalc.launch.checks.deployment import Deployment
from kvcalc.launch.connectors import HYBRID_CONNECTORS, connectors_of, turns_hybrid_off
from kvcalc.launch.settings import LaunchSettings
from kvcalc.planning.offload import moved_bytes


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
    price = "; ".join(_prices(deployment))
    if price:
        given = launch.field("hybrid_disabled")
        instead = _INSTEAD if off or given is None else f"leave {given.flag} out; {_INSTEAD}"
        yield Finding("warning", f"{why}, so windows are kept in full: {price}", instead, where)


def _prices(deployment: Deployment) -> Iterator[str]:
    """Say what a sequence and a restore cost more on a GPU without the manager than with it."""
    with_it, without = (_layout(deployment, manager) for manager in (True, False))
    tokens = float(deployment.prompt + deployment.generate)
    kept, less = float(without.reserved(tokens)), float(with_it.reserved(tokens))
    if kept > less:
        yield f"a sequence of {tokens:,.0f} tokens takes {_more(kept, less)}"
    if deployment.host is None and not deployment.scenario.tiers:
        return
    prefix = float(deployment.prefix // deployment.block_tokens * deployment.block_tokens)
    moved, fewer = float(moved_bytes(without, prefix)), float(moved_bytes(with_it, prefix))
    if moved > fewer > 0:
        yield f"a restore of {prefix:,.0f} tokens moves {_more(moved, fewer)}"


def _more(much: float, less: float) -> str:
    return f"{gb(much)} a GPU instead of {gb(less)}, {much / less:.2g} times as much"


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


def _layout(deployment: Deployment, manager: bool) -> Layout:
    """Return the layout of the plan with or without the manager."""
    settings = replace(deployment.scenario.settings, hybrid_manager=manager)
    return lay_out(deployment.scenario.model.shape, settings)


_INSTEAD = "vLLM 0.22 or later with a connector that keeps it, such as OffloadingConnector"

CHECK = Check(
    "hybrid-manager-off",
    "https://docs.vllm.ai/en/latest/design/hybrid_kv_cache_manager/",
    find,
    engines=("vllm",),
)
