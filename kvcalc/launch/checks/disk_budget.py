"""Filesystem tiers that never delete fill their disk."""

from collections.abc import Iterator

from kvcalc.launch.checks.check import Check, Finding
from kvcalc.launch.checks.deployment import Deployment

TERABYTE = 1e12


def find(deployment: Deployment) -> Iterator[Finding]:
    """Say how long a terabyte lasts when every new token is written."""
    launch, prefill = deployment.launch, float(deployment.result.prefill.time)
    tiers = launch.value("secondary_tiers") or ()
    files = [item for item in tiers if isinstance(item, dict) and item.get("type") == "fs"]
    disk = launch.value("disk") and not launch.value("disk_size", 0)
    if not files and not disk:
        return
    if disk:
        yield Finding(
            "error",
            "max_local_disk_size is not set and is 0 by default, so nothing is kept on disk",
            "max_local_disk_size: N, in GB (2^30 bytes) for each worker",
            launch.where("disk"),
        )
        return
    rate = deployment.bytes_per_token * deployment.prompt / prefill if prefill else 0.0
    hours = TERABYTE / rate / 3600 if rate else 0.0
    yield Finding(
        "warning",
        "the filesystem tier has no limit and deletes nothing: at full prefill speed it grows by "
        f"{rate / 1e9:.2g} GB/s, 1 TB in {hours:.2g} hours",
        "an evictor with a budget in bytes of its own, not one that looks at the mount's free space",
        launch.where("secondary_tiers"),
    )


CHECK = Check(
    "disk-never-evicts", "https://github.com/vllm-project/vllm/issues/54779", find, engines=("vllm", "sglang")
)
