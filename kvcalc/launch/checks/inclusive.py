"""A host tier that holds copies of what the device holds must be larger than it to add anything."""

from collections.abc import Iterator

from kvcalc.launch.checks.check import SGLANG_HICACHE, Check, Finding, gb
from kvcalc.launch.checks.deployment import Deployment
from kvcalc.launch.connectors import uses_lmcache
from kvcalc.launch.host import stores_selectively


def find(deployment: Deployment) -> Iterator[Finding]:
    """Compare what both hold; the host may keep one copy of what several GPUs hold alike."""
    host, launch = deployment.host, deployment.launch
    same = deployment.pool * deployment.host_copies
    if host is None or host.total > same:
        return
    refused = launch.engine == "sglang" and not uses_lmcache(launch)
    if not host.inclusive and not refused:
        return
    flag = host.given.flag if host.given else "the tier's default size"
    why = "stores are immediate, so the host holds the same blocks and adds no capacity"
    if stores_selectively(launch):
        why = "a block that is seen again is stored while the GPUs hold it too, so it adds no capacity"
    elif not host.inclusive:
        why = "the write policy does not change that it is smaller than what is moved to it"
    yield Finding(
        "warning",
        f"{flag} gives {gb(host.total)} of host memory and {gb(same)} hold all that the GPUs' pools do; {why}"
        + (_REFUSED if refused else ""),
        f"more than {gb(same)}; twice as much ({gb(2 * same)}) doubles what can hit",
        host.given.where if host.given else launch.file,
    )


_REFUSED = (
    "; a release of SGLang that asserts a host pool larger than the GPU's does not start, whatever the write "
    'policy ("The host memory should be larger than the device memory")'
)
"""The assertion of HostKVCache (srt/mem_cache/memory_pool_host.py)."""

CHECK = Check(
    "host-tier-adds-nothing",
    "https://blog.vllm.ai/2026/01/08/kv-offloading-connector.html",
    find,
    engines=("vllm", "sglang"),
    sources={"sglang": SGLANG_HICACHE},
)
