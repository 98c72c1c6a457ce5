"""Storing costs bandwidth too: every new token of KV goes down the link once."""

from collections.abc import Iterator

from kvcalc.launch.checks.check import Check, Finding
from kvcalc.launch.checks.deployment import Deployment
from kvcalc.launch.checks.prompt_only import stores_decode
from kvcalc.wording import part_text, size_text


def find(deployment: Deployment) -> Iterator[Finding]:
    """Compare the write rate at full prefill speed, and that of decoding, with the link to the host."""
    if deployment.host is None or not deployment.host.inclusive:
        return
    link = deployment.scenario.hardware.device_to_host.bandwidth
    prefill = float(deployment.result.prefill.time)
    per_token = deployment.layout.bytes_per_token_per_gpu
    where = deployment.host.given.where if deployment.host.given else deployment.launch.file
    rate = per_token * deployment.prompt / prefill if prefill else 0.0
    if rate > link:
        yield Finding(
            "warning",
            f"at full prefill speed each GPU writes {part_text(rate)}/s of KV to the host and its link "
            f"takes {part_text(link)}/s: stores queue or are dropped",
            "store selectively (store_threshold, write_through_selective)",
            where,
        )
    if stores_decode(deployment):
        steps = float(deployment.result.decode.tokens_per_second) / deployment.scenario.settings.dp
        share = per_token * steps / link
        yield Finding(
            "warning" if share > 1 else "info",
            f"generated tokens are stored as well: {size_text(per_token * steps)}/s of each GPU's link "
            f"while decoding, {share:.2%} of it, and a copy in most steps",
            "store prompts alone if answers do not come back as prompts" if share > 1 else "",
            where,
        )


CHECK = Check(
    "store-rate", "https://github.com/vllm-project/vllm/issues/32604", find, engines=("vllm", "sglang")
)
