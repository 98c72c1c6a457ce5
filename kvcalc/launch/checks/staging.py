"""Behind a host tier, disks and stores are read through it: it must hold what is being restored."""

from collections.abc import Iterator

from kvcalc.launch.checks.check import LMCACHE_KEYS, SGLANG_HICACHE, VLLM_OFFLOADING, Check, Finding, gb, some
from kvcalc.launch.checks.deployment import Deployment
from kvcalc.launch.connectors import uses_lmcache
from kvcalc.launch.flags.lmcache import DEFAULT_WORKER_SIZE
from kvcalc.launch.settings import UNIT_BYTES


def find(deployment: Deployment) -> Iterator[Finding]:
    """Compare the host tier with the longest prefix that a lower tier may hold."""
    host, launch = deployment.host, deployment.launch
    lower = next((name for name in _LOWER if launch.value(name)), None)
    if lower is None:
        return
    need = deployment.stored(deployment.prefix)
    lmcache = uses_lmcache(launch)
    have = host.total if host is not None else 0.0
    if lmcache:  # what it reads passes its buffer, whether or not that is a tier of its own
        size = launch.field("worker_size")
        each = size.bytes if size else DEFAULT_WORKER_SIZE * UNIT_BYTES["GiB"]
        have = each * deployment.workers
    if have >= need:
        return
    yield Finding(
        "warning" if lmcache else "error",
        f"a prefix of {some(deployment.prefix, 'token')} takes {gb(need)} and is staged through the host "
        f"tier of {gb(have)}: only what fits there is loaded, the rest is computed again",
        f"a host tier of at least {gb(need)} for each prefix that is restored at once",
        host.given.where if host is not None and host.given else launch.where(lower),
    )


_LOWER = ("secondary_tiers", "disk", "remote", "storage")
"""Fields that put something slower behind the host tier."""

CHECK = Check(
    "staging-tier-too-small",
    VLLM_OFFLOADING,
    find,
    sources={"lmcache": LMCACHE_KEYS, "sglang": SGLANG_HICACHE},
    engines=("vllm", "sglang"),
)
