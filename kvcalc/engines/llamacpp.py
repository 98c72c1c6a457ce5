"""llama.cpp (and ollama): cells allocated at start for a whole context, shared or per slot.

Read in llama.cpp as vendored in llama-cpp-python 0.3.36 (src/llama-kv-cache*.cpp,
src/llama-memory-recurrent.cpp).
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from kvcalc.engines.generic import round_up
from kvcalc.engines.layout import ComponentBytes, Layout, Pool
from kvcalc.engines.settings import EngineSettings
from kvcalc.engines.sizing import Precision, Sizes, cached_components, size_component, sizes
from kvcalc.errors import SettingsError
from kvcalc.quantity import Bytes, Tokens
from kvcalc.shapes.components import LINEAR, Component, ModelShape
from kvcalc.shapes.formats import find_format

CELL_PAD = 256
"""Contexts and window caches are padded to this many cells (llama_context, GGML_PAD) [token]."""

_CAPPED = ("window", "chunk")
_GROWING = ("linear", "strided")


@dataclass(frozen=True)
class Buffers:
    """Cells and bytes of each buffer as llama.cpp prints them, all sequences together."""

    cells: int
    swa_cells: int
    kv: float
    swa: float
    index: float
    conv: float  # R
    state: float  # S


class LlamaCppLayout(Layout):
    """Full layers take a cell per token of context, window layers a second, smaller cache."""

    def __init__(
        self, shape: ModelShape, settings: EngineSettings, sized: Sizes, notes: tuple[str, ...]
    ) -> None:
        super().__init__(shape, settings, sized.logical, sized.per_gpu, shape.notes + notes)
        self.stage = sized.stage
        self.precision = llamacpp_precision(settings)
        self.state_rows = 1 + settings.spec_tokens  # a snapshot of the state per drafted token

    @property
    def kv_dtype(self) -> str:
        """The cache type, by llama.cpp's name; of keys and values apart where they differ."""
        both = _cache_type(self.settings)
        key, value = self.settings.k_type or both, self.settings.v_type or both
        return key if key == value else f"K {key}, V {value}"

    def swa_cells(self, cells: Tokens, window: int, sequences: int = 1) -> Tokens:
        """Cells of one window cache beside `cells` cells of full layers, for `sequences` sequences."""
        wanted = np.minimum(cells, window * sequences + self.settings.ubatch)
        return round_up(wanted, CELL_PAD)

    def reserved(self, tokens: Tokens) -> Bytes:
        """Bytes of a context of `tokens` tokens with one sequence in it."""
        cells = round_up(tokens, CELL_PAD)
        total = tokens * 0.0
        for part in self.per_gpu:
            if _is_window(part):
                total = total + part.stored * self.swa_cells(cells, part.growth.size)
            elif part.growth.kind == "constant":
                total = total + part.constant_bytes * self.state_rows
            else:
                total = total + part.stored_at(cells)
        return total

    def buffers(self, context: int, swa_cells: int | None = None) -> Buffers:
        """Return the buffers of a context of `context` tokens over all `--parallel` slots.

        `swa_cells` replaces the rule for the cells of a window cache (older builds padded it
        otherwise).
        """
        slots = self.settings.parallel
        streams = 1 if self.settings.unified else slots
        cells = int(round_up(-(-int(round_up(context, CELL_PAD)) // streams), CELL_PAD))
        sharing = slots if self.settings.unified else 1
        swa = 0.0
        window_cells = 0
        for part in self.stage:
            if _is_window(part):
                window_cells = swa_cells or int(self.swa_cells(cells, part.growth.size, sharing))
                swa += self._entry(part, "kv") * window_cells * streams
        growing = [part for part in self.stage if part.growth.kind in _GROWING]
        constant = [part for part in self.stage if part not in growing and not _is_window(part)]
        rows = slots * self.state_rows
        return Buffers(
            cells=cells,
            swa_cells=window_cells,
            kv=self._grown(growing, "kv", cells) * streams,
            swa=swa,
            index=self._grown(growing, "index", cells) * streams,
            conv=self._grown(constant, "conv", cells) * rows,
            state=(self._grown(constant, "state", cells) + self._grown(constant, "float32", cells)) * rows,
        )

    def _entry(self, part: Component, storage: str) -> float:
        tensors = tuple(tensor for tensor in part.entry if tensor.storage == storage)
        return size_component(replace(part, entry=tensors), self.precision).stored

    def _grown(self, parts: Iterable[Component], storage: str, cells: int) -> float:
        return sum(self._entry(part, storage) * float(part.growth.entries(cells)) for part in parts)

    def total(self, context: int) -> float:
        """Bytes of all buffers for a context of `context` tokens over all slots."""
        made = self.buffers(context)
        return made.kv + made.swa + made.index + made.conv + made.state

    def pool(self, size: float) -> Pool:
        """Return the largest context, in whole padded cells, whose buffers fit in `size`."""
        slope = self.bytes_per_token_per_gpu
        if not slope:
            rows = int(size // self.constant_bytes)
            return Pool(None, None, None, None, None, float(rows), notes=("one state row per sequence",))
        step = CELL_PAD if self.settings.unified else CELL_PAD * self.settings.parallel
        cells = (self.settings.num_blocks or 0) * CELL_PAD or self._largest(size, step)
        layers = sum(part.layers for part in self.per_gpu if part.bytes_per_token)
        return Pool(
            block_tokens=CELL_PAD,
            page_bytes=slope * CELL_PAD / layers,
            block_bytes=slope * CELL_PAD,
            num_blocks=cells // CELL_PAD,
            kv_tokens=cells,
            max_concurrency=self._concurrency(size, cells),
            notes=(f"cells of one context shared by {self.settings.parallel} slot(s)",),
        )

    def _concurrency(self, size: float, cells: int) -> float | None:
        """Return how many sequences of max_len fit, each with windows and states of its own.

        The cells of the pool have those of the `--parallel` slots alone beside them, so a division of
        the cells would count sequences without.
        """
        max_len = self.settings.max_len
        if max_len is None:
            return None
        if self.settings.num_blocks:
            size = cells * self.bytes_per_token_per_gpu
        return size / float(self.occupied(max_len))

    def _largest(self, size: float, step: int) -> int:
        """Return the largest multiple of `step` cells whose buffers fit; they must grow."""
        high = 1
        while self.total(high * step) <= size:
            high *= 2
        low = 0
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.total(middle * step) <= size else (low, middle)
        return low * step


def _is_window(part: Component | ComponentBytes) -> bool:
    """Return whether `part` is kept in cells; a compressor's state is not, though it is a window too."""
    return part.growth.kind in _CAPPED and part.kind != "compressor_state"


def _is_cross(part: Component) -> bool:
    return part.growth.kind == "constant" and all(tensor.storage == "kv" for tensor in part.entry)


def _cache_type(settings: EngineSettings) -> str:
    """Return the type of keys and values: f16 unless told, whatever the checkpoint declares."""
    return "f16" if settings.kv_dtype == "auto" else settings.kv_dtype


def llamacpp_precision(settings: EngineSettings) -> Precision:
    """Return llama.cpp's formats: f16 unless told, keys and values apart, states always fp32."""
    both = _cache_type(settings)
    key = find_format(settings.k_type or both, "llama.cpp", "--k-type" if settings.k_type else "--kv-dtype")
    value = find_format(settings.v_type or both, "llama.cpp", "--v-type" if settings.v_type else "--kv-dtype")
    return Precision(kv=key.name, value=value.name, index=key.name, conv="fp32", state="fp32")


def lay_out(shape: ModelShape, settings: EngineSettings) -> LlamaCppLayout:
    """Return how llama.cpp holds `shape`."""
    if settings.tp > 1:
        raise SettingsError(
            f"--tp: llama.cpp divides a model by layers, not by heads; use --pp {settings.tp * settings.pp}"
        )
    notes: tuple[str, ...] = ()
    # Cross-attention is computed anew from the encoder's output, not cached (llm_graph_input_cross).
    components = tuple(part for part in cached_components(shape, settings) if not _is_cross(part))
    capped = any(part.growth.kind in _CAPPED for part in components)
    if settings.swa_full or all(part.growth.kind not in _GROWING for part in components):
        components = tuple(
            replace(part, growth=LINEAR) if part.growth.kind in _CAPPED else part for part in components
        )
        if capped:
            notes = ("windows are kept in full: --swa-full, or no full layer beside them",)
    sized = sizes(shape, settings, llamacpp_precision(settings), components)
    return LlamaCppLayout(shape, settings, sized, notes)
