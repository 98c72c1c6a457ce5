"""Workers of one host restore at once and share what leads to its memory."""

from collections.abc import Iterator

from kvcalc.launch.checks.check import Check, Finding
from kvcalc.launch.checks.deployment import Deployment
from kvcalc.wording import size_text


def find(deployment: Deployment) -> Iterator[Finding]:
    """Compare what all links take with the host's own memory bandwidth, where it is known."""
    machine, gpus = deployment.scenario.hardware, deployment.scenario.gpus
    if deployment.host is None or gpus < 2 or machine.device.unified:
        return
    link = machine.host_to_device.bandwidth
    where = deployment.host.given.where if deployment.host.given else deployment.launch.file
    if machine.host is not None:
        if gpus * link > machine.host.bandwidth:
            yield Finding(
                "warning",
                f"{gpus} GPUs restoring at once could take {gpus * link / 1e9:.0f} GB/s and the host's "
                f"memory gives {machine.host.bandwidth / 1e9:.0f} GB/s",
                f"plan with {size_text(machine.host.bandwidth / gpus)}/s a GPU (--tier)",
                where,
            )
        return
    yield Finding(
        "info",
        f"the plan gives each of {gpus} GPUs a host link of {size_text(link)}/s of its own; where GPUs "
        "share a switch or a socket, neighbours have been seen to take 40 % of it",
        "--tier with the rate that all ranks reach at once",
        where,
    )


CHECK = Check("shared-links", "https://github.com/s990093/paper-hierarchical-kv-state", find)
