"""A connector may turn vLLM's hybrid KV cache manager off, and windows and states are then kept in full."""

from collections.abc import Iterator
from dataclasses import replace

from kvcalc.engines import lay_out
from kvcalc.engines.vllm.deployment import is_state
from kvcalc.errors import KvcalcError
from kvcalc.launch.checks.check import Check, Finding, gb
from kvcalc.launch.checks.deployment import Deployment
from kvcalc.launch.connectors import HYBRID_CONNECTORS, connectors_of, turns_hybrid_off


def find(deployment: Deployment) -> Iterator[Finding]:
    """Say what a sequence costs with and without the manager, where the model is a hybrid."""
    launch, scenario = deployment.launch, deployment.scenario
    off = turns_hybrid_off(launch)
    forced = launch.field("hybrid_disabled")
    others = set(connectors_of(launch)) - HYBRID_CONNECTORS
    if forced is not None and not forced.value and others:
        yield Finding(
            "error",
            f"{forced.flag} and {', '.join(sorted(others))}, which does without the hybrid KV cache manager: "
            "vLLM "
            "does not start",
            "leave the flag out",
            forced.where,
        )
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
        yield Finding(
            "error",
            f"{why}, and {scenario.model.name} has recurrent states, which vLLM serves only with it",
            _INSTEAD,
            where,
        )
        return
    tokens = float(deployment.prompt + deployment.generate)
    try:
        on = lay_out(scenario.model.shape, replace(scenario.settings, hybrid_manager=True))
        without = lay_out(scenario.model.shape, replace(scenario.settings, hybrid_manager=False))
    except KvcalcError:
        return
    sizes = float(on.reserved(tokens)), float(without.reserved(tokens))
    if sizes[1] > sizes[0]:
        yield Finding(
            "warning",
            f"{why}: a sequence of {tokens:,.0f} tokens takes {gb(sizes[1])} a GPU instead of "
            f"{gb(sizes[0])}, "
            f"{sizes[1] / sizes[0]:.2g} times as much, since windows are kept in full",
            _INSTEAD,
            where,
        )


_INSTEAD = "vLLM 0.22 or later with a connector that keeps it, such as OffloadingConnector"

CHECK = Check(
    "hybrid-manager-off",
    "https://docs.vllm.ai/en/latest/design/hybrid_kv_cache_manager/",
    find,
    engines=("vllm",),
)
