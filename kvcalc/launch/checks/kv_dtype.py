"""A checkpoint may ask for an fp8 cache by itself."""

from collections.abc import Iterator

from kvcalc.launch.checks.check import SGLANG_FLAGS, Check, Finding
from kvcalc.launch.checks.deployment import Deployment


def find(deployment: Deployment) -> Iterator[Finding]:
    """Say what `auto` means for this checkpoint."""
    declared = deployment.scenario.model.shape.kv_dtype
    said = deployment.launch.value("kv_dtype", "auto")
    if declared is None or said not in ("auto", None):
        return
    yield Finding(
        "info",
        f"the checkpoint asks for a {declared} cache and the launch leaves it at auto: "
        f"{deployment.result.kv.bytes_per_token:,.0f} bytes a token",
        f"--kv-cache-dtype {declared} to say so, bfloat16 to keep 16 bits",
        deployment.launch.where("kv_dtype"),
    )


CHECK = Check(
    "kv-dtype-declared",
    "https://docs.vllm.ai/en/latest/features/quantization/quantized_kvcache/",
    find,
    engines=("vllm", "sglang"),
    sources={"sglang": SGLANG_FLAGS},
)
