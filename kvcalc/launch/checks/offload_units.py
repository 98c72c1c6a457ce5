"""GiB, GB or bytes: what the size of the host tier means as the engine reads it."""

import math
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
from kvcalc.launch.settings import UNIT_BYTES, Field

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
            _larger(given, least),
            given.where,
        )
    elif host.total > MOST:
        meant = given.value / UNIT_BYTES[given.unit]
        yield Finding(
            "error",
            f"{given.flag} is read in {given.unit}: {value} is {host.total / 1e12:,.0f} TB of host memory",
            "" if given.unit == "byte" else f"{given.flag} {meant:.6g} if {given.value:,.0f} bytes was meant",
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


def _larger(given: Field, least: float) -> str:
    """Return the size to write, in the unit that the engine reads, where GiB was meant or one block is."""
    unit = UNIT_BYTES[given.unit]
    if unit < UNIT_BYTES["GB"]:
        return f"{given.flag} {given.value * UNIT_BYTES['GiB'] / unit:.0f} if {given.value:g} GiB was meant"
    return f"{given.flag} {math.ceil(least / unit)} or more, in {given.unit}"


CHECK = Check(
    "offload-size-unit",
    VLLM_OFFLOADING,
    find,
    sources={"lmcache": LMCACHE_KEYS, "sglang": SGLANG_HICACHE, "llama.cpp": LLAMACPP_SERVER},
)
