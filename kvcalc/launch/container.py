"""Sizes that a container is given, as docker reads them."""

import re

from kvcalc.launch.settings import LaunchSettings

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([bkmgt]?)(?:i?b|i)?", re.IGNORECASE)
_UNITS = {"": 1, "b": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}


def given_size(launch: LaunchSettings, name: str) -> float | None:
    """Return a size of the container [byte]; None where it is not said, or only docker can read it.

    >>> from kvcalc.launch import parse_launch
    >>> given_size(parse_launch("docker run --shm-size 16g vllm/vllm-openai --model m", "a.sh"), "shm_size")
    17179869184.0
    """
    match = _SIZE.fullmatch(str(launch.value(name, "")))
    return float(match[1]) * _UNITS[match[2].lower()] if match else None
