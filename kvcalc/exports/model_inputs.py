"""What traces the numbers of a model in a workbook: its cache's entries, layers, windows and formats."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from kvcalc.engines import kind_of
from kvcalc.exports.inputs import Inputs, Leaf
from kvcalc.scenario import Scenario
from kvcalc.shapes.components import ModelShape
from kvcalc.tracing.number import Counted

_FIXED_REACH = frozenset(("compressor_state",))
"""Components whose window is part of the architecture: engines have block sizes for known ones alone."""


def model_leaf(inputs: Inputs) -> Leaf:
    """Return what traces the numbers of a model: what one entry of its cache is made of, and its widths."""
    shape = inputs.real.model.shape
    uniform = _is_uniform(inputs.real)

    def layers() -> Any:
        meaning = "layers that keep KV, of the cache, its attention and its all-reduces; weights stay"
        return inputs.model("model.layers", shape.layers, "1", "KV cache", meaning)

    def leaf(path: str, value: Any) -> Any:
        parts = path.split(".")
        if isinstance(value, tuple):
            counted = parts[:2] == ["shape", "components"] and parts[-1] == "layers" and uniform
            return Counted.of(value, layers()) if counted else value
        if path == "shape.layers" and uniform:
            return layers()
        if path.startswith("shape.components.") and value:
            component = shape.components[int(parts[2])]
            prefix = f"model.{component.kind}" + (f"_{parts[2]}" if _twice(shape, component.kind) else "")
            if parts[3] == "entry" and parts[5] in ("heads", "width"):
                tensor = component.entry[int(parts[4])]
                name = f"{prefix}.{tensor.name}.{parts[5]}"
                return inputs.model(name, value, "1", "KV cache", f"{parts[5]} of {tensor.name}")
            windowed = component.growth.kind in ("window", "chunk") and component.kind not in _FIXED_REACH
            if parts[3:] == ["growth", "size"] and windowed:
                return inputs.model(f"{prefix}.window", value, "token", "KV cache", "tokens kept at most")
            if parts[3:] == ["attention", "query_heads"]:
                return inputs.model(f"{prefix}.query_heads", value, "1", "KV cache", "query heads of a layer")
        if parts[0] == "parameters" and parts[-2:] == ["format", "bits"]:
            form = _format_of(inputs, parts)
            name = f"model.weights.{form}.bits"
            return inputs.model(name, float(value), "1", "Weights", f"bits of one weight in {form}")
        return value

    return leaf


def _is_uniform(real: Scenario) -> bool:
    """Tell a model whose layers are all alike and lie on one stage: then their number is all that counts."""
    shape = real.model.shape
    if kind_of(real.settings.engine).groups_layers:
        return False
    alike = len(shape.components) == 1 and len(shape.components[0].layers) == shape.layers
    one_stage = real.settings.pp == 1 and not real.settings.spec_tokens
    return alike and one_stage and not shape.engine_components


def kv_formats(inputs: Inputs, own: Callable[..., Any]) -> Callable[..., Any]:
    """Return the look-up of storage formats, with traced bits of a cached value."""

    def find_format(*args: Any) -> Any:
        found = own(*args)
        live = {}
        for side in ("key", "value", "rope"):
            packing = getattr(found, side)
            if packing is not None:
                name = f"kv.{found.name}.bits" if side == "key" else f"kv.{found.name}.{side}_bits"
                meaning = f"bits of one cached value in {found.name}, scales apart"
                bits = inputs.model(name, packing.bits, "1", "KV cache", meaning)
                live[side] = replace(packing, bits=bits)
        return replace(found, **live)

    return find_format


def _format_of(inputs: Inputs, parts: list[str]) -> str:
    parameters = inputs.real.model.parameters
    if parameters is None:
        return "unknown"
    kept = parameters.parts if parts[1] == "parts" else parameters.draft
    return kept[int(parts[2])].format.name


def _twice(shape: ModelShape, kind: str) -> bool:
    return sum(part.kind == kind for part in shape.components) > 1
