"""Sizes that a container is given, as docker, compose files and Kubernetes manifests say them."""

import re
from collections.abc import Mapping
from typing import Any

from kvcalc.launch.settings import LaunchSettings

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([bkmgt]?)(?:i?b|i)?", re.IGNORECASE)
_UNITS = {"": 1, "b": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
"""Units of docker, which are binary however they are written [byte]."""

_QUANTITY = re.compile(r"(\d+(?:\.\d+)?)((?:[kMGTP]|[KMGTP]i)?)")
_PREFIXES = {"": 0, "k": 1, "K": 1, "M": 2, "G": 3, "T": 4, "P": 5}
"""Powers of 1000, or with an i of 1024, of a Kubernetes quantity
(https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/)."""

_OF_SERVICE = {"shm_size": "--shm-size", "ipc": "--ipc", "mem_limit": "--memory"}
"""Keys of a compose service -> the flags of `docker run` that say the same."""

_IN_DOCUMENTS = {
    "--memory": {"mem_limit": r"\bmem_limit\b", "resources.limits.memory": r"\blimits\b.*?\bmemory\b"},
    "--shm-size": {"shm_size": r"\bshm_size\b", "sizeLimit": r"\bsizeLimit\b"},
}
"""Flags of `docker run` -> how documents say the same, and where to find it."""

_VALUE = r"""["']?\s*:\s*["']?(?P<value>[^\s"',}]+)"""
"""What follows a key of a document on its line."""

_LIMIT = ("resources", "limits", "memory")
"""Where a container of a pod has its limit, and under `deploy` a compose service."""


def given_size(launch: LaunchSettings, name: str) -> float | None:
    """Return a size of the container [byte]; None where it is not said, or only docker can read it.

    >>> from kvcalc.launch import parse_launch
    >>> given_size(parse_launch("docker run --shm-size 16g vllm/vllm-openai --model m", "a.sh"), "shm_size")
    17179869184.0
    """
    match = _SIZE.fullmatch(str(launch.value(name, "")))
    return float(match[1]) * _UNITS[match[2].lower()] if match else None


def quantity(said: object) -> int | None:
    """Return a Kubernetes quantity [byte], decimal without an i; None where it is none of memory.

    >>> quantity("64Gi"), quantity("64G"), quantity("$SIZE")
    (68719476736, 64000000000, None)
    """
    match = _QUANTITY.fullmatch(str(said))
    if match is None:
        return None
    base = 1024 if match[2].endswith("i") else 1000
    return int(float(match[1]) * base ** _PREFIXES[match[2][:1]])


def memory_volumes(data: Mapping[str, Any]) -> dict[str, str]:
    """Return the size of each memory volume of a Kubernetes pod by name; empty where it has no limit."""
    listed = data.get("volumes")
    found = {}
    for item in listed if isinstance(listed, list) else ():
        volume = item.get("emptyDir") if isinstance(item, Mapping) else None
        if isinstance(volume, Mapping) and volume.get("medium") == "Memory":
            found[str(item.get("name"))] = str(volume.get("sizeLimit", ""))
    return found


def flags_of_container(data: Mapping[str, Any], mounts: Mapping[str, str]) -> list[str]:
    """Return what a compose service or a container of a pod says of its memory, as docker's own flags."""
    found = [
        f"{flag} '{data[key]}'" for key, flag in _OF_SERVICE.items() if isinstance(data.get(key), (str, int))
    ]
    service, pod = _within(data, "deploy", *_LIMIT), quantity(_within(data, *_LIMIT))
    if isinstance(service, (str, int)):
        found.append(f"--memory '{service}'")
    if pod is not None:
        found.append(f"--memory '{pod}'")
    listed = data.get("volumeMounts")
    for item in listed if isinstance(listed, list) else ():
        if isinstance(item, Mapping) and item.get("mountPath") == "/dev/shm" and item.get("name") in mounts:
            size = quantity(mounts[str(item["name"])])
            found.append("--ipc 'host'" if size is None else f"--shm-size '{size}'")
    return found


def _within(data: Any, *keys: str) -> Any:  # noqa: ANN401 - parsed
    for key in keys:
        data = data.get(key) if isinstance(data, Mapping) else None
    return data


def said_as(flag: str, value: object, text: str) -> tuple[str, int | None]:
    """Return how a document says what a flag of docker says, and in which line; the flag if it does not.

    Of several containers it is the one whose value it is.
    """
    for name, pattern in _IN_DOCUMENTS.get(flag, {}).items():
        for match in re.finditer(pattern + _VALUE, text, re.DOTALL):
            if str(value) in (match["value"], str(quantity(match["value"]))):
                return name, text.count("\n", 0, match.end()) + 1
    return flag, None
