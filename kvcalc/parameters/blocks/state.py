"""Recurrent mixers: Mamba 1 and 2, gated delta nets, lightning attention, short convolutions."""

from dataclasses import dataclass

from kvcalc.parameters.blocks.tensors import linear, norm, single, vector
from kvcalc.parameters.counts import Layers, Part


def mamba_1(
    hidden: int,
    inner: int,
    state: int,
    rank: int,
    kernel: int,
    layers: Layers,
    *,
    bias: bool = False,
    conv_bias: bool = True,
    prefix: str = "mixer",
    norms: bool = False,
) -> list[Part]:
    """Return a Mamba layer; `norms` scales the time step, B and C as Jamba does."""
    parts = linear("state_mixer", f"{prefix}.in_proj", 2 * inner, hidden, layers, bias=bias)
    parts += _convolution(prefix, inner, kernel, conv_bias, layers)
    parts += linear("state_mixer", f"{prefix}.x_proj", rank + 2 * state, inner, layers)
    parts += linear("state_mixer", f"{prefix}.dt_proj", inner, rank, layers, bias=True)
    parts += single("state_mixer", f"{prefix}.A_log", inner * state, layers, split="columns")
    parts += single("state_mixer", f"{prefix}.D", inner, layers, split="columns")
    if norms:
        parts += norm(f"{prefix}.layernorms", rank + 2 * state, layers)
    return parts + linear(
        "state_mixer", f"{prefix}.out_proj", hidden, inner, layers, bias=bias, cut_inputs=True
    )


@dataclass(frozen=True)
class Mamba2Sizes:
    """Sizes of a Mamba-2 layer."""

    hidden: int
    heads: int
    head_dim: int
    groups: int
    state: int
    kernel: int

    @property
    def inner(self) -> int:
        """Channels of all heads."""
        return self.heads * self.head_dim


def mamba_2(
    s: Mamba2Sizes,
    layers: Layers,
    *,
    bias: bool = False,
    conv_bias: bool = True,
    gated_norm: bool = True,
    prefix: str = "mixer",
) -> list[Part]:
    """Return a Mamba-2 layer: one input projection for gate, channels, B, C and time steps."""
    both = 2 * s.groups * s.state  # B and C of all groups
    parts = linear("state_mixer", f"{prefix}.in_proj", 2 * s.inner + s.heads, s.hidden, layers, bias=bias)
    parts += linear(
        "state_mixer",
        f"{prefix}.in_proj",
        both,
        s.hidden,
        layers,
        bias=bias,
        split="heads",
        heads=s.groups,
    )
    parts += _convolution(prefix, s.inner + both, s.kernel, conv_bias, layers)
    for name in ("A_log", "D", "dt_bias"):
        parts += single("state_mixer", f"{prefix}.{name}", s.heads, layers, split="columns")
    if gated_norm:
        parts += vector("norms", f"{prefix}.norm", s.inner, layers, split="columns")
    return parts + linear(
        "state_mixer", f"{prefix}.out_proj", s.hidden, s.inner, layers, bias=bias, cut_inputs=True
    )


@dataclass(frozen=True)
class DeltaSizes:
    """Sizes of a gated delta net: heads and widths of keys and values."""

    hidden: int
    key_heads: int
    value_heads: int
    key_dim: int
    value_dim: int
    kernel: int

    @property
    def keys(self) -> int:
        """Key channels."""
        return self.key_heads * self.key_dim

    @property
    def values(self) -> int:
        """Value channels."""
        return self.value_heads * self.value_dim


def gated_delta_net(s: DeltaSizes, layers: Layers, *, prefix: str = "linear_attn") -> list[Part]:
    """Return a gated delta net as Qwen builds it."""
    parts = linear("state_mixer", f"{prefix}.in_proj_qkv", 2 * s.keys + s.values, s.hidden, layers)
    parts += linear("state_mixer", f"{prefix}.in_proj_z", s.values, s.hidden, layers)
    for name in ("in_proj_b", "in_proj_a"):
        parts += linear("state_mixer", f"{prefix}.{name}", s.value_heads, s.hidden, layers, quantizable=False)
    parts += _convolution(prefix, 2 * s.keys + s.values, s.kernel, False, layers)
    for name in ("A_log", "dt_bias"):
        parts += single("state_mixer", f"{prefix}.{name}", s.value_heads, layers, split="columns")
    parts += norm(f"{prefix}.norm", s.value_dim, layers)
    return parts + linear("state_mixer", f"{prefix}.out_proj", s.hidden, s.values, layers)


def delta_attention(
    hidden: int, heads: int, head_dim: int, kernel: int, layers: Layers, *, full_gate: bool = False
) -> list[Part]:
    """Return Kimi Delta Attention; its output gate is low-rank unless `full_gate`."""
    prefix, width = "self_attn", heads * head_dim
    parts: list[Part] = []
    for name in ("q", "k", "v"):
        parts += linear("state_mixer", f"{prefix}.{name}_proj", width, hidden, layers)
        parts += _convolution(f"{prefix}.{name}", width, kernel, False, layers)
    gates = ("f",) if full_gate else ("f", "g")
    for name in gates:
        parts += linear(
            "state_mixer", f"{prefix}.{name}_a_proj", head_dim, hidden, layers, split="replicated"
        )
        parts += linear("state_mixer", f"{prefix}.{name}_b_proj", width, head_dim, layers)
    if full_gate:
        parts += linear("state_mixer", f"{prefix}.g_proj", width, hidden, layers)
    parts += linear("state_mixer", f"{prefix}.b_proj", heads, hidden, layers)
    parts += single("state_mixer", f"{prefix}.A_log", heads, layers, split="columns")
    parts += single("state_mixer", f"{prefix}.dt_bias", width, layers, split="columns")
    parts += norm(f"{prefix}.o_norm", head_dim, layers)
    return parts + linear("state_mixer", f"{prefix}.o_proj", hidden, width, layers)


def lightning_attention(hidden: int, heads: int, head_dim: int, layers: Layers) -> list[Part]:
    """Return MiniMax's lightning attention: fused projections, an output gate and a norm."""
    width, prefix = heads * head_dim, "self_attn"
    parts = linear("state_mixer", f"{prefix}.qkv_proj", 3 * width, hidden, layers)
    parts += linear("state_mixer", f"{prefix}.output_gate", width, hidden, layers)
    parts += norm(f"{prefix}.norm", width, layers)
    return parts + linear("state_mixer", f"{prefix}.out_proj", hidden, width, layers)


def short_convolution(hidden: int, kernel: int, layers: Layers, *, bias: bool = False) -> list[Part]:
    """Return a gated short convolution as LFM2 builds it."""
    parts = linear("state_mixer", "conv.in_proj", 3 * hidden, hidden, layers, bias=bias)
    parts += _convolution("conv", hidden, kernel, bias, layers)
    return parts + linear("state_mixer", "conv.out_proj", hidden, hidden, layers, bias=bias, cut_inputs=True)


def _convolution(prefix: str, channels: int, kernel: int, bias: bool, layers: Layers) -> list[Part]:
    size = channels * (kernel + bias)
    return vector("state_mixer", f"{prefix}.conv1d", size, layers, split="columns")
