"""llama.cpp divides its context over the slots."""

from collections.abc import Iterator

from kvcalc.launch.checks.check import Check, Finding
from kvcalc.launch.checks.deployment import Deployment


def find(deployment: Deployment) -> Iterator[Finding]:
    """Say what each slot has, and compare the slots with the load."""
    launch = deployment.launch
    context, slots = launch.field("context"), launch.value("parallel", 1)
    if context is None or context.value <= 0:
        return
    if slots > 1 and not launch.value("unified", False):
        yield Finding(
            "info",
            f"{context.flag} {context.value:,} is for all slots: each of {slots} has "
            f"{context.value // slots:,} tokens",
            where=context.where,
        )
    if slots < deployment.scenario.workload.concurrency:
        yield Finding(
            "warning",
            f"{slots} slots serve {deployment.scenario.workload.concurrency} sequences: the others wait",
            f"-np {deployment.scenario.workload.concurrency} and a context as many times as large",
            launch.where("parallel", "context"),
        )
    if launch.value("kv_on_device", True) is False:
        yield Finding(
            "warning",
            "--no-kv-offload keeps the KV cache in host memory, so every decode step reads it over the link",
            "leave it out where the cache fits the GPU",
            launch.where("kv_on_device"),
        )


CHECK = Check(
    "context-of-all-slots",
    "https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md",
    find,
    engines=("llama.cpp",),
)
