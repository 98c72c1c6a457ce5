"""An offloaded block is whole GPU blocks."""

from collections.abc import Iterator

from kvcalc.launch.checks.check import Check, Finding
from kvcalc.launch.checks.deployment import Deployment
from kvcalc.launch.connectors import uses_lmcache


def find(deployment: Deployment) -> Iterator[Finding]:
    """Refuse sizes that are no multiple, and two ways of saying the same thing."""
    launch, block = deployment.launch, deployment.block_tokens
    name = "chunk" if uses_lmcache(launch) else "offload_block"
    given = launch.field(name)
    if given is not None and given.value % block:
        nearest = max(block, round(given.value / block) * block)
        yield Finding(
            "error",
            f"{given.flag} {given.value} is no multiple of the GPU block of {block} tokens",
            f"{given.flag} {nearest}",
            given.where,
        )
    if launch.has("offload_block") and launch.has("blocks_per_chunk"):
        yield Finding(
            "error",
            "block_size and blocks_per_chunk say the same thing twice and exclude each other",
            "leave block_size out",
            launch.where("blocks_per_chunk"),
        )


CHECK = Check(
    "chunk-of-whole-blocks",
    "https://docs.vllm.ai/en/latest/features/kv_offloading_usage/",
    find,
    engines=("vllm",),
)
