"""Small pieces do not reach the rate of the link."""

from collections.abc import Iterator

from kvcalc.formulas.transfer import effective_bandwidth, half_bandwidth_piece
from kvcalc.launch.checks.check import Check, Finding
from kvcalc.launch.checks.deployment import Deployment
from kvcalc.launch.connectors import connectors_of, release_of
from kvcalc.launch.tiers import ONE_LAYOUT
from kvcalc.wording import part_text

COPY_SETUP = 3.5e-6
"""Fixed time of one cudaMemcpyAsync on an H100 [second] (fit to the curve of the vLLM post below)."""


def piece_bytes(deployment: Deployment) -> float:
    """Return the bytes that vLLM's offloading copies at once from one GPU."""
    release = release_of(deployment.launch)
    if release is not None and release < ONE_LAYOUT:
        return float(deployment.result.memory.page_bytes or deployment.block_bytes)
    return deployment.block_bytes * int(deployment.launch.value("blocks_per_chunk", 1))


def find(deployment: Deployment) -> Iterator[Finding]:
    """Say what the link delivers in pieces below its half-bandwidth size."""
    if "OffloadingConnector" not in connectors_of(deployment.launch) or deployment.host is None:
        return
    link, piece = deployment.scenario.hardware.host_to_device.bandwidth, piece_bytes(deployment)
    half = float(half_bandwidth_piece(link, COPY_SETUP))
    if piece >= half:
        return
    rate = float(effective_bandwidth(piece, link, COPY_SETUP))
    yield Finding(
        "warning",
        f"KV moves in pieces of {piece / 1024:,.0f} KiB, below the {half / 1024:,.0f} KiB at which a copy "
        f"reaches half of the link: {rate / 1e9:.1f} of {part_text(link)}/s",
        "a larger offloaded block (blocks_per_chunk, block_size of the connector)",
        deployment.launch.where("blocks_per_chunk", "offload_block", "connector", "host_size"),
    )


CHECK = Check(
    "small-pieces", "https://blog.vllm.ai/2026/01/08/kv-offloading-connector.html", find, engines=("vllm",)
)
