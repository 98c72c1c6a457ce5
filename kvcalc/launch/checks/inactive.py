"""Settings of a tier that is not switched on."""

from collections.abc import Iterator

from kvcalc.launch.checks.check import SGLANG_HICACHE, VLLM_OFFLOADING, Check, Finding
from kvcalc.launch.checks.deployment import Deployment
from kvcalc.launch.connectors import LMCACHE_SERVER, connectors_of, reaches
from kvcalc.launch.settings import LaunchSettings


def find(deployment: Deployment) -> Iterator[Finding]:
    """Name what has no effect, and what would switch it on."""
    launch = deployment.launch
    yield from _vllm(launch) if launch.engine == "vllm" else _sglang(launch)


def _vllm(launch: LaunchSettings) -> Iterator[Finding]:
    size, backend = launch.field("host_size"), launch.field("host_backend")
    if backend is not None and size is None:
        yield Finding(
            "error",
            f"{backend.flag} {backend.value} without --kv-offloading-size: nothing is offloaded",
            "--kv-offloading-size N, in GiB for all ranks",
            backend.where,
        )
    if size is not None and not connectors_of(launch):
        yield Finding(
            "error",
            f"vLLM {launch.version} offloads only when a backend is named",
            "--kv-offloading-backend native",
            size.where,
        )
    if (
        size is not None
        and backend is not None
        and backend.value == "lmcache"
        and reaches(launch, LMCACHE_SERVER)
    ):
        yield Finding(
            "error",
            f"{size.flag} {size.value:g} is not passed on: from vLLM 0.{LMCACHE_SERVER[1]} the lmcache "
            "backend takes its size from its own server",
            "start the LMCache server with its size, or --kv-offloading-backend native",
            size.where,
        )


def _sglang(launch: LaunchSettings) -> Iterator[Finding]:
    said = next((launch.field(name) for name in _HICACHE if launch.field(name)), None)
    if said is not None and not launch.value("hicache"):
        yield Finding(
            "error",
            f"{said.flag} has no effect without --enable-hierarchical-cache",
            "--enable-hierarchical-cache",
            said.where,
        )
    if launch.value("hicache") and launch.value("prefix_caching", True) is False:
        yield Finding(
            "error",
            "--enable-hierarchical-cache and --disable-radix-cache exclude each other",
            "leave --disable-radix-cache out",
            launch.where("hicache"),
        )


_HICACHE = ("worker_size", "host_ratio", "write_policy", "storage", "prefetch", "io_backend")

CHECK = Check(
    "tier-not-switched-on",
    VLLM_OFFLOADING,
    find,
    sources={"sglang": SGLANG_HICACHE},
    engines=("vllm", "sglang"),
)
