"""One scheduler step stores all its blocks at once, and they must find room in the host tier."""

from collections.abc import Iterator

from kvcalc.engines.overheads import overhead
from kvcalc.launch.checks.check import Check, Finding, gb
from kvcalc.launch.checks.deployment import Deployment
from kvcalc.launch.connectors import uses_lmcache

STEPS = 2
"""Steps whose blocks the host tier should hold [1]: one is being copied while the next is handed over."""


def find(deployment: Deployment) -> Iterator[Finding]:
    """Compare the host tier's blocks with those of a step of `max_num_batched_tokens`."""
    host, settings = deployment.host, deployment.scenario.settings
    if host is None or uses_lmcache(deployment.launch):
        return
    machine = deployment.scenario.hardware
    default = overhead(settings).batch(machine.device.capacity, machine.name).tokens
    tokens = settings.max_batched_tokens or default
    step = -(-tokens // deployment.block_tokens)
    block = deployment.host_block
    have, want = int(host.total // block), STEPS * step
    if have >= want:
        return
    severe = have < step
    yield Finding(
        "error" if severe else "warning",
        f"the host tier holds {have:,} blocks of {gb(block)} and one step of {tokens:,} tokens hands over "
        f"{step:,}: "
        + (
            "every store of a full step is refused" if severe else "stores are refused while a step is copied"
        ),
        f"at least {want:,} blocks, {gb(want * block)}, or fewer --max-num-batched-tokens",
        host.given.where if host.given else deployment.launch.file,
    )


CHECK = Check(
    "store-step",
    "https://github.com/s990093/paper-hierarchical-kv-state",
    find,
    engines=("vllm",),
)
