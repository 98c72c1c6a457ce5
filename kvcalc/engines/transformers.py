"""Hugging Face transformers: a dynamic cache that grows token by token, without an allocator.

Read in transformers 5.24 (cache_utils.py and the models' own caches).
"""

from dataclasses import replace

from kvcalc.engines.checks import check_ranks
from kvcalc.engines.generic import GenericLayout
from kvcalc.engines.settings import EngineSettings
from kvcalc.engines.sizing import cached_components, model_precision, sizes, unslid
from kvcalc.shapes.components import Component, Growth, ModelShape, Tensor

MODEL_DTYPE_STATES = ("lightning",)
"""Kinds whose state stays in the model's dtype (MiniMaxCache); every other state is fp32."""


def as_cached(part: Component) -> Component:
    """Return `part` as transformers keeps it: windows of w - 1 tokens, k columns of convolution."""
    growth = part.growth
    if part.attention and growth.kind in ("window", "chunk"):
        growth = Growth(growth.kind, growth.size - 1)
    plain_state = part.kind in MODEL_DTYPE_STATES
    return replace(part, growth=growth, entry=tuple(_as_cached(tensor, plain_state) for tensor in part.entry))


def _as_cached(tensor: Tensor, plain_state: bool) -> Tensor:
    if tensor.name.startswith("conv"):  # a token shift is kept in the model's dtype too, but has no kernel
        return replace(tensor, rows=tensor.rows + 1)
    if tensor.storage == "state" and plain_state:
        return replace(tensor, storage="conv")  # the choice that follows the model's dtype
    return tensor


def lay_out(shape: ModelShape, settings: EngineSettings) -> GenericLayout:
    """Return how transformers holds `shape`: in the model's dtype, whatever the checkpoint quantizes."""
    check_ranks(shape, settings, settings.tp)
    components = tuple(as_cached(part) for part in unslid(cached_components(shape, settings), shape))
    shape = replace(shape, kv_dtype=None)
    precision = model_precision(shape, settings, state="fp32")
    sized = sizes(shape, settings, precision, components)
    settings = replace(settings, block_size=None)  # nothing is allocated in blocks
    return GenericLayout(shape, settings, sized.logical, sized.per_gpu, shape.notes)
