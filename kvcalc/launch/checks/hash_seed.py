"""Processes that share a cache must hash alike: else every lookup misses."""

from collections.abc import Iterator

from kvcalc.launch.checks.check import Check, Finding, some
from kvcalc.launch.checks.deployment import Deployment
from kvcalc.launch.connectors import uses_lmcache

RANDOM_HASHES = frozenset({"xxhash", "xxhash_cbor"})
"""Values of `--prefix-caching-hash-algo` whose seed differs in each process."""


def find(deployment: Deployment) -> Iterator[Finding]:
    """Ask for PYTHONHASHSEED where the keys of one process are looked up by another."""
    launch = deployment.launch
    seed = launch.value("hash_seed")
    if seed not in (None, "", "random"):
        return
    where = launch.where(
        *("hash_seed", "hash_algorithm", "chunk_hash", "connector", "worker_size", "chunk", "disk", "remote")
    )
    said = "PYTHONHASHSEED is random" if seed == "random" else "PYTHONHASHSEED is not set"
    shared = [name for name in ("remote", "disk", "p2p", "pd", "secondary_tiers") if launch.value(name)]
    if uses_lmcache(launch) and launch.value("chunk_hash", "builtin") == "builtin":
        workers = deployment.workers * deployment.scenario.settings.dp
        yield Finding(
            "error" if shared else "warning",
            f"{said} and LMCache hashes with Python's own hash(), which differs from process to process: "
            + (
                f"one of {some(workers, 'worker')} may not find what another stored,"
                if workers > 1 and not shared
                else "a process may not find what another stored, such as before a restart,"
            )
            + " and nothing hits",
            "PYTHONHASHSEED=0 for every process",
            where,
        )
    elif launch.value("hash_algorithm") in RANDOM_HASHES and shared:
        yield Finding(
            "error",
            f"{said} and {launch.value('hash_algorithm')} takes a random seed in each process, so instances "
            "that share a tier never find each other's blocks",
            "PYTHONHASHSEED=0 on every instance, or --prefix-caching-hash-algo sha256",
            where,
        )


CHECK = Check("hash-seed", "https://github.com/LMCache/LMCache/issues/1741", find, engines=("vllm", "sglang"))
