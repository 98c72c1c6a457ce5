"""The V0 layout (before 0.8): blocks of every layer in full, with a second pool in CPU memory."""

from kvcalc.engines.layout import Layout, Pool
from kvcalc.engines.sizing import sizes
from kvcalc.engines.vllm.deployment import Deployment
from kvcalc.quantity import Bytes, Tokens

BLOCK = 16
"""Tokens in a block by default (`--block-size`)."""


class V0Layout(Layout):
    """All layers keep all tokens; windows only limit what is read."""

    def __init__(self, deployment: Deployment, notes: tuple[str, ...]) -> None:
        settings, shape = deployment.settings, deployment.shape
        sized = sizes(shape, settings, deployment.base, deployment.components)
        super().__init__(shape, settings, sized.logical, sized.per_gpu, shape.notes + notes)
        self.deployment = deployment
        self.block = settings.block_size or BLOCK
        self.block_bytes = self.block * sum(
            part.stored for part in self.per_gpu if part.growth.kind != "constant"
        )

    @property
    def kv_dtype(self) -> str:
        """The format that was asked for, else what vLLM serves the checkpoint in."""
        return self.deployment.base.kv

    def reserved(self, tokens: Tokens) -> Bytes:
        """Bytes of whole blocks, and of states that do not grow."""
        return -(-tokens // self.block) * self.block_bytes + self.constant_per_request

    @property
    def constant_per_request(self) -> float:
        """Bytes per request beside the blocks: states, and the cache of an encoder's tokens."""
        return sum(part.constant_bytes for part in self.per_gpu if part.growth.kind == "constant")

    def pool(self, size: float) -> Pool:
        """Return the blocks that `size` bytes of GPU memory and the swap space give."""
        if not self.block_bytes:
            requests = size // self.constant_per_request
            notes = (*self.notes, "nothing grows with tokens, so there are no blocks")
            return Pool(None, None, None, None, None, requests, notes=notes)
        blocks = self.settings.num_blocks or int(size // self.block_bytes)
        tokens = blocks * self.block
        max_len = self.settings.max_len
        return Pool(
            block_tokens=self.block,
            page_bytes=self.block_bytes / sum(part.layers for part in self.per_gpu),
            block_bytes=self.block_bytes,
            num_blocks=blocks,
            kv_tokens=tokens,
            max_concurrency=tokens / max_len if max_len else None,
            cpu_blocks=int(self.settings.swap_space // self.block_bytes),
            notes=self.notes,
        )
