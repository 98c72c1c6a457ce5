"""A host tier that holds copies of what the device holds must be larger than it to add anything."""

from collections.abc import Iterator

from kvcalc.launch.checks.check import Check, Finding, gb
from kvcalc.launch.checks.deployment import Deployment


def find(deployment: Deployment) -> Iterator[Finding]:
    """Compare what both hold; the host may keep one copy of what several GPUs hold alike."""
    host = deployment.host
    same = deployment.pool * deployment.host_copies
    if host is None or not host.inclusive or host.total > same:
        return
    flag = host.given.flag if host.given else "the tier's default size"
    yield Finding(
        "warning",
        f"{flag} gives {gb(host.total)} of host memory and {gb(same)} hold all that the GPUs' pools do; "
        "stores are "
        "immediate, so the host holds the same blocks and adds no capacity",
        f"more than {gb(same)}; twice as much ({gb(2 * same)}) doubles what can hit",
        host.given.where if host.given else deployment.launch.file,
    )


CHECK = Check(
    "host-tier-adds-nothing",
    "https://blog.vllm.ai/2026/01/08/kv-offloading-connector.html",
    find,
    engines=("vllm", "sglang"),
)
