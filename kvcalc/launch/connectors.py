"""vLLM's KV connectors as data: which one a launch gets, and what it does to hybrid models."""

from kvcalc.launch.settings import LaunchSettings

HYBRID_CONNECTORS = frozenset(
    {
        "OffloadingConnector",
        "SimpleCPUOffloadConnector",
        "NixlConnector",
        "NixlPullConnector",
        "NixlPushConnector",
        "MooncakeConnector",
        "MooncakeStoreConnector",
        "MoRIIOConnector",
        "HiSparseConnector",
        "UMBPStoreConnector",
        "DecodeBenchConnector",
        "ExampleHiddenStatesConnector",
    }
)
"""Connectors that keep the hybrid KV cache manager, those that subclass `SupportsHMA` in vLLM 0.33.0;
a MultiConnector does if all its children do."""

ASKS_CONNECTOR = (0, 22)
"""First release that asks the connector; before, any connector turned the manager off
(vllm/config/vllm.py of 0.21.0 and 0.22.0)."""

LMCACHE_SERVER = (0, 23)
"""First release whose `--kv-offloading-backend lmcache` is the multi-process connector, which takes its
size from its own server (vllm/config/vllm.py of 0.22.0 and 0.23.0)."""

NATIVE_BY_DEFAULT = (0, 14)
"""First release in which a size alone turns offloading on; before, a backend had to be named."""

SHARED_MEMORY = (0, 20)
"""First release that keeps the CPU tier in /dev/shm (kv_offload/cpu/shared_offload_region.py)."""

SINGLE_COPY = (0, 27)
"""First release that keeps one host copy of what all tensor-parallel ranks hold alike, MLA latents, where
there is no other parallelism (kv_connector/v1/offloading/config.py: replicated_layout)."""

PROMPT_ONLY = (0, 23)
"""First release with `offload_prompt_only`, true by default."""

Release = tuple[int, int]


def release_of(launch: LaunchSettings) -> Release | None:
    """Return major and minor number of the launch's version, None where it does not say one."""
    if launch.version is None:
        return None
    major, minor = launch.version.split(".")[:2]
    return int(major), int(minor)


def reaches(launch: LaunchSettings, since: Release) -> bool:
    """Whether the launch's version has what `since` brought; the newest is meant where none is said."""
    found = release_of(launch)
    return found is None or found >= since


def connectors_of(launch: LaunchSettings) -> tuple[str, ...]:
    """Return the connectors that a vLLM launch uses; a wrapper is left out in favour of its children."""
    if launch.engine != "vllm":
        return ()
    named = tuple(str(item.value) for item in launch.fields if item.name == "connector")
    if offloads_by_size(launch):
        return (_built_in(launch),)
    children = tuple(name for name in named if name != "MultiConnector")
    return children or named


def offloads_by_size(launch: LaunchSettings) -> bool:
    """Whether `--kv-offloading-size` (and, in old releases, a backend) turns offloading on."""
    named = launch.has("host_backend") or reaches(launch, NATIVE_BY_DEFAULT)
    return launch.has("host_size") and named


def _built_in(launch: LaunchSettings) -> str:
    if launch.value("host_backend", "native") == "lmcache":
        return "LMCacheMPConnector" if reaches(launch, LMCACHE_SERVER) else "LMCacheConnectorV1"
    return "SimpleCPUOffloadConnector" if launch.value("simple_offload") else "OffloadingConnector"


def uses_lmcache(launch: LaunchSettings) -> bool:
    """Whether LMCache holds the host tier."""
    lmcache = any("LMCache" in name for name in connectors_of(launch)) or bool(launch.value("lmcache"))
    own = launch.has("chunk", "worker_size", "local_cpu", "disk", "remote")  # its own file or variables alone
    return lmcache or (launch.engine == "vllm" and not connectors_of(launch) and own)


def turns_hybrid_off(launch: LaunchSettings) -> bool:
    """Whether vLLM runs without its hybrid KV cache manager because of a connector."""
    names = connectors_of(launch)
    if not names or launch.has("hybrid_disabled"):
        return False
    return not reaches(launch, ASKS_CONNECTOR) or not set(names) <= HYBRID_CONNECTORS
