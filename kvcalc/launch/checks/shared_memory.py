"""vLLM keeps its CPU tier in /dev/shm, which a container limits to 64 MiB unless told otherwise."""

from collections.abc import Iterator

from kvcalc.launch.checks.check import Check, Finding, gb
from kvcalc.launch.checks.deployment import Deployment
from kvcalc.launch.connectors import SHARED_MEMORY, connectors_of, reaches
from kvcalc.launch.container import given_size

DOCKER_DEFAULT = 64 * 2**20
"""/dev/shm of a container without --shm-size or --ipc=host [byte] (docker run reference)."""


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
    given, said = launch.field("shm_size"), given_size(launch, "shm_size")
    if given is not None and said is None:  # a variable, or a size that only docker can read
        return
    room = DOCKER_DEFAULT if said is None else said
    replicas = deployment.scenario.settings.dp
    total = host.total * replicas
    if room < total:
        of = "" if replicas == 1 else f", {gb(host.total)} in each of {replicas} replicas,"
        yield Finding(
            "error",
            f"the tier of {gb(total)}{of} lies in /dev/shm, and this container's holds {gb(room)}",
            f"--shm-size {-(-total // 2**30):.0f}g, or --ipc=host",
            given.where if given else launch.file,
        )


CHECK = Check(
    "shared-memory", "https://docs.docker.com/reference/cli/docker/container/run/", find, engines=("vllm",)
)
