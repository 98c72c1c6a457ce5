"""One prefill rate for all lengths leaves attention out, which grows with the square of the prompt."""

from collections.abc import Iterator

from kvcalc.launch.checks.check import Check, Finding
from kvcalc.launch.checks.deployment import Deployment
from kvcalc.planning.work import LINEAR_SHARE, attention_share


def find(deployment: Deployment) -> Iterator[Finding]:
    """Warn where the question gives a rate for a prompt that is long for this model."""
    if deployment.scenario.overrides.prefill_rate is None:
        return
    share = attention_share(deployment.scenario)
    if share is not None and share > LINEAR_SHARE:
        yield Finding(
            "warning",
            f"--prefill-rate is one rate for all lengths, and at {deployment.prompt:,} tokens attention is "
            f"{share:.0%} of the operations: shorter prompts are faster and longer ones slower than it says",
            "--prefill with the time of this very prompt",
        )


CHECK = Check("linear-prefill", "https://blog.vllm.ai/2026/04/22/fp8-kvcache.html", find)
