"""vLLM keeps its CPU tier in /dev/shm, which a container limits to 64 MiB unless told otherwise."""

import re
from collections.abc import Iterator

from kvcalc.launch.checks.check import Check, Finding, gb
from kvcalc.launch.checks.deployment import Deployment
from kvcalc.launch.connectors import SHARED_MEMORY, connectors_of, reaches

DOCKER_DEFAULT = 64 * 2**20
"""/dev/shm of a container without --shm-size or --ipc=host [byte] (docker run reference)."""

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([bkmgt]?)(?:i?b|i)?", re.IGNORECASE)
_UNITS = {"": 1, "b": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}


def find(deployment: Deployment) -> Iterator[Finding]:
    """Compare the tier with the shared memory that the launch gives its container."""
    host, launch = deployment.host, deployment.launch
    native = "OffloadingConnector" in connectors_of(launch)
    if host is None or not native or not reaches(launch, SHARED_MEMORY):
        return
    if not launch.container:
        yield Finding(
            "info",
            f"the tier is a file of {gb(host.total)} in /dev/shm; files of killed servers stay there "
            "(vllm_offload_*.mmap) and take its room",
            where=host.given.where if host.given else launch.file,
        )
        return
    if launch.value("ipc") == "host":
        return
    given = launch.field("shm_size")
    match = _SIZE.fullmatch(str(given.value)) if given else None
    if given is not None and match is None:  # a variable, or a size that only docker can read
        return
    room = float(match[1]) * _UNITS[match[2].lower()] if match else DOCKER_DEFAULT
    if room < host.total:
        yield Finding(
            "error",
            f"the tier of {gb(host.total)} lies in /dev/shm, and this container's holds {gb(room)}",
            f"--shm-size {-(-host.total // 2**30):.0f}g, or --ipc=host",
            given.where if given else launch.file,
        )


CHECK = Check(
    "shared-memory", "https://docs.docker.com/reference/cli/docker/container/run/", find, engines=("vllm",)
)
