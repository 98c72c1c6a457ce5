"""Counts of blocks that were meant as tokens."""

from collections.abc import Iterator

from kvcalc.launch.checks.check import Check, Finding, gb
from kvcalc.launch.checks.deployment import Deployment
from kvcalc.launch.checks.offload_units import MOST


def find(deployment: Deployment) -> Iterator[Finding]:
    """Refuse counts whose blocks no memory holds."""
    block, tokens = deployment.block_bytes, deployment.block_tokens
    device = float(deployment.result.memory.total)
    for name, room, scale in (("num_blocks", device, 1), ("host_blocks", MOST, deployment.workers)):
        given = deployment.launch.field(name)
        if given is None or given.value * block * scale <= room:
            continue
        yield Finding(
            "error",
            f"{given.flag} {given.value:,} counts blocks of {tokens} tokens: "
            f"{gb(given.value * block * scale)}, and there is room for {gb(room)}",
            f"{given.flag} {given.value // tokens} if {given.value:,} tokens was meant",
            given.where,
        )


CHECK = Check(
    "blocks-not-tokens",
    "https://docs.vllm.ai/en/latest/configuration/engine_args/",
    find,
    engines=("vllm",),
)
