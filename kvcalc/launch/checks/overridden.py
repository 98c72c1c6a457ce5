"""Two settings for one thing: which of them counts."""

from collections import defaultdict
from collections.abc import Iterator

from kvcalc.launch.checks.check import LLAMACPP_SERVER, SGLANG_FLAGS, Check, Finding
from kvcalc.launch.checks.deployment import Deployment
from kvcalc.launch.settings import Field

_WINS = (("host_size", "host_bytes"), ("worker_size", "host_ratio"))
"""The first of each pair silently replaces the second."""


def find(deployment: Deployment) -> Iterator[Finding]:
    """Name what is replaced, and values that differ between places."""
    launch = deployment.launch
    for winner, loser in _WINS:
        first, second = launch.field(winner), launch.field(loser)
        if first is not None and second is not None and launch.engine in ("vllm", "sglang"):
            yield Finding(
                "warning",
                f"{first.flag} {first.value:g} replaces {second.flag} {second.value:g}",
                f"leave {second.flag} out",
                second.where,
            )
    said: dict[str, list[Field]] = defaultdict(list)
    for item in launch.fields:
        if item.name not in ("other", "connector", "model"):
            said[item.name].append(item)
    for items in said.values():
        values = [item.value for item in items]
        if any(value != values[-1] for value in values):
            yield Finding(
                "warning",
                f"{items[-1].flag} is said {len(items)} times with different values; the last, "
                f"{values[-1]}, counts",
                f"say {items[-1].flag} once",
                items[-1].where,
            )


CHECK = Check(
    "said-twice",
    "https://docs.vllm.ai/en/latest/configuration/serve_args/",
    find,
    sources={"sglang": SGLANG_FLAGS, "llama.cpp": LLAMACPP_SERVER},
)
