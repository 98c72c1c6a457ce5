"""GiB, GB or bytes: what the size of the host tier means as the engine reads it."""

from collections.abc import Iterator

from kvcalc.launch.checks.check import Check, Finding, gb, some
from kvcalc.launch.checks.deployment import Deployment

MOST = 64 * 2**40
"""Host memory from which a size was surely meant in a smaller unit [byte]: above what one server takes."""


def find(deployment: Deployment) -> Iterator[Finding]:
    """Refuse sizes that only another unit explains, and say what the others come to."""
    host = deployment.host
    if host is None or host.given is None or host.given.unit in ("", "block"):
        return
    given, workers = host.given, some(host.workers, "worker")
    value = f"{given.value:,.12g} {given.unit}"
    least = deployment.host_block
    if host.total < least:
        yield Finding(
            "error",
            f"{given.flag} is read in {given.unit}: {value} is {host.total:,.0f} bytes for {workers}, and "
            f"one block of this model takes {least:,.0f} bytes, so nothing is ever stored",
            f"{given.flag} {given.value * 2**30:.0f} if {given.value:g} GiB was meant",
            given.where,
        )
    elif host.total > MOST:
        meant = given.value / 2**30 if given.unit != "byte" else given.value
        yield Finding(
            "error",
            f"{given.flag} is read in {given.unit}: {value} is {host.total / 1e12:,.0f} TB of host memory",
            f"{given.flag} {meant:.6g} if {given.value:,.0f} bytes was meant",
            given.where,
        )
    else:
        whole = "for all workers together" if given.scope == "total" else "for each worker"
        yield Finding(
            "info",
            f"{given.flag} is read in {given.unit} {whole}: {gb(host.total)} for {workers}, "
            f"{gb(host.per_worker)} each",
            where=given.where,
        )


CHECK = Check(
    "offload-size-unit",
    "https://docs.vllm.ai/en/latest/features/kv_offloading_usage/",
    find,
)
