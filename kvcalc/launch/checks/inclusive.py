"""A host tier that holds copies of what the device holds must be larger than it to add anything."""

from collections.abc import Iterator

from kvcalc.launch.checks.check import Check, Finding, gb
from kvcalc.launch.checks.deployment import Deployment


def find(deployment: Deployment) -> Iterator[Finding]:
    """Compare the two sizes; both are held in the same layout, so bytes compare as tokens do."""
    host = deployment.host
    if host is None or not host.inclusive or host.total > deployment.device_total:
        return
    flag = host.given.flag if host.given else "the tier's default size"
    wanted = 2 * deployment.device_total
    yield Finding(
        "warning",
        f"{flag} gives {gb(host.total)} of host memory and the GPUs hold {gb(deployment.device_total)} of "
        "KV; "
        "stores are immediate, so the host holds the same blocks and adds no capacity",
        f"more than {gb(deployment.device_total)}; twice as much ({gb(wanted)}) doubles what can hit",
        host.given.where if host.given else deployment.launch.file,
    )


CHECK = Check(
    "host-tier-adds-nothing",
    "https://blog.vllm.ai/2026/01/08/kv-offloading-connector.html",
    find,
    engines=("vllm", "sglang"),
)
