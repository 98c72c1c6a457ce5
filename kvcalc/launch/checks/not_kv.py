"""Flags that sound like a KV tier and are none."""

from collections.abc import Iterator

from kvcalc.launch.checks.check import SGLANG_FLAGS, Check, Finding
from kvcalc.launch.checks.deployment import Deployment
from kvcalc.launch.flags import DIALECTS

_SAYS = {
    "swap_space": "it was the swap of vLLM's first engine: nothing is swapped since V1, which computes again",
    "weight_offload": "it keeps weights on the host, and none of the KV",
}


def find(deployment: Deployment) -> Iterator[Finding]:
    """Say what such a flag does."""
    for name, says in _SAYS.items():
        given = deployment.launch.field(name)
        if given is not None and given.value:
            tier = {"vllm": "--kv-offloading-size", "sglang": "--enable-hierarchical-cache"}
            yield Finding(
                "warning",
                f"{given.flag} {given.value:g} is no tier for KV: {says}",
                f"{tier[DIALECTS[deployment.launch.engine].engine]} for a tier of KV",
                given.where,
            )


CHECK = Check(
    "no-kv-tier",
    "https://docs.vllm.ai/en/latest/configuration/optimization/",
    find,
    ("vllm", "sglang"),
    {"sglang": SGLANG_FLAGS},
)
