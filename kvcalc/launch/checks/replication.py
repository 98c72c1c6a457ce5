"""More tensor-parallel ranks than KV heads hold the same heads twice; latents have no heads at all."""

from collections.abc import Iterator

from kvcalc.launch.checks.check import Check, Finding
from kvcalc.launch.checks.deployment import Deployment

ONE_COPY = 1.01
"""Copies of a token up to which it counts as held once [1]: padded pages make one copy a little larger."""


def find(deployment: Deployment) -> Iterator[Finding]:
    """Compare what all ranks hold with one copy of the model's cache."""
    settings, launch = deployment.scenario.settings, deployment.launch
    one, ranks = deployment.layout.bytes_per_token, deployment.layout.bytes_per_token_per_gpu * settings.tp
    copies = ranks / one if one else 1.0
    # Stages hold different layers, so that only one rank of each is counted.
    if settings.tp == 1 or settings.pp > 1 or settings.dcp > 1 or copies <= ONE_COPY:
        return
    parts = deployment.scenario.model.shape.components_for(settings.engine)
    heads = {part.kv_heads for part in parts if part.kv_heads}
    latent = any(tensor.name == "latent" for part in parts for tensor in part.entry)
    reason = "a latent has no heads to divide" if latent else f"{max(heads)} KV heads on {settings.tp} ranks"
    tier = f", and so does the host tier ({one:,.0f} bytes a token become {ranks:,.0f})"
    doubled = deployment.host is not None and deployment.host_copies > 1
    yield Finding(
        "warning",
        f"{reason}: the {settings.tp} ranks hold each token {copies:.3g} times" + (tier if doubled else ""),
        "--data-parallel-size with expert parallelism, or --decode-context-parallel-size"
        if launch.engine == "vllm"
        else "--enable-dp-attention",
        launch.where("tp"),
    )


CHECK = Check("replicated-kv", "https://vllm.ai/blog/2026-05-18-pegaflow", find, engines=("vllm", "sglang"))
