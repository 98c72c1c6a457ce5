"""From a component in elements to bytes: precision per tensor, ranks and pipeline stages.

Every engine sizes its entries here; engines differ in the precision they choose and in what their
allocators add.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from kvcalc.engines.layout import ComponentBytes
from kvcalc.engines.settings import EngineSettings
from kvcalc.shapes.components import LINEAR, Component, Growth, ModelShape, Tensor
from kvcalc.shapes.formats import RowBytes, Side, find_format, slot_bytes

Convert = Callable[[Component], ComponentBytes]

CROSS = "cross_attention"
"""Kind of the components that keep one entry per encoder token."""

DRAFT = "draft"
"""Kind of the components of MTP and EAGLE layers, whatever the draft's own attention is."""


@dataclass(frozen=True)
class Precision:
    """The storage format of each kind of tensor, by name."""

    kv: str
    index: str
    conv: str
    state: str
    value: str | None = None  # where values are stored otherwise than keys (llama.cpp)

    def of(self, tensor: Tensor) -> str:
        """Return the format in which `tensor` is stored."""
        if tensor.storage == "kv":
            return self.value if self.value and tensor.name == "value" else self.kv
        if tensor.storage == "index":
            return self.index
        if tensor.storage == "conv":
            return self.conv
        return self.state if tensor.storage == "state" else "fp32"


def model_precision(shape: ModelShape, settings: EngineSettings, state: str | None = None) -> Precision:
    """Return what a checkpoint and the settings ask for: the model's dtype unless they say otherwise.

    `state` is an engine's own default for recurrent states, where it has one.
    """
    asked = settings.kv_dtype if settings.kv_dtype != "auto" else shape.kv_dtype or shape.dtype
    if settings.ssm_dtype != "auto":
        state = settings.ssm_dtype
    return Precision(
        kv=find_format(asked, settings.engine).name,
        index=shape.dtype,
        conv=shape.dtype,
        state=find_format(state or shape.state_dtype or shape.dtype, settings.engine, "--ssm-dtype").name,
    )


def layer_entry(component: Component, precision: Precision, tp: int | None = None) -> RowBytes:
    """Return the bytes of one entry in one layer: of a logical copy, or of one of `tp` ranks."""
    slots: dict[str, list[tuple[Side, float, int]]] = {}
    for tensor in component.entry:
        heads = tensor.heads if tp is None else tensor.heads_per_rank(tp)
        row = (_side(tensor), heads * tensor.rows, tensor.width)
        slots.setdefault(precision.of(tensor), []).append(row)
    total = RowBytes(0.0, 0.0)
    for name, rows in slots.items():
        total += slot_bytes(name, rows)
    return total


def _side(tensor: Tensor) -> Side:
    if tensor.name == "value":
        return "value"
    return "rope" if tensor.name == "rope_key" else "key"


def size_component(
    component: Component, precision: Precision, tp: int | None = None, dcp: int = 1
) -> ComponentBytes:
    """Return the bytes of all layers of a component: of a logical copy, or of one of `tp` ranks.

    Under decode context parallelism the positions of growing KV are dealt out over `dcp` ranks.
    """
    one = layer_entry(component, precision, tp)
    share = len(component.layers) / (dcp if component.growth.kind in ("linear", "strided") else 1)
    return ComponentBytes(
        kind=component.kind,
        layers=len(component.layers),
        payload=one.payload * share,
        stored=one.stored * share,
        growth=component.growth,
    )


def cached_components(shape: ModelShape, settings: EngineSettings) -> tuple[Component, ...]:
    """Return what the engine caches: the model's components, and the draft's when speculating."""
    own = shape.components_for(settings.engine) + draft_components(shape, settings)
    if settings.encoder_tokens is None:
        return own
    encoded = Growth("constant", settings.encoder_tokens)
    return tuple(replace(part, growth=encoded) if part.kind == CROSS else part for part in own)


def unslid(components: tuple[Component, ...], shape: ModelShape) -> tuple[Component, ...]:
    """Return `components` with windows that are never left, since no context is longer, as linear."""

    def grows(part: Component) -> bool:
        return part.growth.kind == "window" and part.growth.size >= (shape.max_tokens or np.inf)

    return tuple(replace(part, growth=LINEAR) if grows(part) else part for part in components)


def draft_components(shape: ModelShape, settings: EngineSettings) -> tuple[Component, ...]:
    """Return the draft layers' components; a draft of unknown shape looks like the full layers."""
    wanted = settings.draft_layers
    if wanted == 0 or (wanted is None and not settings.spec_tokens):
        return ()
    own = shape.draft
    if not own:
        cached = shape.components_for(settings.engine)
        own = tuple(replace(part, layers=(shape.layers,)) for part in cached if part.growth.kind == "linear")
    if wanted is not None:
        own = tuple(replace(part, layers=part.layers[:1] * wanted) for part in own)
    return tuple(replace(part, kind=DRAFT) for part in own)


def stage_bounds(layers: int, pp: int) -> tuple[int, ...]:
    """Return where the pipeline stages begin and end.

    The remainder goes one layer each to the stages before the last, counting backwards
    (vLLM `get_pp_indices`).

    >>> stage_bounds(10, 4)
    (0, 2, 5, 8, 10)
    """
    counts = [layers // pp] * pp
    for extra in range(layers % pp):
        counts[-2 - extra] += 1
    bounds = [0]
    for count in counts:
        bounds.append(bounds[-1] + count)
    return tuple(bounds)


def fullest_stage(
    components: Iterable[Component], layers: int, pp: int, convert: Convert, tokens: int
) -> tuple[Component, ...]:
    """Return what the pipeline stage holds that keeps most bytes after `tokens` tokens."""
    components = tuple(components)
    last = max((index + 1 for part in components for index in part.layers), default=0)
    bounds = (*stage_bounds(layers, pp)[:-1], max(layers, last))  # draft layers sit on the last stage
    stages = [
        tuple(piece for part in components if (piece := _between(part, start, stop)).layers)
        for start, stop in pairwise(bounds)
    ]
    return max(stages, key=lambda stage: sum(float(convert(part).stored_at(tokens)) for part in stage))


def _between(part: Component, start: int, stop: int) -> Component:
    return replace(part, layers=tuple(index for index in part.layers if start <= index < stop))


@dataclass(frozen=True)
class Sizes:
    """Components in bytes: of one logical copy, and of the GPU that holds most."""

    logical: tuple[ComponentBytes, ...]
    per_gpu: tuple[ComponentBytes, ...]
    stage: tuple[Component, ...]  # what that GPU's pipeline stage consists of, not yet split over ranks


def sizes(
    shape: ModelShape,
    settings: EngineSettings,
    precision: Precision,
    components: tuple[Component, ...] | None = None,
    ranks: int | None = None,
) -> Sizes:
    """Size `components` (by default what the engine caches), split over `ranks` (by default tp)."""
    components = cached_components(shape, settings) if components is None else components

    def per_rank(part: Component) -> ComponentBytes:
        return size_component(part, precision, ranks or settings.tp, settings.dcp)

    tokens = settings.max_len or shape.max_tokens or 1
    stage = fullest_stage(components, shape.layers, settings.pp, per_rank, tokens)
    return Sizes(
        logical=tuple(size_component(part, precision) for part in components),
        per_gpu=tuple(per_rank(part) for part in stage),
        stage=stage,
    )
