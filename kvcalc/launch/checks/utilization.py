"""The share of GPU memory: a share, not a percentage, and not all of it."""

from collections.abc import Iterator

from kvcalc.launch.checks.check import SGLANG_FLAGS, Check, Finding, gb
from kvcalc.launch.checks.deployment import Deployment

PERCENT = 100
"""Shares above one and up to this were meant as percentages [1]."""

USUAL = 0.9
"""Share that is proposed where no percentage can have been meant [1]: what vLLM took for
years where nothing was said, as `kvcalc.engines.overheads` has it."""


def find(deployment: Deployment) -> Iterator[Finding]:
    """Refuse shares above one, and shares that leave no KV at all."""
    launch, memory = deployment.launch, deployment.result.memory
    given = launch.field("utilization")
    if given is not None and not 0 < given.value <= 1:
        meant = given.value / PERCENT if 1 < given.value <= PERCENT else USUAL
        yield Finding(
            "error",
            f"{given.flag} {given.value:g} is no share of the memory",
            f"{given.flag} {meant:g}",
            given.where,
        )
        return
    if deployment.pool <= 0:
        yield Finding(
            "error",
            f"weights of {gb(float(memory.weights))} and what a step needs leave no KV memory on a GPU of "
            f"{gb(float(memory.total))}",
            "more GPUs, quantized weights, or a larger share",
            launch.where("utilization", "tp"),
        )
    if given is not None and launch.has("pool"):
        yield Finding(
            "warning",
            f"{given.flag} {given.value:g} has no effect beside {launch.field('pool').flag}",  # type: ignore[union-attr]
            f"leave {given.flag} out",
            given.where,
        )


CHECK = Check(
    "memory-share",
    "https://docs.vllm.ai/en/latest/configuration/engine_args/",
    find,
    sources={"sglang": SGLANG_FLAGS},
    engines=("vllm", "sglang"),
)
