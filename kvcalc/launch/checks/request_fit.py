"""A request that no pool holds is refused, or waits for ever."""

from collections.abc import Iterator
from dataclasses import replace

from kvcalc.engines import lay_out
from kvcalc.engines.vllm import VllmLayout
from kvcalc.launch.checks.check import Check, Finding, gb, some
from kvcalc.launch.checks.deployment import Deployment


def find(deployment: Deployment) -> Iterator[Finding]:
    """Compare one request with the longest one that is admitted, and both with the pool."""
    launch, settings = deployment.launch, deployment.scenario.settings
    tokens = deployment.prompt + deployment.generate
    shape, pool = deployment.scenario.model.shape, deployment.pool
    said = launch.field("max_len") or launch.field("context")
    longest = (settings.max_len if said else shape.max_tokens) or tokens
    where = launch.where("max_len", "context", "utilization", "pool")
    if tokens > longest:
        yield Finding(
            "error",
            f"a request of {deployment.prompt:,} and {deployment.generate:,} tokens is longer than the "
            f"{some(longest, 'token')} that the launch admits",
            f"at least {tokens:,} tokens of context",
            where,
        )
    layout = lay_out(shape, replace(settings, max_len=longest))
    need = float(layout.reserved(float(min(tokens, longest))))
    if pool <= 0 or need > pool:
        yield Finding(
            "error",
            f"one request of {some(min(tokens, longest), 'token')} takes {gb(need)} a GPU and the KV pool "
            f"has {gb(pool)}: it is never admitted",
            "more GPUs, a narrower KV dtype, or less else on the GPU",
            where,
        )
        return
    whole = float(layout.reserved(float(longest)))
    if whole > pool:
        fits = layout.longest(pool) if isinstance(layout, VllmLayout) else None
        shorter = f"a context of at most {fits:,} tokens" if fits else "a shorter context"
        yield Finding(
            "error" if launch.engine == "vllm" else "warning",
            f"a sequence of {some(longest, 'token')}{'' if said else ', the default here,'} takes "
            f"{gb(whole)} a GPU and the KV pool has {gb(pool)}"
            + (": vLLM does not start" if launch.engine == "vllm" else ": such a request is refused"),
            shorter,
            where,
        )


CHECK = Check("request-fits", "https://github.com/vllm-project/vllm/issues/52530", find)
