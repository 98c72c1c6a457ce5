"""A shape under settings and the rules of one version: what every step of the sizing asks about."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

from kvcalc.engines.settings import EngineSettings
from kvcalc.engines.sizing import Precision, cached_components, model_precision
from kvcalc.engines.vllm.models import IGNORES_KV_DTYPE
from kvcalc.engines.vllm.versions import Rules
from kvcalc.shapes.components import Component, ModelShape, Tensor

INDEX_FORMAT = "fp8_ds_mla"
"""An indexer's keys beside an MLA latent: fp8 with an fp32 scale per 128, as the latent's packed part."""

PACKED_LATENT = "fp8_ds_mla"
"""A sparse MLA row in fp8 where the kernels read packed rows (FlashMLA on Hopper)."""

COMPRESSED_FORMAT = "fp8_ds_mla_v4"
"""DeepSeek V4 rows, always."""

SIDE_BY_SIDE = ("compressed_latent", "compressed_index", "sliding_latent", "compressor_state")
"""Kinds of DeepSeek V4, whose pages of different sizes lie side by side in one block."""

FP32_STATES = ("kda",)
"""State kinds that vLLM keeps in fp32 unless told otherwise (`mamba_utils.py: kda_state_dtype`)."""

HOPPER, BLACKWELL = 9, 10
"""Major compute capabilities for which vLLM chooses other kernels."""

SKIPPED_ENDS = 2
"""Attention layers at either end that TurboQuant leaves alone in dense models
(`turboquant/config.py: get_boundary_skip_layers`)."""


def is_latent(component: Component) -> bool:
    """Whether the entry is an MLA row."""
    return any(tensor.name == "latent" for tensor in component.entry)


def is_index(component: Component) -> bool:
    """Whether the entry is an indexer's key."""
    return any(tensor.name == "index_key" for tensor in component.entry)


def is_state(component: Component) -> bool:
    """Whether the entry is a recurrent state: one per sequence, not one per encoder token."""
    return component.growth.kind == "constant" and any(
        tensor.storage in ("conv", "state", "float32") for tensor in component.entry
    )


@dataclass(frozen=True)
class Deployment:
    """What is cached, in which precision, under which rules."""

    shape: ModelShape
    settings: EngineSettings
    rules: Rules

    @cached_property
    def components(self) -> tuple[Component, ...]:
        """What vLLM caches; convolutions keep one more row per speculative token."""
        return tuple(self._widened(part) for part in self._with_skipped_layers())

    def _widened(self, part: Component) -> Component:
        def widen(tensor: Tensor) -> Tensor:
            extra = self.settings.spec_tokens if tensor.storage == "conv" else 0
            return replace(tensor, rows=tensor.rows + extra)

        return replace(part, entry=tuple(widen(tensor) for tensor in part.entry))

    def _with_skipped_layers(self) -> Iterable[Component]:
        cached = cached_components(self.shape, self.settings)
        for part in cached:
            skipped = self.skipped_layers if _has_heads(part) else ()
            outer = tuple(layer for layer in part.layers if layer in skipped)
            inner = tuple(layer for layer in part.layers if layer not in skipped)
            if inner:
                yield replace(part, layers=inner)
            if outer:
                yield replace(part, layers=outer)

    @cached_property
    def skipped_layers(self) -> tuple[int, ...]:
        """Layers that stay in the model's dtype although the cache is TurboQuant's."""
        cached = self.shape.components_for("vllm")
        if not self.base.kv.startswith("turboquant") or any(is_state(part) for part in cached):
            return ()
        ends = min(SKIPPED_ENDS, self.shape.layers // 2)
        return (*range(ends), *range(self.shape.layers - ends, self.shape.layers))

    @cached_property
    def base(self) -> Precision:
        """What the settings and the checkpoint ask for; fp32 models run, and cache, in bf16."""
        shape = self.shape if self.shape.dtype != "fp32" else replace(self.shape, dtype="bf16")
        kinds = {part.kind for part in shape.components_for("vllm")}
        if shape.state_dtype is None and kinds.intersection(FP32_STATES):
            shape = replace(shape, state_dtype="fp32")
        settings = self.settings
        if shape.model_type in IGNORES_KV_DTYPE:
            settings = replace(settings, kv_dtype=shape.dtype)
        return model_precision(shape, settings)

    @property
    def quantized(self) -> bool:
        """Whether the cache is stored in less than the model's 16 bits."""
        return self.base.kv not in ("fp32", "fp16", "bf16")

    @property
    def capability(self) -> int:
        """Major compute capability of the GPU."""
        return int(self.settings.compute_capability)

    @cached_property
    def has_latent(self) -> bool:
        """Whether the model runs on MLA kernels."""
        return any(is_latent(part) for part in self.components)

    @cached_property
    def has_index(self) -> bool:
        """Whether attention is sparse, chosen by an indexer."""
        return any(is_index(part) for part in self.components)

    @cached_property
    def side_by_side(self) -> bool:
        """Whether pages of different sizes share a block (DeepSeek V4)."""
        return any(part.kind in SIDE_BY_SIDE for part in self.components)

    def precision(self, part: Component) -> Precision:
        """Return the formats in which a component's entries are stored."""
        if part.kind in SIDE_BY_SIDE:
            return replace(self.base, kv=COMPRESSED_FORMAT, index=INDEX_FORMAT)
        base = replace(self.base, index=INDEX_FORMAT if self.has_latent else self.base.conv)
        if set(part.layers) & set(self.skipped_layers) and _has_heads(part):
            return replace(base, kv=base.conv)
        packs = self.has_index and self.capability != BLACKWELL and base.kv.startswith("fp8_e")
        return replace(base, kv=PACKED_LATENT) if packs and is_latent(part) else base


def _has_heads(part: Component) -> bool:
    return part.growth.kind != "constant" and part.kv_heads is not None
