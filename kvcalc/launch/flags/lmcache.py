"""LMCache: keys of its YAML file, which are also environment variables and vLLM extra-config keys.

`max_local_cpu_size` and `max_local_disk_size` are documented in GB and multiplied by 1024^3 by the
allocator of each worker (lmcache/v1/cache_engine.py), so they are GiB a worker.
"""

from dataclasses import replace

from kvcalc.launch.flags.dialect import Dialect, Flag

_KEYS = (
    Flag(("chunk_size",), "chunk", "count", "token"),
    Flag(("local_cpu",), "local_cpu", "switch"),
    Flag(("max_local_cpu_size",), "worker_size", "number", "GiB", "worker"),
    Flag(("local_disk",), "disk"),
    Flag(("max_local_disk_size",), "disk_size", "number", "GiB", "worker"),
    Flag(("remote_url",), "remote"),
    Flag(("remote_serde",), "serde"),
    Flag(("save_decode_cache",), "save_decode", "switch"),
    Flag(("save_unfull_chunk",), "save_unfull_chunk", "switch"),
    Flag(("use_layerwise",), "layerwise", "switch"),
    Flag(("enable_p2p",), "p2p", "switch"),
    Flag(("enable_pd",), "pd", "switch"),
    Flag(("pre_caching_hash_algorithm",), "chunk_hash"),
)

LMCACHE_VARIABLES = (
    *(replace(flag, names=(f"LMCACHE_{flag.names[0].upper()}",)) for flag in _KEYS),
    Flag(("LMCACHE_CONFIG_FILE",), "lmcache_file"),
)


def in_extra_config() -> tuple[Flag, ...]:
    """Return the keys as vLLM's `kv_connector_extra_config` spells them."""
    return tuple(replace(flag, names=(f"lmcache.{flag.names[0]}",)) for flag in _KEYS)


LMCACHE = Dialect(
    engine="lmcache",
    programs=(),
    images=(),
    flags=_KEYS,
    names="lmcache.txt",
    complete=True,
)

DEFAULT_CHUNK = 256
"""Tokens in a chunk where `chunk_size` is not said [token] (lmcache/v1/config.py)."""
DEFAULT_WORKER_SIZE = 5.0
"""Host memory of a worker where `max_local_cpu_size` is not said [GiB] (lmcache/v1/config.py)."""
