"""vLLM: flags of `vllm serve`, keys of its JSON arguments, environment variables.

Units as in `vllm/config/cache.py` (`kv_offloading_size`: GiB over all ranks; `swap_space`,
`cpu_offload_gb`: GiB a GPU) and docs/features/kv_offloading_usage.md (`cpu_bytes_to_use`: bytes over
all workers); first and last releases by comparing the wheels 0.9.2 to 0.33.0.
"""

from kvcalc.launch.flags.dialect import Dialect, Flag
from kvcalc.launch.flags.lmcache import LMCACHE_VARIABLES, in_extra_config

SELECTIVE_FROM = 2
"""Least `store_threshold` [1] that leaves blocks out: one that is stored at its second lookup was seen
again, as in Strata and in SGLang's write_through_selective."""
THRESHOLD_FROM = (0, 18)
"""First release with `store_threshold`."""

_FLAGS = (
    Flag(("--model", "--model-tag"), "model"),
    Flag(("--tensor-parallel-size", "-tp"), "tp", "count", key="tp"),
    Flag(("--pipeline-parallel-size", "-pp"), "pp", "count", key="pp"),
    Flag(("--data-parallel-size", "-dp"), "dp", "count", key="dp"),
    Flag(("--decode-context-parallel-size", "-dcp"), "dcp", "count", key="dcp"),
    Flag(("--enable-expert-parallel", "-ep"), "expert_parallel", "switch"),
    Flag(("--max-model-len",), "max_len", "size", "token", key="max_len"),
    Flag(("--max-num-seqs",), "max_seqs", "size", key="max_seqs"),
    Flag(("--max-num-batched-tokens",), "max_batched_tokens", "size", "token", key="max_batched_tokens"),
    Flag(("--gpu-memory-utilization",), "utilization", "number", key="utilization"),
    Flag(("--kv-cache-memory-bytes",), "pool", "size", "byte", "worker", key="pool"),
    Flag(("--kv-cache-dtype",), "kv_dtype", key="kv_dtype"),
    Flag(("--block-size",), "block_size", "count", "token", key="block_size"),
    Flag(("--num-gpu-blocks-override",), "num_blocks", "count", "block", key="num_blocks"),
    Flag(("--enable-prefix-caching",), "prefix_caching", "switch", key="prefix_caching"),
    Flag(("--prefix-caching-hash-algo",), "hash_algorithm"),
    Flag(("--disable-hybrid-kv-cache-manager",), "hybrid_disabled", "switch"),
    Flag(("--kv-offloading-size",), "host_size", "number", "GiB", "total"),
    Flag(("--kv-offloading-backend",), "host_backend"),
    Flag(("--swap-space",), "swap_space", "number", "GiB", "worker"),
    Flag(("--cpu-offload-gb",), "weight_offload", "number", "GiB", "worker"),
    Flag(("--kv-transfer-config",), "transfer", "json"),
    Flag(("--speculative-config", "-sc"), "speculation", "json"),
    Flag(("--quantization", "-q"), "quantization"),
    Flag(("--dtype",), "dtype"),
    Flag(("--config",), "config_file"),
    Flag(("--trust-remote-code",), "trust", "switch"),
    Flag(("--enforce-eager",), "eager", "switch"),
    Flag(("--enable-chunked-prefill",), "chunked_prefill", "switch"),
)

_DOCUMENT = (
    Flag(("kv_connector",), "connector"),
    Flag(("kv_role",), "role"),
    Flag(("spec_name",), "spec"),
    Flag(("cpu_bytes_to_use",), "host_bytes", "number", "byte", "total", since=(0, 14)),
    Flag(("cpu_bytes_to_use_per_rank",), "host_bytes_per_rank", "number", "byte", "worker", since=(0, 19)),
    Flag(("num_cpu_blocks",), "host_blocks", "count", "block", until=(0, 13)),
    Flag(("block_size",), "offload_block", "count", "token"),
    Flag(("blocks_per_chunk",), "blocks_per_chunk", "count", "block"),
    Flag(("eviction_policy",), "eviction_policy"),
    Flag(("store_threshold",), "store_threshold", "integer", since=THRESHOLD_FROM),
    Flag(("max_tracker_size",), "tracker", "integer"),
    Flag(("offload_prompt_only",), "prompt_only", "switch", since=(0, 23)),
    Flag(("lazy_offload",), "lazy", "switch"),
    Flag(("secondary_tiers",), "secondary_tiers", "items", since=(0, 22)),
    Flag(("num_speculative_tokens",), "spec_tokens", "integer", key="spec_tokens"),
    *in_extra_config(),
)

_ENVIRONMENT = (
    Flag(("PYTHONHASHSEED",), "hash_seed"),
    Flag(("VLLM_USE_SIMPLE_KV_OFFLOAD",), "simple_offload", "switch", implies=True),
    *LMCACHE_VARIABLES,
)

VLLM = Dialect(
    engine="vllm",
    programs=(
        ("vllm", "serve"),
        ("vllm.entrypoints.openai.api_server",),
        ("vllm.entrypoints.api_server",),
        ("dynamo.vllm",),
        ("lmcache_vllm", "serve"),
    ),
    images=("vllm-openai", "vllm/vllm", "rocm/vllm", "vllm-cuda", "vllm-dev"),
    flags=_FLAGS,
    names="vllm.txt",
    complete=True,
    underscores=True,
    environment=_ENVIRONMENT,
    document=_DOCUMENT,
)
