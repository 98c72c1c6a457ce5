"""Only whole chunks are stored and found: a chunk longer than the prefix never hits."""

from collections.abc import Iterator

from kvcalc.launch import host
from kvcalc.launch.checks.check import LMCACHE_KEYS, SGLANG_HICACHE, VLLM_OFFLOADING, Check, Finding, some
from kvcalc.launch.checks.deployment import Deployment
from kvcalc.launch.connectors import connectors_of, uses_lmcache
from kvcalc.launch.flags.sglang import PREFETCH_TOKENS


def chunk_tokens(deployment: Deployment) -> int:
    """Return the tokens of the smallest piece that the tier stores and looks up."""
    return host.chunk_tokens(deployment.launch, deployment.block_tokens)


def find(deployment: Deployment) -> Iterator[Finding]:
    """Compare the chunk with the prefix; say what the last, partial chunk costs."""
    launch = deployment.launch
    # LMCache may keep its chunks on a disk or a server alone, with no host tier and no connector in its file.
    if deployment.host is None and not connectors_of(launch) and not uses_lmcache(launch):
        return
    if launch.value("save_unfull_chunk"):
        return
    chunk, prefix = chunk_tokens(deployment), deployment.prefix
    where = launch.where("chunk", "offload_block", "blocks_per_chunk", "block_size", "disk", "remote")
    if prefix and chunk > prefix:
        yield Finding(
            "error",
            f"a chunk holds {some(chunk, 'token')} and the prefix has {prefix:,}: no chunk is ever full, so "
            "nothing is stored and nothing hits",
            f"a chunk of at most {prefix:,} tokens, a multiple of the block of {deployment.block_tokens}",
            where,
        )
    elif prefix and prefix % chunk:
        lost = prefix % chunk
        yield Finding(
            "info",
            f"of a prefix of {some(prefix, 'token')} whole chunks of {chunk:,} are found; the last "
            f"{some(lost, 'token')} are computed again ({chunk / 2:,.0f} on average)",
            where=where,
        )
    if launch.value("storage") and prefix and prefix < PREFETCH_TOKENS:
        yield Finding(
            "warning",
            f"HiCache prefetches hits in storage from {PREFETCH_TOKENS} tokens on, and the prefix has "
            f"{prefix}",
            "leave the storage backend out, or expect hits from the host alone",
            launch.where("storage"),
        )


CHECK = Check(
    "full-chunks-only",
    VLLM_OFFLOADING,
    find,
    engines=("vllm", "sglang"),
    sources={"lmcache": LMCACHE_KEYS, "sglang": SGLANG_HICACHE},
)
