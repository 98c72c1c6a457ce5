"""One prefill rate for all lengths leaves attention out, which grows with the square of the prompt."""

from collections.abc import Iterator

from kvcalc.formulas.prefill import dense_flop_per_token
from kvcalc.launch.checks.check import Check, Finding
from kvcalc.launch.checks.deployment import Deployment
from kvcalc.planning.work import attention_work

SHARE = 0.2
"""Share of attention in the operations of a prompt from which a constant rate misleads [1]: what it is at
a quarter of the length where attention and weights cost the same."""


def attention_share(deployment: Deployment) -> float | None:
    """Return which share of the prompt's operations are attention; None without parameter counts."""
    model = deployment.scenario.model
    if model.parameters is None:
        return None
    parts = model.shape.components_for(deployment.scenario.settings.engine)
    attention = float(attention_work(parts, float(deployment.prompt)))
    weights = float(dense_flop_per_token(model.parameters.matmul_active)) * deployment.prompt
    return attention / (attention + weights)


def find(deployment: Deployment) -> Iterator[Finding]:
    """Warn where the question gives a rate for a prompt that is long for this model."""
    if deployment.scenario.overrides.prefill_rate is None:
        return
    share = attention_share(deployment)
    if share is not None and share > SHARE:
        yield Finding(
            "warning",
            f"--prefill-rate is one rate for all lengths, and at {deployment.prompt:,} tokens attention is "
            f"{share:.0%} of the operations: shorter prompts are faster and longer ones slower than it says",
            "--prefill with the time of this very prompt",
        )


CHECK = Check("linear-prefill", "https://blog.vllm.ai/2026/04/22/fp8-kvcache.html", find)
