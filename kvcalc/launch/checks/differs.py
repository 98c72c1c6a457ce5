"""Where the question contradicts the launch, the question was answered."""

from collections.abc import Iterator

from kvcalc.launch.checks.check import Check, Finding
from kvcalc.launch.checks.deployment import Deployment
from kvcalc.launch.question import said_by

_COMPARED = (
    "tp",
    "pp",
    "dp",
    "max_len",
    "block_size",
    "page_size",
    "max_batched_tokens",
    "parallel",
    "engine",
)


def find(deployment: Deployment) -> Iterator[Finding]:
    """Compare the settings that the plan was made with against those of the launch."""
    for key, said in said_by(deployment.launch).items():
        if key not in _COMPARED or key not in deployment.scenario.given:
            continue
        planned = getattr(deployment.scenario.settings, key)
        if planned != said.value:
            yield Finding(
                "warning",
                f"the launch says {key} {said.value} and the plan was made with {planned}, as asked",
                f"leave --{key.replace('_', '-')} out to plan with the launch's own",
                said.where.rpartition(": ")[0] or said.where,
            )


CHECK = Check("plan-differs", "", find)
