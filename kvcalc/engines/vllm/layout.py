"""The V1 layout: one pool of blocks per GPU, shared by all groups of layers."""

from functools import cached_property

import numpy as np

from kvcalc.engines.layout import ComponentBytes, Layout, Pool
from kvcalc.engines.sizing import fullest_stage, size_component
from kvcalc.engines.vllm.caches import batched_tokens, block_tokens, in_flight_tokens, layer_caches
from kvcalc.engines.vllm.deployment import Deployment, is_state
from kvcalc.engines.vllm.groups import block_bytes, group_layers, stage_groups
from kvcalc.errors import SettingsError
from kvcalc.quantity import Bytes, Count, Tokens
from kvcalc.shapes.components import Component


class VllmLayout(Layout):
    """How V1 holds a shape: groups of layers, each with its own blocks of one shared size."""

    def __init__(self, deployment: Deployment, notes: tuple[str, ...]) -> None:
        settings, shape = deployment.settings, deployment.shape

        def per_rank(part: Component) -> ComponentBytes:
            return size_component(part, deployment.precision(part), settings.tp, settings.dcp)

        tokens = settings.max_len or shape.max_tokens or 1
        stage = fullest_stage(deployment.components, shape.layers, settings.pp, per_rank, tokens)
        super().__init__(
            shape,
            settings,
            logical=tuple(size_component(part, deployment.precision(part)) for part in deployment.components),
            per_gpu=tuple(per_rank(part) for part in stage),
            notes=shape.notes + notes,
        )
        self.deployment = deployment
        self.rules = deployment.rules
        caches = layer_caches(deployment)
        if settings.dcp > 1 and any(cache.keeps in ("window", "chunk") for _, cache in caches):
            raise SettingsError(
                f"--dcp: vLLM deals out no sliding windows or chunks, which {shape.name} has; valid is 1"
            )
        self.groups = group_layers(caches, self.rules, deployment.side_by_side)
        self.notes += self._in_flight_note()

    def _in_flight_note(self) -> tuple[str, ...]:
        """Say what a request costs beside its windows, as it may be many times the windows themselves."""
        capped = sum(group.cache.keeps in ("window", "chunk") for group in self.groups)
        if not capped:
            return ()
        batch, flying = batched_tokens(self.settings), in_flight_tokens(self.deployment)
        return (
            f"vLLM counts {flying:,} tokens in flight ({flying // batch} x {batch:,} of "
            f"--max-batched-tokens) for every request in each of its {capped} groups of windows, so fewer "
            "fit by its own figure than windows alone would allow",
        )

    @property
    def kv_dtype(self) -> str:
        """The format that was asked for, else what vLLM serves the checkpoint in."""
        return self.deployment.base.kv

    @cached_property
    def block_bytes(self) -> int:
        """Bytes that one block id costs over all layers of the fullest rank."""
        stages = stage_groups(self.groups, self.shape.layers, self.settings.pp)
        side_by_side = self.deployment.side_by_side
        return max(block_bytes(stage, self.rules.packing, side_by_side) for stage in stages)

    @property
    def block_tokens(self) -> int:
        """Tokens in a block of the group with the smallest."""
        return min(group.cache.block for group in self.groups)

    def request_blocks(self, tokens: Tokens) -> Count:
        """Blocks that one request of `tokens` tokens takes from the pool, over all groups."""
        return sum((group.blocks(tokens) for group in self.groups), tokens * 0)

    def reserved(self, tokens: Tokens) -> Bytes:
        """Bytes that one request of `tokens` tokens takes on the fullest rank."""
        return self.request_blocks(tokens) * float(self.block_bytes)

    def cached(self, tokens: Tokens) -> Bytes:
        """Bytes that `tokens` cached tokens take on the fullest rank: block ids in each group of layers."""
        flying = in_flight_tokens(self.deployment)
        ids = sum((group.cache.cached(tokens, flying) for group in self.groups), tokens * 0.0)
        return ids * float(self.block_bytes)

    def blocks_in(self, size: float) -> int:
        """Blocks that `size` bytes give, or those that `--num-blocks` says."""
        return self.settings.num_blocks or int(size // self.block_bytes)

    def sessions(self, size: float, tokens: Tokens) -> Count:
        """Return how many requests of `tokens` tokens the blocks of `size` bytes hold."""
        requests = np.asarray(self.blocks_in(size) // self.request_blocks(tokens))
        return requests if requests.ndim else int(requests)

    def pool(self, size: float) -> Pool:
        """Return how many blocks `size` bytes give, and the tokens and requests vLLM prints."""
        blocks = self.blocks_in(size)
        max_len = self.settings.max_len
        concurrency = blocks / int(self.request_blocks(max_len)) if max_len else None
        return Pool(
            block_tokens=self.block_tokens,
            page_bytes=max(cache.page for group in self.groups for _, cache in group.layers),
            block_bytes=self.block_bytes,
            num_blocks=blocks,
            kv_tokens=self._printed_tokens(blocks),
            max_concurrency=concurrency,
            notes=self.notes,
        )

    def _printed_tokens(self, blocks: int) -> int:
        settings = self.settings
        by_blocks = blocks // len(self.groups) * self.block_tokens * settings.dcp
        if not self.rules.tokens_by_concurrency:
            return by_blocks
        if settings.max_len is None and len(self.groups) == 1:
            return by_blocks
        max_len = settings.max_len or self.shape.max_tokens
        return int(blocks / int(self.request_blocks(max_len)) * max_len) if max_len else by_blocks

    def longest(self, size: float) -> int:
        """Return the longest max_len of which one request fits `size` bytes; 0 if none does.

        This is the "estimated maximum model length" of vLLM's error, searched up to max_len.
        """
        if self.rules.null_block_in_fit:
            size -= self.block_bytes
        low, high = 0, self.settings.max_len or self.shape.max_tokens or 0
        while low < high:
            middle = -(-(low + high) // 2)
            if float(self.reserved(middle)) <= size:
                low = middle
            else:
                high = middle - 1
        return low


def hybrid_note(deployment: Deployment) -> tuple[str, ...]:
    """Say how large a hybrid's blocks are, as short requests pin whole ones."""
    states = [is_state(part) for part in deployment.components]
    if all(states) or not any(states):
        return ()
    return (
        f"vLLM's attention blocks hold {block_tokens(deployment)} tokens, so that a block's page "
        "covers a recurrent state",
    )
