"""A load that fits the GPUs needs no tier below them."""

from collections.abc import Iterator

from kvcalc.launch.checks.check import Check, Finding
from kvcalc.launch.checks.deployment import Deployment


def find(deployment: Deployment) -> Iterator[Finding]:
    """Say what share of the pool the running sequences take."""
    use = float(deployment.result.capacity.utilization)
    if deployment.host is None or not use < 1:
        return
    yield Finding(
        "info",
        f"the {deployment.scenario.workload.concurrency:,} sequences of the plan take {use:.0%} of the KV "
        "pool: a host tier serves only prefixes of others that no longer fit, and a benchmark that fits "
        "measures the GPU's own prefix cache",
        where=deployment.host.given.where if deployment.host.given else deployment.launch.file,
    )


CHECK = Check(
    "fits-without-tier", "https://github.com/LMCache/LMCache/issues/2334", find, engines=("vllm", "sglang")
)
