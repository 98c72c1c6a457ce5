"""A launch of another model, or with other settings, than the plan was made with."""

import re
from collections.abc import Iterator

from kvcalc.launch.checks.check import Check, Finding
from kvcalc.launch.checks.deployment import Deployment
from kvcalc.launch.question import said_by

_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")
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
    """Compare model and settings of the plan with those of the launch."""
    yield from _model(deployment)
    attention = deployment.launch.field("dp_attention")
    if attention is not None and attention.value:
        yield Finding(
            "warning",
            f"{attention.flag} divides attention by requests, and the plan divides it by heads: it counts "
            "more KV a GPU than there will be",
            where=attention.where,
        )
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


def _model(deployment: Deployment) -> Iterator[Finding]:
    """Compare the names where the launch has the id of a model hub; paths and variables tell nothing."""
    given, model = deployment.launch.field("model"), deployment.scenario.model
    if given is None or not _HUB_ID.fullmatch(str(given.value)):
        return
    served = _letters(str(given.value).rpartition("/")[2])
    planned = [_letters(name.rpartition("/")[2]) for name in (model.name, model.hub) if name]
    if not any(name in served or served in name for name in planned):
        yield Finding(
            "warning",
            f"the launch serves {given.value} and the plan is of {model.name}",
            "the same model in both",
            given.where,
        )


def _letters(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


CHECK = Check("plan-differs", "", find)
