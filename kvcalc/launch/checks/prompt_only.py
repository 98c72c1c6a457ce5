"""By default only prompts are stored: what the model wrote is computed again in the next turn."""

from collections.abc import Iterator

from kvcalc.launch.checks.check import LMCACHE_KEYS, VLLM_OFFLOADING, Check, Finding, some
from kvcalc.launch.checks.deployment import Deployment
from kvcalc.launch.checks.full_chunks import chunk_tokens
from kvcalc.launch.connectors import PROMPT_ONLY, connectors_of, reaches, uses_lmcache


def stores_decode(deployment: Deployment) -> bool:
    """Whether the KV of generated tokens is stored too."""
    launch = deployment.launch
    if uses_lmcache(launch):
        return bool(launch.value("save_decode", False))
    if launch.engine == "sglang":
        return True
    return not launch.value("prompt_only", reaches(launch, PROMPT_ONLY))


def find(deployment: Deployment) -> Iterator[Finding]:
    """Say what a turn loses, where at least one chunk of output could have been kept."""
    launch = deployment.launch
    if deployment.host is None or stores_decode(deployment):
        return
    if not (connectors_of(launch) or uses_lmcache(launch)) or deployment.generate < chunk_tokens(deployment):
        return
    option = "save_decode_cache: true" if uses_lmcache(launch) else '"offload_prompt_only": false'
    yield Finding(
        "warning",
        f"the {some(deployment.generate, 'token')} that each request generates are not stored: an agent or "
        "a chat computes them again in its next turn",
        f"{option} if answers come back as prompts",
        launch.where("prompt_only", "save_decode", "connector", "host_size"),
    )


CHECK = Check(
    "generated-tokens-not-stored",
    VLLM_OFFLOADING,
    find,
    sources={"lmcache": LMCACHE_KEYS},
    engines=("vllm", "sglang"),
)
