"""SGLang: one pool of token slots in pages, beside it pools for windows and recurrent states.

Read in SGLang 0.5.23 (srt/mem_cache/memory_pool.py, model_executor/model_runner_kv_cache_mixin.py).
"""

from dataclasses import dataclass, replace

import numpy as np

from kvcalc.engines.checks import check_ranks
from kvcalc.engines.generic import round_up
from kvcalc.engines.layout import ComponentBytes, Layout, Pool
from kvcalc.engines.settings import EngineSettings
from kvcalc.engines.sizing import (
    DRAFT,
    Precision,
    Sizes,
    cached_components,
    model_precision,
    size_component,
    sizes,
    unslid,
)
from kvcalc.errors import SettingsError
from kvcalc.quantity import Bytes, Tokens
from kvcalc.shapes.components import LINEAR, Component, ModelShape

WINDOW_SHARE, WINDOW_SHARE_V4 = 0.8, 0.1
"""Tokens in the window pool per token in the full pool (`--swa-full-tokens-ratio`)."""

PAGE, PAGE_V4 = 1, 256
"""Default page size; DeepSeek V4's must hold whole groups of 128 compressed tokens [token]."""

STATE_RING = 16
"""Rows of DeepSeek V4's compressor state per page of the window pool, two windows of 8.

A log prints 7705.45 bytes per full token, which counts the states of overlapping groups alone.
"""

STATE_SHARE = 0.9
"""Memory for recurrent states per byte of KV (`--mamba-full-memory-ratio`)."""

_CAPPED = ("window", "chunk")
_GROWING = ("linear", "strided")
_STATES = ("conv", "state", "float32")


@dataclass(frozen=True)
class Buffers:
    """Bytes of each buffer as SGLang prints them when it allocates, per GPU.

    Token buffers hold one page more than the tokens they serve, state buffers one slot more.
    """

    key: float
    value: float
    latent: float  # MLA rows and their indexer keys: one "KV size"
    window_key: float
    window_value: float
    conv: float
    state: float
    draft_key: float
    draft_value: float
    draft_latent: float


class SglangLayout(Layout):
    """Tokens in pages; windows in a second pool; states in slots of their own."""

    def __init__(
        self, shape: ModelShape, settings: EngineSettings, sized: Sizes, precision: Precision, ranks: int
    ) -> None:
        notes = shape.notes + _notes(shape, settings)
        super().__init__(shape, settings, sized.logical, sized.per_gpu, notes)
        self.precision = precision
        self.ranks = ranks
        self.stage = sized.stage
        compressed = any(part.kind == "compressed_latent" for part in sized.stage)
        self.page = settings.page_size or settings.block_size or (PAGE_V4 if compressed else PAGE)
        self.window_share = settings.swa_ratio or (WINDOW_SHARE_V4 if compressed else WINDOW_SHARE)
        self.state_share = settings.mamba_ratio or STATE_SHARE

    @property
    def kv_dtype(self) -> str:
        """The format that was asked for, else what SGLang serves the checkpoint in."""
        return model_precision(_served(self.shape), self.settings).kv

    @property
    def state_bytes(self) -> float:
        """Bytes of one slot: the recurrent states of one sequence."""
        states = [part for part in self.stage if _is_state(part)]
        return sum(size_component(part, self.precision, self.ranks).constant_bytes for part in states)

    @property
    def bytes_per_full_token(self) -> float:
        """Bytes that one token of the full pool costs, its share of the window pool included."""
        windows = sum(self._window_row(part) for part in self.per_gpu if part.growth.kind in _CAPPED)
        return self.bytes_per_token_per_gpu + self.window_share * windows

    def _window_row(self, part: ComponentBytes) -> float:
        """Bytes per token of the window pool; a compressor keeps a ring of rows in each page."""
        if part.kind != "compressor_state":
            return part.stored
        return part.stored * STATE_RING / self.page if part.growth.size <= STATE_RING else 0.0

    def window_tokens(self, full_tokens: int) -> int:
        """Tokens of the window pool beside `full_tokens` of the full pool, in whole pages."""
        return int(full_tokens * self.window_share) // self.page * self.page

    def reserved(self, tokens: Tokens) -> Bytes:
        """Bytes of one sequence: whole pages, a page beyond each window, one state slot."""
        paged = round_up(tokens, self.page)
        total = tokens * 0.0
        for part in self.per_gpu:
            if part.growth.kind in _CAPPED and part.kind != "compressor_state":
                held = round_up(np.minimum(tokens, part.growth.size + self.page), self.page)
                total = total + part.stored * held
            else:
                total = total + part.stored_at(paged)
        return total

    def occupied(self, tokens: Tokens) -> Bytes:
        """Bytes of the whole pool behind the pages, the window or the slot that runs out first."""
        states, cell = self.state_bytes, self.bytes_per_full_token
        for_tokens = 1 + self.state_share if states else 1.0  # bytes of the whole per byte of tokens
        paged = round_up(tokens, self.page)
        total = np.maximum(self.reserved(tokens), paged * cell * for_tokens)
        for part in self.per_gpu:
            if part.growth.kind in _CAPPED:
                held = round_up(np.minimum(tokens, part.growth.size + self.page), self.page)
                total = np.maximum(total, held * cell / self.window_share * for_tokens)
        return np.maximum(total, states * (1 + self.state_share) / self.state_share)

    def pool(self, size: float) -> Pool:
        """Return the pages that remain of `size` after the states' share, and what they serve."""
        states = self.state_bytes
        slots = int(size * self.state_share / (1 + self.state_share) // states) if states else None
        for_tokens = size / (1 + self.state_share) if states else size
        cell = self.bytes_per_full_token
        if not cell:
            concurrency = float(slots) if slots is not None else None
            return Pool(None, None, None, None, None, concurrency, notes=(f"{slots} state slots",))
        pages = self.settings.num_blocks or int(for_tokens // cell) // self.page
        full = pages * self.page
        layers = sum(part.layers for part in self.per_gpu if part.growth.kind != "constant")
        return Pool(
            block_tokens=self.page,
            page_bytes=cell * self.page / layers,
            block_bytes=cell * self.page,
            num_blocks=pages,
            kv_tokens=full,
            max_concurrency=self._concurrency(full, slots),
            notes=() if slots is None else (f"{slots} state slots",),
        )

    def _concurrency(self, full_tokens: int, slots: int | None) -> float | None:
        max_len = self.settings.max_len
        if max_len is None:
            return None
        limits = [full_tokens / float(round_up(max_len, self.page))]
        window = self.window_tokens(full_tokens)
        for part in self.per_gpu:
            if part.growth.kind in _CAPPED:
                held = min(max_len, part.growth.size + self.page)
                limits.append(window / float(round_up(held, self.page)))
        return min(limits + ([float(slots)] if slots is not None else []))

    def buffers(self, tokens: int, slots: int = 0) -> Buffers:
        """Return the buffers that serve `tokens` tokens of the full pool and `slots` states."""
        full = [part for part in self.stage if part.growth == LINEAR and part.kind != DRAFT]
        window = [part for part in self.stage if part.growth.kind in _CAPPED]
        state = [part for part in self.stage if _is_state(part)]
        draft = [part for part in self.stage if part.kind == DRAFT]
        rows = tokens + self.page
        window_rows = self.window_tokens(tokens) + self.page
        return Buffers(
            key=self._tensors(full, "key") * rows,
            value=self._tensors(full, "value") * rows,
            latent=self._tensors(full, "latent", "rope_key", "index_key") * rows,
            window_key=self._tensors(window, "key") * window_rows,
            window_value=self._tensors(window, "value") * window_rows,
            conv=self._tensors(state, storage="conv") * (slots + 1),
            state=self._tensors(state, storage="state") * (slots + 1),
            draft_key=self._tensors(draft, "key") * rows,
            draft_value=self._tensors(draft, "value") * rows,
            draft_latent=self._tensors(draft, "latent", "rope_key", "index_key") * rows,
        )

    def _tensors(self, parts: list[Component], *names: str, storage: str | None = None) -> float:
        total = 0.0
        for part in parts:
            entry = tuple(
                tensor for tensor in part.entry if tensor.name in names or tensor.storage == storage
            )
            sized = size_component(replace(part, entry=entry), self.precision, self.ranks, 1)
            total += sized.stored * (part.growth.size if part.growth.kind == "constant" else 1)
        return total


def _is_state(part: Component) -> bool:
    return part.growth.kind == "constant" and any(tensor.storage in _STATES for tensor in part.entry)


def _notes(shape: ModelShape, settings: EngineSettings) -> tuple[str, ...]:
    notes = []
    if any(_is_state(part) for part in shape.components):
        if settings.prefix_caching:
            notes.append("states kept for the radix cache take slots beyond one per sequence")
        if settings.spec_tokens:
            notes.append("speculative runs also hold draft-token copies of the states, not counted here")
    return tuple(notes)


def _in_full_pool(parts: tuple[Component, ...]) -> tuple[Component, ...]:
    """Return `parts` with every window kept in full."""
    return tuple(replace(part, growth=LINEAR) if part.growth.kind in _CAPPED else part for part in parts)


def attention_ranks(settings: EngineSettings) -> int:
    """Return over how many ranks attention is split: tp, or tp / dp under DP attention."""
    if not settings.dp_attention:
        return settings.tp
    if settings.tp % settings.dp:
        raise SettingsError(f"--dp: {settings.dp} does not divide --tp {settings.tp} (DP attention)")
    return settings.tp // settings.dp


def _served(shape: ModelShape) -> ModelShape:
    """Return `shape` in the dtype it runs in: fp32 in 16 bits (`model_config.py: _get_and_verify_dtype`)."""
    return shape if shape.dtype != "fp32" else replace(shape, dtype="fp16")


def sglang_precision(shape: ModelShape, settings: EngineSettings) -> Precision:
    """Return SGLang's formats: fp8 indexer keys, fp32 states, packed rows for sparse MLA in fp8."""
    shape = _served(shape)
    precision = model_precision(shape, settings, state=shape.state_dtype or "fp32")
    parts = shape.components_for(settings.engine)
    sparse = any(tensor.storage == "index" for part in parts for tensor in part.entry)
    latent = any(tensor.name == "latent" for part in parts for tensor in part.entry)
    kv = precision.kv
    if any(part.kind == "compressed_latent" for part in parts):
        kv = "fp8_ds_mla_v4"  # the only form DeepSeek V4's kernels read
    elif sparse and latent and kv == "fp8_e4m3":
        kv = "fp8_ds_mla"
    return replace(precision, index="fp8_block128", kv=kv)


def lay_out(shape: ModelShape, settings: EngineSettings) -> SglangLayout:
    """Return how SGLang holds `shape`."""
    ranks = attention_ranks(settings)
    check_ranks(shape, settings, ranks)
    components = unslid(cached_components(shape, settings), shape)
    if not settings.hybrid_manager or all(part.growth.kind not in _GROWING for part in components):
        components = _in_full_pool(components)
    precision = sglang_precision(shape, settings)
    return SglangLayout(
        shape, settings, sizes(shape, settings, precision, components, ranks), precision, ranks
    )
