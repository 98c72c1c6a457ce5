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
        f"{_sequences(deployment)} {use:.0%} of the KV pool: a host tier serves only prefixes of others that "
        "no longer fit, and a benchmark that fits measures the GPU's own prefix cache",
        where=deployment.host.given.where if deployment.host.given else deployment.launch.file,
    )


def _sequences(deployment: Deployment) -> str:
    count = deployment.scenario.workload.concurrency
    return f"the {count:,} sequences of the plan take" if count > 1 else "the one sequence of the plan takes"


CHECK = Check(
    "fits-without-tier", "https://github.com/LMCache/LMCache/issues/2334", find, engines=("vllm", "sglang")
)
