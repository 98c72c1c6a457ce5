"""What one layer of each kind keeps on one rank: a page per block, and blocks per request."""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from kvcalc.engines.settings import EngineSettings
from kvcalc.engines.sizing import layer_entry
from kvcalc.engines.vllm.deployment import Deployment, is_state
from kvcalc.engines.vllm.kernels import chosen_kernel, exports_states, hybrid_alignment
from kvcalc.errors import UnsupportedModelError
from kvcalc.quantity import Count, Tokens
from kvcalc.shapes.components import LINEAR, Component

Keeps = Literal["all", "window", "chunk", "encoder", "state"]
"""Which tokens' blocks a request holds: all, a window's, a chunk's, the encoder's, or its states."""

PACKED_PAGE = 576
"""Pages of DeepSeek V4 are whole multiples of this [byte] (`sparse_swa.py: packed_page_alignment`)."""

WINDOW_LATENT_BLOCK = 64
"""Tokens in a block of DeepSeek V4's sliding latents [token] (`sparse_swa.py`)."""

COMPRESSOR_BLOCKS = {8: 4, 128: 8}
"""Tokens in a block of a compressor's states, by the tokens they reach over (`compressor.py`)."""

DEFAULT_BATCHED_TOKENS = 8192
"""`--max-num-batched-tokens` of a server on a GPU of 70 GiB or more (`arg_utils.py`)."""

DEFAULT_ENCODER_TOKENS = 2048
"""Encoder budget of an encoder-decoder model by default: its smallest `--max-num-batched-tokens`."""

STATE_CHUNK = 256
"""Chunk of Mamba-2's kernels, of which blocks with one state each are multiples (most configs)."""


@dataclass(frozen=True)
class LayerCache:
    """The cache of one layer on one rank.  Layers with equal caches may share a group."""

    keeps: Keeps
    block: int  # tokens per block
    page: int  # bytes per block
    reach: int = 0  # tokens of the window or chunk with those in flight, or of the encoder
    dealt: int = 1  # ranks over which token positions are dealt out
    states: int = 0  # blocks of states per request
    per_block: bool = False  # one more state for every block of tokens

    def blocks(self, tokens: Tokens) -> Count:
        """Blocks that one request of `tokens` tokens holds at most."""
        if self.keeps == "all":
            return -(-tokens // (self.block * self.dealt))
        if self.keeps == "window":  # one more block, as a window need not begin at a block's edge
            return -(-np.minimum(tokens, self.reach) // self.block) + 1
        if self.keeps == "chunk":
            return -(-np.minimum(tokens, self.reach) // self.block)
        if self.keeps == "encoder":
            return tokens * 0 + -(-self.reach // self.block)
        held = -(-tokens // self.block) if self.per_block else tokens * 0
        return held + self.states

    def cached(self, tokens: Tokens, flying: int) -> Count:
        """Blocks that let a prefix of `tokens` tokens be used again: windows and states at its end alone.

        `flying` tokens of `reach` are room for those in flight.
        """
        if self.keeps not in ("window", "chunk", "state"):
            return self.blocks(tokens)
        if self.keeps == "state" and not self.per_block:
            return tokens * 0 + 1
        kept = tokens if self.keeps == "state" else np.minimum(tokens, self.reach - flying)
        ids: Count = np.maximum(1, -(-kept // self.block))
        return ids


def batched_tokens(settings: EngineSettings) -> int:
    """Return how many tokens one step computes at most."""
    return settings.max_batched_tokens or DEFAULT_BATCHED_TOKENS


def in_flight_tokens(deployment: Deployment) -> int:
    """Return how many tokens may be scheduled and not yet settled."""
    stages = deployment.settings.pp
    batches = {"batch": 1, "stages": 2 if stages == 1 else stages, "overlapped": stages + 1}
    return batched_tokens(deployment.settings) * batches[deployment.rules.in_flight]


def state_mode(deployment: Deployment, kind: str) -> Literal["none", "align", "all"]:
    """Return how states follow the prefix cache: not, at the last block edges, or at every block."""
    if not (deployment.settings.prefix_caching and deployment.rules.state_modes):
        return "none"
    return "all" if kind in deployment.rules.state_per_block_kinds else "align"


def page_bytes(deployment: Deployment, part: Component, block: int) -> int:
    """Return the bytes of `block` tokens of a component in one layer, or of one state."""
    entry = layer_entry(part, deployment.precision(part), deployment.settings.tp).stored
    if is_state(part):
        return round(entry)
    per_entry = part.growth.size if part.growth.kind == "strided" else 1
    page = round(entry * block / per_entry)
    return -(-page // PACKED_PAGE) * PACKED_PAGE if deployment.side_by_side else page


def block_tokens(deployment: Deployment) -> int:
    """Return the tokens of an attention block, before groups with small pages enlarge theirs."""
    block = deployment.settings.block_size or chosen_kernel(deployment).block
    states = [part for part in deployment.components if is_state(part)]
    tokens = [part for part in deployment.components if not is_state(part)]
    if states and tokens:
        return max(block, _hybrid_block(deployment, states, tokens))
    if deployment.skipped_layers and deployment.rules.skip_layer_blocks:
        pages = [page_bytes(deployment, part, 1) for part in tokens]
        return block * -(-max(pages) * block // (block * min(pages)))
    return block


def _hybrid_block(deployment: Deployment, states: list[Component], tokens: list[Component]) -> int:
    """Return the smallest aligned block whose attention page covers the state page."""
    kinds = frozenset(part.kind for part in states)
    modes = {state_mode(deployment, kind) for kind in kinds}
    align = hybrid_alignment(deployment, kinds, "align" in modes)
    if "all" in modes:
        align = int(np.lcm(align, STATE_CHUNK))
    state = max(page_bytes(deployment, part, 1) for part in states)
    token = max(page_bytes(deployment, part, 1) for part in tokens)
    return align * -(-state // (align * token))


def layer_caches(deployment: Deployment) -> list[tuple[int, LayerCache]]:
    """Return every cached layer's index and cache, in the order in which components are listed."""
    block = block_tokens(deployment)
    promoted = _keeps_windows_in_full(deployment)
    caches = []
    for part in deployment.components:
        one = LINEAR if promoted and part.growth.kind in ("window", "chunk") else part.growth
        cache = _cache_of(deployment, replace(part, growth=one), block)
        caches += [(layer, cache) for layer in part.layers]
    return _pad_states(caches)


def _keeps_windows_in_full(deployment: Deployment) -> bool:
    """Whether window and chunk layers beside full ones are allocated as if they were full.

    Versions that could not free the blocks of chunks gave up the groups altogether.
    """
    if deployment.side_by_side:
        return False
    growths = {part.growth.kind for part in deployment.components}
    hybrid = deployment.rules.hybrid_groups and deployment.settings.hybrid_manager
    if "chunk" in growths and not deployment.rules.chunked_groups:
        hybrid = False
    return "linear" in growths and not hybrid


def _cache_of(deployment: Deployment, part: Component, block: int) -> LayerCache:
    settings, growth = deployment.settings, part.growth
    if is_state(part):
        return _state_cache(deployment, part, block)
    if part.kind == "sliding_latent":
        block = WINDOW_LATENT_BLOCK
    elif part.kind == "compressor_state":
        block = _compressor_block(deployment, growth.size)
    page = page_bytes(deployment, part, block)
    if growth.kind == "window":
        return LayerCache("window", block, page, growth.size - 1 + in_flight_tokens(deployment))
    if growth.kind == "chunk":
        return LayerCache("chunk", block, page, growth.size + in_flight_tokens(deployment))
    if growth.kind == "constant":
        budget = settings.encoder_tokens or settings.max_batched_tokens or DEFAULT_ENCODER_TOKENS
        return LayerCache("encoder", block, page, budget)
    return LayerCache("all", block, page, dealt=settings.dcp)


def _compressor_block(deployment: Deployment, reach: int) -> int:
    if reach not in COMPRESSOR_BLOCKS:
        known = " and ".join(map(str, COMPRESSOR_BLOCKS))
        raise UnsupportedModelError(
            f"{deployment.shape.name}: how vLLM keeps a compressor's states over {reach} tokens is not "
            f"understood (model_type {deployment.shape.model_type!r}), known are {known}"
        )
    return COMPRESSOR_BLOCKS[reach]


def _state_cache(deployment: Deployment, part: Component, block: int) -> LayerCache:
    settings = deployment.settings
    mode = state_mode(deployment, part.kind)
    checkpoints = exports_states(deployment, part.kind)
    states = {"none": 1, "align": 2 + checkpoints, "all": 0}[mode] + settings.spec_tokens
    if mode == "none":  # one block spans the whole request
        block = settings.max_len or deployment.shape.max_tokens or block
    page = page_bytes(deployment, part, 1)
    return LayerCache("state", block, page, states=states, per_block=mode == "all")


def _pad_states(caches: list[tuple[int, LayerCache]]) -> list[tuple[int, LayerCache]]:
    """Pad state pages up to the largest page, as states and tokens share one pool."""
    largest = max((cache.page for _, cache in caches), default=0)
    return [
        (layer, replace(cache, page=largest) if cache.keeps == "state" else cache) for layer, cache in caches
    ]
