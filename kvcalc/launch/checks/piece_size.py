"""Small pieces do not reach the rate of the link."""

from collections.abc import Iterator

from kvcalc.formulas.transfer import effective_bandwidth, half_bandwidth_piece
from kvcalc.launch.checks.check import SGLANG_FLAGS, Check, Finding
from kvcalc.launch.checks.deployment import Deployment
from kvcalc.launch.connectors import connectors_of, release_of, uses_lmcache
from kvcalc.launch.tiers import ONE_LAYOUT, hicache_mechanism
from kvcalc.tiers import mechanism
from kvcalc.tiers.pieces import page_tokens
from kvcalc.tiers.pieces import piece_bytes as piece_of
from kvcalc.wording import part_text

COPY_SETUP = 3.5e-6
"""Fixed time of one cudaMemcpyAsync on an H100 [second] (fit to the curve of the vLLM post below), where none
was measured."""


def piece_bytes(deployment: Deployment) -> float:
    """Return the bytes that vLLM's offloading copies at once from one GPU."""
    release = release_of(deployment.launch)
    if release is not None and release < ONE_LAYOUT:
        return float(deployment.result.memory.page_bytes or deployment.block_bytes)
    return deployment.block_bytes * int(deployment.launch.value("blocks_per_chunk", 1))


def find(deployment: Deployment) -> Iterator[Finding]:
    """Say what the link delivers in pieces below its half-bandwidth size."""
    if deployment.host is None:
        return
    if deployment.launch.engine == "sglang":
        yield from _pages(deployment)
    elif "OffloadingConnector" in connectors_of(deployment.launch):
        piece = piece_bytes(deployment)
        yield from _small(
            deployment,
            piece,
            deployment.scenario.hardware.host_to_device.per_piece or COPY_SETUP,
            "",
            "a larger offloaded block (blocks_per_chunk, block_size of the connector)",
            ("blocks_per_chunk", "offload_block", "connector", "host_size"),
        )


def _pages(deployment: Deployment) -> Iterator[Finding]:
    """Look at HiCache's direct copies: one for each page, layer, and keys or values.

    transfer_kv_direct_impl and transfer_kv_page_first_direct_impl of sgl-kernel/csrc/kvcacheio/transfer.cu;
    later releases copy pages that lie one behind the other in both memories at once, in layer_first alone.
    """
    launch = deployment.launch
    found = mechanism(hicache_mechanism(launch))
    cost = found.rates_on(deployment.scenario.hardware).per_piece
    if uses_lmcache(launch) or found.piece != "page" or cost is None:
        return
    tokens = page_tokens(deployment.layout)
    page = f"one layer's keys or values of a page of {tokens:,} token{'' if tokens == 1 else 's'}"
    yield from _small(
        deployment,
        piece_of(found, deployment.layout),
        cost.value,
        f" ({page}; only pages that lie one behind the other in both memories may be copied at once)",
        "a larger --page-size, or --hicache-io-backend kernel with --hicache-mem-layout page_first",
        ("io_backend", "host_layout", "block_size", "hicache"),
    )


def _small(
    deployment: Deployment, piece: float, cost: float, what: str, instead: str, where: tuple[str, ...]
) -> Iterator[Finding]:
    link = deployment.scenario.hardware.host_to_device.bandwidth
    half = float(half_bandwidth_piece(link, cost))
    if piece >= half:
        return
    rate = float(effective_bandwidth(piece, link, cost))
    yield Finding(
        "warning",
        f"KV moves in pieces of {piece / 1024:,.0f} KiB{what}, below the {half / 1024:,.0f} KiB at which a "
        f"copy reaches half of the link: {rate / 1e9:.3g} of {part_text(link)}/s",
        instead,
        deployment.launch.where(*where),
    )


CHECK = Check(
    "small-pieces",
    "https://blog.vllm.ai/2026/01/08/kv-offloading-connector.html",
    find,
    engines=("vllm", "sglang"),
    sources={"sglang": SGLANG_FLAGS},
)
