"""The two kinds of tensor that every block is made of: a linear map and a vector."""

from dataclasses import replace

from kvcalc.parameters.counts import Layers, Name, Part, Split
from kvcalc.parameters.formats import FP32


def linear(
    name: Name,
    module: str,
    outputs: int,
    inputs: int,
    layers: Layers | None = None,
    *,
    bias: bool = False,
    split: Split = "columns",
    cut_inputs: bool = False,
    heads: int = 1,
    copies: int = 1,
    used: int | None = None,
    quantizable: bool = True,
) -> list[Part]:
    """Return a weight matrix of `outputs` by `inputs`, and its bias if it has one.

    `cut_inputs` says that tensor parallelism cuts the input dimension, so that every rank keeps the
    whole bias.
    """
    active = copies if used is None else used
    parts = [
        Part(name, module, outputs, inputs, layers, copies, active, split, heads, quantizable=quantizable)
    ]
    if bias:
        kept: Split = "replicated" if cut_inputs and split == "columns" else split
        parts.append(
            Part(
                name,
                module + ".bias",
                1,
                outputs,
                layers,
                copies,
                active,
                kept,
                heads,
                matrix=False,
                quantizable=False,
            )
        )
    return parts


def whole(
    name: Name, module: str, outputs: int, inputs: int, layers: Layers | None = None, *, bias: bool = False
) -> list[Part]:
    """Return a small matrix, such as a router, that every rank keeps whole and that is not quantized."""
    return linear(name, module, outputs, inputs, layers, bias=bias, split="replicated", quantizable=False)


def vector(
    name: Name,
    module: str,
    size: int,
    layers: Layers | None = None,
    *,
    split: Split = "replicated",
    heads: int = 1,
    copies: int = 1,
    used: int | None = None,
    buffer: bool = False,
) -> list[Part]:
    """Return a tensor of `size` elements that takes part in no matrix product."""
    active = copies if used is None else used
    return [
        Part(
            name,
            module,
            1,
            size,
            layers,
            copies,
            active,
            split,
            heads,
            matrix=False,
            quantizable=False,
            buffer=buffer,
        )
    ]


def single(
    name: Name, module: str, size: int, layers: Layers | None = None, *, split: Split = "replicated"
) -> list[Part]:
    """Return a vector that engines keep in single precision whatever the model's dtype."""
    return [replace(part, format=FP32) for part in vector(name, module, size, layers, split=split)]


def norm(module: str, width: int, layers: Layers | None = None, *, bias: bool = False) -> list[Part]:
    """Return the scale, and the shift if it has one, of a normalization over `width` channels."""
    return vector("norms", module, width * (2 if bias else 1), layers)
