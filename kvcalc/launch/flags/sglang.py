"""SGLang: flags of `python -m sglang.launch_server`, read from SGLang 0.5.23.

`--hicache-size` is multiplied by 1e9 on each rank (srt/mem_cache/pool_host/base.py), so it is GB a
rank; `--hicache-ratio` is host tokens per device token.
"""

from kvcalc.launch.flags.dialect import Dialect, Flag
from kvcalc.launch.flags.lmcache import LMCACHE_VARIABLES

_FLAGS = (
    Flag(("--model-path", "--model"), "model"),
    Flag(("--tp-size", "--tp", "--tensor-parallel-size"), "tp", "count", key="tp"),
    Flag(("--pp-size", "--pp", "--pipeline-parallel-size"), "pp", "count", key="pp"),
    Flag(("--dp-size", "--dp", "--data-parallel-size"), "dp", "count", key="dp"),
    Flag(("--dcp-size", "--decode-context-parallel-size"), "dcp", "count", key="dcp"),
    Flag(("--enable-dp-attention",), "dp_attention", "switch"),
    Flag(("--context-length",), "max_len", "integer", "token", key="max_len"),
    Flag(("--max-running-requests",), "max_seqs", "count", key="max_seqs"),
    Flag(("--max-total-tokens",), "max_total_tokens", "count", "token"),
    Flag(("--chunked-prefill-size",), "max_batched_tokens", "integer", "token", key="max_batched_tokens"),
    Flag(("--mem-fraction-static",), "utilization", "number", key="utilization"),
    Flag(("--kv-cache-dtype",), "kv_dtype", key="kv_dtype"),
    Flag(("--page-size",), "block_size", "count", "token", key="page_size"),
    Flag(("--disable-radix-cache",), "prefix_caching", "off", key="prefix_caching"),
    Flag(("--disable-hybrid-swa-memory",), "hybrid_manager", "off", key="hybrid_manager"),
    Flag(("--enable-hierarchical-cache", "--enable-hicache"), "hicache", "switch"),
    Flag(("--hicache-ratio",), "host_ratio", "number"),
    Flag(("--hicache-size",), "worker_size", "number", "GB", "worker"),
    Flag(("--hicache-write-policy",), "write_policy"),
    Flag(("--hicache-io-backend",), "io_backend"),
    Flag(("--hicache-mem-layout",), "host_layout"),
    Flag(("--hicache-storage-backend",), "storage"),
    Flag(("--hicache-storage-prefetch-policy",), "prefetch"),
    Flag(("--hicache-host-memory-mode",), "host_mode"),
    Flag(("--enable-lmcache",), "lmcache", "switch"),
    Flag(("--lmcache-config-file",), "lmcache_file"),
    Flag(("--cpu-offload-gb",), "weight_offload", "number", "GiB", "worker"),
    Flag(("--speculative-num-draft-tokens",), "spec_tokens", "integer", key="spec_tokens"),
    Flag(("--quantization",), "quantization"),
    Flag(("--trust-remote-code",), "trust", "switch"),
    Flag(("--config",), "config_file"),
)

SGLANG = Dialect(
    engine="sglang",
    programs=(("sglang.launch_server",), ("sglang", "serve"), ("dynamo.sglang",)),
    images=("lmsysorg/sglang", "/sglang:"),
    flags=_FLAGS,
    names="sglang.txt",
    complete=True,
    prefixes=True,
    environment=(Flag(("PYTHONHASHSEED",), "hash_seed"), *LMCACHE_VARIABLES),
)

DEFAULT_RATIO = 2.0
"""Host tokens per device token where neither ratio nor size is said (arg_groups/hicache_hook.py)."""
PREFETCH_TOKENS = 256
"""Shortest hit in storage that HiCache prefetches [token] (HiCache design notes, prefetch threshold)."""
