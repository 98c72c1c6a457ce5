"""Weights in ggml's block types and in the mixtures of them that llama.cpp's `llama-quantize` writes.

Read in llama.cpp's src/llama-quant.cpp (`llama_tensor_get_type_impl`, `tensor_type_fallback`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from kvcalc.parameters.counts import Parameters, Part
from kvcalc.parameters.formats import FP16, FP32, NAMED, Format
from kvcalc.shapes.readers.gguf.file import GGML_TYPES, GgmlType

_ENDS, _EVERY = 8, 3
"""`use_more_bits`: the first and last eighth of the layers, and every third one between them."""


def ggml_format(kind: GgmlType) -> Format:
    """Return a ggml type as a storage format; its blocks lie within a row, so bits say it all.

    >>> ggml_format(GGML_TYPES[12]).bits  # q4_K: 144 bytes for 256 values
    4.5
    """
    return Format(kind.name, 8 * kind.size / kind.block)


TYPES: Mapping[str, GgmlType] = MappingProxyType(
    {kind.name: kind for kind in GGML_TYPES.values() if kind.block > 1 and kind.name not in NAMED}
)
"""Block types by name; mxfp4 and nvfp4 mean what other engines store under these names."""


@dataclass(frozen=True)
class Mixture:
    """Types by the role of a matrix: `base`, unless the layer is among those that get more bits.

    `first` layers are a number of them, or a share of all where below 1; `spread` ones are those of
    llama.cpp's `use_more_bits`.
    """

    base: str
    value: str | None = None  # attn_v: of all layers, beside those below
    output: str | None = None  # attn_output
    down: str | None = None  # ffn_down
    first_value: tuple[float, str] | None = None
    first_down: tuple[float, str] | None = None
    spread: str | None = None  # attn_v and ffn_down


MIXTURES: Mapping[str, Mixture] = MappingProxyType(
    {
        "q3_k_s": Mixture("q3_k"),
        "q3_k_m": Mixture("q3_k", "q4_k", "q4_k", "q4_k", (2, "q5_k"), (1 / 16, "q5_k")),
        "q3_k_l": Mixture("q3_k", "q5_k", "q5_k", "q5_k"),
        "q4_k_s": Mixture("q4_k", first_value=(4, "q5_k"), first_down=(1 / 8, "q5_k")),
        "q4_k_m": Mixture("q4_k", spread="q6_k"),
        "q5_k_s": Mixture("q5_k"),
        "q5_k_m": Mixture("q5_k", spread="q6_k"),
    }
)
"""llama-quantize's mixtures without an importance matrix.

Not told apart: what it adds for 70B models (5 bits for attn_v) and mixtures of 8 experts (8 bits for
attn_k and attn_v), less than 1 % of such a file.
"""

HEAD = "q6_k"
"""What mixtures keep the output head in, or the embedding where it is the head as well."""

_FALLBACK = {"q4_k": "q5_0", "q5_k": "q5_1", "q6_k": "q8_0"} | dict.fromkeys(
    ("q2_k", "q3_k", "q2_0", "tq1_0", "tq2_0"), "q4_0"
)
_FALLBACK_OTHERS = "iq4_nl"
"""Types of 32 values for rows that are no multiple of 256."""


def names() -> tuple[str, ...]:
    """Return every name that `with_ggml` takes."""
    return (*TYPES, *MIXTURES)


def with_ggml(parameters: Parameters, name: str) -> Parameters:
    """Return `parameters` as llama.cpp would hold them: matrices in blocks, norms and routers in fp32.

    A type's name holds for every matrix (`llama-quantize --pure`), embedding and output head included;
    a mixture's name gives more bits to some.  A vision tower is a file of its own, in fp16.
    """
    mixture = MIXTURES.get(name)
    head = "embedding" if parameters.tied else "lm_head"

    def stored(part: Part) -> list[Part]:
        if part.name == "vision_tower":
            return [replace(part, format=FP16)]
        if not part.matrix or not (part.quantizable or part.name in ("embedding", "lm_head")):
            return [replace(part, format=FP32)]
        if mixture is None or part.layers is None:
            kind = name if mixture is None else HEAD if part.name == head else mixture.base
            return [replace(part, format=_fitting(kind, part))]
        layers: dict[str, list[int]] = {}
        for layer in part.layers:
            layers.setdefault(_type_of(part, layer, parameters.layers, mixture), []).append(layer)
        return [
            replace(part, layers=tuple(where), format=_fitting(kind, part)) for kind, where in layers.items()
        ]

    return replace(
        parameters,
        parts=tuple(new for part in parameters.parts for new in stored(part)),
        draft=tuple(new for part in parameters.draft for new in stored(part)),
    )


def _type_of(part: Part, layer: int, layers: int, mixture: Mixture) -> str:
    """Return the type of one layer's matrix in a mixture."""
    role = part.module.rsplit(".", 1)[-1]
    if role == "o_proj":
        return mixture.output or mixture.base
    if role not in ("v_proj", "down_proj"):
        return mixture.base
    if mixture.spread and _more_bits(layer, layers):
        return mixture.spread
    first, usual = mixture.first_value, mixture.value
    if role == "down_proj":
        first, usual = mixture.first_down, mixture.down
    if first is not None and layer < (first[0] if first[0] >= 1 else int(first[0] * layers)):
        return first[1]
    return usual or mixture.base


def _more_bits(layer: int, layers: int) -> bool:
    eighth = layers // _ENDS
    return layer < eighth or layer >= 7 * layers // _ENDS or (layer - eighth) % _EVERY == _EVERY - 1


def _fitting(name: str, part: Part) -> Format:
    """Return the type, or the nearest one whose blocks divide a row of the matrix."""
    for kind in (TYPES[name], TYPES[_FALLBACK.get(name, _FALLBACK_OTHERS)]):
        if part.columns % kind.block == 0:
            return ggml_format(kind)
    return FP16
