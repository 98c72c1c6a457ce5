"""What an engine makes of a shape: bytes per component, views, and blocks in a pool."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from kvcalc.engines.settings import EngineSettings
from kvcalc.formulas.capacity import sessions_that_fit
from kvcalc.formulas.kv import component_bytes
from kvcalc.quantity import Bytes, Count, Tokens
from kvcalc.shapes.components import Growth, ModelShape


@dataclass(frozen=True)
class ComponentBytes:
    """Bytes of one component, all its layers together.

    `payload` and `stored` are bytes per entry: useful values, and as stored with scales and padding.
    """

    kind: str
    layers: int
    payload: float
    stored: float
    growth: Growth

    @property
    def bytes_per_token(self) -> float:
        """Stored bytes per further token in the long-context limit; 0 when capped."""
        return self.stored * self.growth.slope

    @property
    def constant_bytes(self) -> float:
        """Stored bytes that stay once the component is saturated."""
        return self.stored * self.growth.saturated

    @property
    def cap_tokens(self) -> int | None:
        """Tokens after which a window or chunk stops growing."""
        return self.growth.size if self.growth.kind in ("window", "chunk") else None

    def payload_at(self, tokens: Tokens) -> Bytes:
        """Return the useful bytes after `tokens` tokens."""
        return component_bytes(self.payload, self.growth.entries(tokens))

    def stored_at(self, tokens: Tokens) -> Bytes:
        """Return the bytes after `tokens` tokens as stored, scales and padding included."""
        return component_bytes(self.stored, self.growth.entries(tokens))


@dataclass(frozen=True)
class Pool:
    """What fits in the KV memory of one GPU, by the rule of one engine version."""

    block_tokens: int | None  # tokens per block of the smallest group
    page_bytes: float | None  # one layer's page
    block_bytes: float | None  # one block id over all layers of a rank
    num_blocks: int | None
    kv_tokens: int | None  # the token count the engine prints
    max_concurrency: float | None  # sequences of max_len at once; None without max_len
    cpu_blocks: int | None = None
    notes: tuple[str, ...] = ()


class Layout(ABC):
    """How one engine version holds one shape under given settings.

    `logical` has the components of one logical copy of the model, `per_gpu` those of the GPU that
    holds most.  Both list the same kinds in the same order where every rank holds every kind.
    """

    def __init__(
        self,
        shape: ModelShape,
        settings: EngineSettings,
        logical: tuple[ComponentBytes, ...],
        per_gpu: tuple[ComponentBytes, ...],
        notes: tuple[str, ...] = (),
    ) -> None:
        self.shape = shape
        self.settings = settings
        self.logical = logical
        self.per_gpu = per_gpu
        self.notes = notes

    @property
    @abstractmethod
    def kv_dtype(self) -> str:
        """What keys and values are stored in, as the engine calls it."""

    @property
    def bytes_per_token(self) -> float:
        """Marginal bytes per token of one logical copy, in the long-context limit."""
        return sum(part.bytes_per_token for part in self.logical)

    @property
    def bytes_per_token_per_gpu(self) -> float:
        """The same on the GPU that holds most."""
        return sum(part.bytes_per_token for part in self.per_gpu)

    @property
    def constant_bytes(self) -> float:
        """Bytes per sequence of one logical copy that no longer grow: full windows and states."""
        return sum(part.constant_bytes for part in self.logical)

    def payload(self, tokens: Tokens, per_gpu: bool = False) -> Bytes:
        """Return the useful bytes of one sequence of `tokens` tokens."""
        parts = self.per_gpu if per_gpu else self.logical
        return sum((part.payload_at(tokens) for part in parts), tokens * 0.0)

    def serialized(self, tokens: Tokens, per_gpu: bool = False) -> Bytes:
        """Return the bytes of one sequence as stored or sent, scales and padding included."""
        parts = self.per_gpu if per_gpu else self.logical
        return sum((part.stored_at(tokens) for part in parts), tokens * 0.0)

    @abstractmethod
    def reserved(self, tokens: Tokens) -> Bytes:
        """Return the bytes that the allocator of one GPU must hold for a sequence of `tokens` tokens."""

    def occupied(self, tokens: Tokens) -> Bytes:
        """Return the bytes of one GPU's pool that a sequence of `tokens` tokens leaves for no other.

        What it reserves; more where the pool is divided beforehand and one of its parts runs out first.
        """
        return self.reserved(tokens)

    def cached(self, tokens: Tokens) -> Bytes:
        """Return the bytes of one GPU that a block of `tokens` tokens takes in a prefix cache.

        A block must be of use whatever follows, so that each has the windows and states at its own end.
        """
        return self.serialized(tokens, per_gpu=True)

    @abstractmethod
    def pool(self, size: float) -> Pool:
        """Return the blocks, tokens and concurrency that `size` bytes of KV memory per GPU give."""

    def sessions(self, size: float, tokens: Tokens) -> Count:
        """Return how many sequences of `tokens` tokens fit in `size` bytes of KV memory per GPU."""
        need = np.asarray(self.occupied(tokens), dtype=float)
        count = sessions_that_fit(max(size, 0.0), np.where(need > 0, need, 1.0))
        fitting = np.where(need > 0, count, 0.0)
        return fitting if fitting.ndim else int(fitting)
