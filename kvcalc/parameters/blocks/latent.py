"""Multi-head latent attention: queries and keys through low-rank projections."""

from dataclasses import dataclass

from kvcalc.parameters.blocks.tensors import linear, norm
from kvcalc.parameters.counts import Layers, Part
from kvcalc.shapes.config import Config


@dataclass(frozen=True)
class LatentSizes:
    """Widths of a latent attention layer; `query_rank` 0 means a full query projection."""

    hidden: int
    heads: int
    query_rank: int
    kv_rank: int
    nope_dim: int
    rope_dim: int
    value_dim: int


def read_latent(config: Config, hidden: int, heads: int) -> LatentSizes:
    """Read the widths of latent attention."""
    nope = config.integer("qk_nope_head_dim")
    return LatentSizes(
        hidden,
        heads,
        query_rank=config.integer("q_lora_rank", default=0),
        kv_rank=config.integer("kv_lora_rank"),
        nope_dim=nope,
        rope_dim=config.integer("qk_rope_head_dim"),
        value_dim=config.integer("v_head_dim", default=nope),
    )


def latent_attention(
    s: LatentSizes, layers: Layers, *, bias: bool = False, output_gate: bool = False
) -> list[Part]:
    """Return the projections of latent attention; the down projections are the same on every rank.

    `bias` is that of the down projections and the output, as DeepSeek's `attention_bias` has it.
    """
    key_dim = s.nope_dim + s.rope_dim
    prefix = "self_attn"
    if s.query_rank:
        parts = linear(
            "attention", f"{prefix}.q_a_proj", s.query_rank, s.hidden, layers, bias=bias, split="replicated"
        )
        parts += norm(f"{prefix}.q_a_layernorm", s.query_rank, layers)
        parts += linear("attention", f"{prefix}.q_b_proj", s.heads * key_dim, s.query_rank, layers)
    else:
        parts = linear("attention", f"{prefix}.q_proj", s.heads * key_dim, s.hidden, layers)
    parts += linear(
        "attention",
        f"{prefix}.kv_a_proj_with_mqa",
        s.kv_rank + s.rope_dim,
        s.hidden,
        layers,
        bias=bias,
        split="replicated",
    )
    parts += norm(f"{prefix}.kv_a_layernorm", s.kv_rank, layers)
    up = s.heads * (s.nope_dim + s.value_dim)
    parts += linear("attention", f"{prefix}.kv_b_proj", up, s.kv_rank, layers)
    if output_gate:
        parts += linear("attention", f"{prefix}.g_proj", s.heads * s.value_dim, s.hidden, layers)
    return parts + linear(
        "attention",
        f"{prefix}.o_proj",
        s.hidden,
        s.heads * s.value_dim,
        layers,
        bias=bias,
        cut_inputs=True,
    )
