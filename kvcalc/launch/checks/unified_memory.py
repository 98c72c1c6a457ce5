"""Where CPU and GPU share one memory, moving KV to the host frees nothing."""

from collections.abc import Iterator

from kvcalc.launch.checks.check import Check, Finding
from kvcalc.launch.checks.deployment import Deployment


def find(deployment: Deployment) -> Iterator[Finding]:
    """Say so."""
    machine = deployment.scenario.hardware
    if deployment.host is not None and machine.device.unified:
        yield Finding(
            "warning",
            f"{machine.title} has one memory for CPU and GPU: the host tier takes what the KV pool could "
            "have had",
            "leave the tier out and give the pool more",
            deployment.host.given.where if deployment.host.given else deployment.launch.file,
        )


CHECK = Check("one-memory", "https://vllm.ai/blog/2026-06-01-vllm-dgx-spark", find)
