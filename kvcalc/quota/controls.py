"""What each means of a plan is called in the systems that people run, with the unit that each counts in."""

from dataclasses import dataclass

from kvcalc.tables import Column, Table


@dataclass(frozen=True, slots=True)
class Control:
    """One control of one system."""

    means: str
    system: str
    control: str
    counts: str  # unit and scope
    note: str
    source: str


_LMCACHE = "https://docs.lmcache.ai/"
_LMCACHE_QUOTA = "https://github.com/LMCache/LMCache/pull/3137"
_VLLM = "https://docs.vllm.ai/en/latest/features/kv_offloading_usage/"
_VLLM_SALT = "https://docs.vllm.ai/en/latest/design/prefix_caching/"
_MOONCAKE = "https://github.com/kvcache-ai/Mooncake"
_MOONCAKE_QUOTA = "https://github.com/kvcache-ai/Mooncake/pull/2112"
_TRT = "https://nvidia.github.io/TensorRT-LLM/advanced/kv-cache-reuse.html"

CONTROLS: tuple[Control, ...] = (
    Control("free", "LMCache", "clear(tokens, instance, location)", "tokens of one instance and location",
            "releases what the tokens' chunks hold there; chunks of others stay", _LMCACHE),
    Control("free", "vLLM", "block table of the request; freed blocks go to the free queue, the leaf first",
            "blocks, per rank", "a cached block that no request holds counts as free", _VLLM_SALT),
    Control("free", "vLLM", "reset_prefix_cache", "the whole prefix cache of a rank",
            "leaves lower tiers alone unless reset_external is set", _VLLM),
    Control("offload", "vLLM", "--kv-offloading-size", "GiB, total over all ranks",
            "CPU tier of the native or LMCache backend", _VLLM),
    Control("offload", "vLLM", "cpu_bytes_to_use of OffloadingConnector", "bytes, total over all ranks",
            "evicts by lru or arc", _VLLM),
    Control("offload", "LMCache", "move(tokens, from, to)", "tokens of one instance",
            "the copy at the old place may stay", _LMCACHE),
    Control("offload", "TensorRT-LLM", "host_cache_size", "bytes, per rank",
            "blocks with low retention priority go to the host first", _TRT),
    Control("compress", "LMCache", "compress(tokens, instance, method, location)",
            "tokens of one instance and location", "lossy; decompress gives no lost bits back", _LMCACHE),
    Control("evict tail", "TensorRT-LLM", "retention priority and duration of a token range",
            "tokens; priority 0 to 100, milliseconds", "only leaf blocks can go; ties go by LRU", _TRT),
    Control("preempt", "vLLM", "preemption of the request admitted last, or of least priority",
            "requests", "all computed tokens are lost; what the caches still hold is hit again on resuming",
            _VLLM_SALT),
    Control("pin", "LMCache", "pin(tokens, instance, location)", "tokens of one instance and location",
            "a pin that is never taken back is forced open after a time", _LMCACHE),
    Control("pin", "Mooncake", "soft pin (with_soft_pin)", "objects; 30 minutes by default",
            "delays eviction, and is given up under pressure where that is allowed", _MOONCAKE),
    Control("lease", "Mooncake", "lease (default_kv_lease_ttl)",
            "objects; milliseconds, 5 s by default, later 10 s",
            "an object that is being read is not evicted", _MOONCAKE),
    Control("lease", "vLLM", "P2P tier: slots pinned while a peer reads", "CPU blocks, total over all ranks",
            "an unbound store is held for 60 s", _VLLM),
    Control("quota", "LMCache", "quota of a cache_salt (PUT /api/quota/SALT)",
            "bytes of a salt's objects in one tier; limit_gb over HTTP, and logs print GiB as GB",
            "soft, checked about every second; a salt without one has 0 unless a default is set, and "
            "deleting one evicts all it holds", _LMCACHE_QUOTA),
    Control("quota", "Mooncake", "tenant quota, charged at admission (charged_bytes)",
            "bytes, of the whole store",
            "strict; the sum of quotas is not held against the capacity", _MOONCAKE_QUOTA),
    Control("quota", "vLLM", "max_offload_tokens", "tokens of one request", "no quota of a tenant", _VLLM),
    Control("isolation", "vLLM", "cache_salt of a request", "hashes: no unit",
            "nothing is shared across salts, and nothing limited", _VLLM_SALT),
    Control("isolation", "TensorRT-LLM", "cache_salt of a request", "hashes: no unit",
            "nothing is shared across salts", _TRT),
)  # fmt: skip


def controls_table() -> Table:
    """Return the controls as a list."""
    names = ("means", "system", "control", "counts", "note", "source")
    rows = tuple(tuple(getattr(one, name) for name in names) for one in CONTROLS)
    notes = (
        "A ledger counts bytes of one GPU. Where a control counts the total over all ranks, multiply by the "
        "ranks that hold different heads; with MLA every rank holds a whole copy.",
    )
    return Table(
        "Controls of real systems",
        tuple(Column(name) for name in names),
        rows,
        notes,
        "kvcalc.quota_controls/1",
    )
