"""The host tier that a launch asks for, in bytes for one replica and for each of its workers."""

from collections.abc import Callable
from dataclasses import dataclass

from kvcalc.launch.connectors import connectors_of, offloads_by_size, uses_lmcache
from kvcalc.launch.flags.lmcache import DEFAULT_CHUNK, DEFAULT_WORKER_SIZE
from kvcalc.launch.flags.sglang import DEFAULT_RATIO
from kvcalc.launch.flags.vllm import SELECTIVE_FROM
from kvcalc.launch.settings import UNIT_BYTES, Field, LaunchSettings


@dataclass(frozen=True)
class Device:
    """What sizes are compared with: the KV pool and the workers of one replica."""

    workers: int
    pool: float  # bytes of KV memory of one worker
    block: float  # bytes of one block over all layers of one worker


@dataclass(frozen=True)
class HostTier:
    """Host memory for KV of one replica."""

    total: float  # byte
    workers: int
    given: Field | None  # what said so; None: a default
    inclusive: bool = True  # holds copies of what the device holds, as stores are immediate

    @property
    def per_worker(self) -> float:
        """Bytes of one worker."""
        return self.total / self.workers


def host_tier(launch: LaunchSettings, device: Device) -> HostTier | None:
    """Return the host tier of a launch, None where it has none."""
    return _TIERS[launch.engine](launch, device)


def chunk_tokens(launch: LaunchSettings, block: int) -> int:
    """Return the tokens of the smallest piece that the tier stores and looks up.

    Parameters
    ----------
    launch : what the file says
    block : tokens in one block of the engine [token]
    """
    if uses_lmcache(launch):
        return int(launch.value("chunk", DEFAULT_CHUNK))
    factor = int(launch.value("blocks_per_chunk", 1))
    return int(launch.value("offload_block", block * factor))


def stores_selectively(launch: LaunchSettings) -> bool:
    """Whether the host tier takes only what is seen again."""
    again = bool(launch.value("store_threshold", 0) >= SELECTIVE_FROM)
    return again or launch.value("write_policy") == "write_through_selective"


def _vllm(launch: LaunchSettings, device: Device) -> HostTier | None:
    if uses_lmcache(launch):
        return _lmcache(launch, device)
    if not connectors_of(launch):
        return None
    lazy = bool(launch.value("lazy"))
    by_size = ("host_size",) if offloads_by_size(launch) else ()
    for name in (*by_size, "host_bytes_per_rank", "host_bytes", "host_blocks"):
        given = launch.field(name)
        if given is not None:
            return HostTier(_bytes(given, device), device.workers, given, inclusive=not lazy)
    return None


def _lmcache(launch: LaunchSettings, device: Device) -> HostTier | None:
    if launch.value("local_cpu") is False:
        return None
    if offloads_by_size(launch):
        given = launch.field("host_size")
        return None if given is None else HostTier(given.bytes, device.workers, given)
    given = launch.field("worker_size")
    size = DEFAULT_WORKER_SIZE * UNIT_BYTES["GiB"] if given is None else given.bytes
    return HostTier(size * device.workers, device.workers, given)


def _sglang(launch: LaunchSettings, device: Device) -> HostTier | None:
    if uses_lmcache(launch):
        return _lmcache(launch, device)
    if not launch.value("hicache"):
        return None
    inclusive = launch.value("write_policy", "write_through") != "write_back"
    size, ratio = launch.field("worker_size"), launch.field("host_ratio")
    if size is not None and size.value > 0:
        return HostTier(size.bytes * device.workers, device.workers, size, inclusive)
    share = DEFAULT_RATIO if ratio is None else float(ratio.value)
    return HostTier(share * device.pool * device.workers, device.workers, ratio, inclusive)


def _llamacpp(launch: LaunchSettings, device: Device) -> HostTier | None:
    given = launch.field("host_cache")
    if given is None or given.value <= 0:  # 0 is off, -1 has no limit
        return None
    return HostTier(given.bytes, device.workers, given, inclusive=False)


def _bytes(given: Field, device: Device) -> float:
    if given.unit == "block":
        return float(given.value) * device.block * device.workers
    return given.bytes * (device.workers if given.scope == "worker" else 1)


_TIERS: dict[str, Callable[[LaunchSettings, Device], HostTier | None]] = {
    "vllm": _vllm,
    "sglang": _sglang,
    "llama.cpp": _llamacpp,
}
