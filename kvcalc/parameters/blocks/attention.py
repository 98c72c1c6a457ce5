"""Attention projections: MHA, GQA, MQA with biases, gates and query-key norms."""

from typing import Literal

from kvcalc.parameters.blocks.tensors import linear, norm, vector
from kvcalc.parameters.counts import Layers, Part

QueryKeyNorm = Literal["none", "head", "width", "heads"]
"""What query and key norms scale: nothing, one head (shared by all), the whole projection
(cut with the heads), or each head on its own."""


def grouped_query(
    hidden: int,
    heads: int,
    kv_heads: int,
    key_dim: int,
    value_dim: int,
    layers: Layers,
    *,
    bias: bool = False,
    out_bias: bool = False,
    qk_norm: QueryKeyNorm = "none",
    norm_bias: bool = False,
    gate: bool = False,
    sinks: bool = False,
    shared_value: bool = False,
    prefix: str = "self_attn",
) -> list[Part]:
    """Return query, key, value and output projections of ordinary attention.

    `gate` doubles the query projection (a gate per query channel), `sinks` adds a learned logit per
    head, `shared_value` takes the key projection as value projection too.
    """
    query = heads * key_dim * (2 if gate else 1)
    kv = {"split": "heads", "heads": kv_heads, "bias": bias}
    parts = linear("attention", f"{prefix}.q_proj", query, hidden, layers, bias=bias)
    parts += linear("attention", f"{prefix}.k_proj", kv_heads * key_dim, hidden, layers, **kv)  # type: ignore[arg-type]
    if not shared_value:
        parts += linear("attention", f"{prefix}.v_proj", kv_heads * value_dim, hidden, layers, **kv)  # type: ignore[arg-type]
    parts += linear(
        "attention", f"{prefix}.o_proj", hidden, heads * value_dim, layers, bias=out_bias, cut_inputs=True
    )
    widths = {
        "none": (),
        "head": (key_dim, key_dim),
        "width": (heads * key_dim, kv_heads * key_dim),
        "heads": (heads * key_dim, kv_heads * key_dim),
    }[qk_norm]
    for module, width in zip(("q_norm", "k_norm"), widths, strict=False):
        parts += norm(f"{prefix}.{module}", width, layers, bias=norm_bias)
    if sinks:
        parts += vector("attention", f"{prefix}.sinks", heads, layers, split="columns")
    return parts
