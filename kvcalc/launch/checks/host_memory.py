"""Whether the host has the memory that the tier takes, over all workers and replicas."""

from collections.abc import Iterator

from kvcalc.launch.checks.check import (
    LLAMACPP_SERVER,
    LMCACHE_KEYS,
    SGLANG_HICACHE,
    VLLM_OFFLOADING,
    Check,
    Finding,
    gb,
    some,
)
from kvcalc.launch.checks.deployment import Deployment
from kvcalc.launch.container import given_size


def find(deployment: Deployment) -> Iterator[Finding]:
    """Compare with the machine's memory where it is known; else warn of sizes that multiply."""
    host = deployment.host
    if host is None:
        return
    settings, machine = deployment.scenario.settings, deployment.scenario.hardware
    total = host.total * settings.dp
    flag = host.given.flag if host.given else "the tier's default size"
    where = host.given.where if host.given else deployment.launch.file
    parts = f"{some(host.workers, 'worker')} of {some(settings.dp, 'replica')}"
    limit, room = deployment.launch.field("memory"), given_size(deployment.launch, "memory")
    if limit is not None and room is not None and total > room:
        yield Finding(
            "error",
            f"{flag} comes to {gb(total)} over {parts}, and {limit.flag} gives the container {gb(room)} for "
            "this and all else that it runs",
            f"{limit.flag} of more than {-(-total // 2**30):.0f} GiB",
            limit.where,
        )
    if machine.host is not None and total > machine.host.capacity:
        room = machine.host.capacity / settings.dp
        yield Finding(
            "error",
            f"{flag} comes to {gb(total)} over {parts}, and the host of {machine.name} has "
            f"{gb(machine.host.capacity)}",
            f"at most {gb(room)} a replica, {gb(room / host.workers)} a worker, less what else the host runs",
            where,
        )
    elif (
        machine.host is None and host.given is not None and host.given.scope == "worker" and host.workers > 1
    ):
        yield Finding(
            "warning",
            f"{flag} {host.given.value:g} is taken by each worker: {gb(total)} of host memory over {parts}",
            f"{flag} {host.given.value / host.workers:.4g} if {host.given.value:g} was meant for all of them",
            where,
        )


CHECK = Check(
    "host-memory",
    VLLM_OFFLOADING,
    find,
    sources={"lmcache": LMCACHE_KEYS, "sglang": SGLANG_HICACHE, "llama.cpp": LLAMACPP_SERVER},
)
