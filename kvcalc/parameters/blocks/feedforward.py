"""Feed-forward networks: dense ones, and mixtures of experts."""

from kvcalc.parameters.blocks.tensors import linear, vector, whole
from kvcalc.parameters.counts import Layers, Name, Part, Split


def feed_forward(
    hidden: int,
    inner: int,
    layers: Layers,
    *,
    gated: bool = True,
    bias: bool = False,
    name: Name = "mlp",
    prefix: str = "mlp",
    copies: int = 1,
    used: int | None = None,
    split: Split = "columns",
) -> list[Part]:
    """Return up and down projections, and a gate projection where the network is gated."""
    up = ("gate_proj", "up_proj") if gated else ("up_proj",)
    parts: list[Part] = []
    if not layers or not inner:
        return parts
    for module in up:
        parts += linear(
            name,
            f"{prefix}.{module}",
            inner,
            hidden,
            layers,
            bias=bias,
            copies=copies,
            used=used,
            split=split,
        )
    return parts + linear(
        name,
        f"{prefix}.down_proj",
        hidden,
        inner,
        layers,
        bias=bias,
        cut_inputs=True,
        copies=copies,
        used=used,
        split=split,
    )


def mixture(
    hidden: int,
    inner: int,
    experts: int,
    top_k: int,
    layers: Layers,
    *,
    gated: bool = True,
    bias: bool = False,
    router_bias: bool = False,
    correction: bool = False,
    correction_trained: bool = False,
    shared_inner: int = 0,
    shared_gate: bool = False,
    prefix: str = "mlp",
    shared_name: str = "shared_experts",
    expert_width: int = 0,
) -> list[Part]:
    """Return routed experts, their router, and shared experts.

    `router_bias` is a trained bias of the router; `correction` the stored bias that balances load.
    `expert_width` is the width that experts read and write where it is not the hidden one.
    """
    if not layers:
        return []
    parts = whole("router", f"{prefix}.gate", experts, hidden, layers, bias=router_bias)
    if correction:
        parts += vector(
            "router", f"{prefix}.gate.e_score_correction_bias", experts, layers, buffer=not correction_trained
        )
    parts += feed_forward(
        expert_width or hidden,
        inner,
        layers,
        gated=gated,
        bias=bias,
        name="experts",
        prefix=f"{prefix}.experts",
        copies=experts,
        used=top_k,
        split="experts",
    )
    parts += feed_forward(
        hidden,
        shared_inner,
        layers,
        gated=gated,
        bias=bias,
        name="shared_experts",
        prefix=f"{prefix}.{shared_name}",
    )
    if shared_gate and shared_inner:
        parts += whole("shared_experts", f"{prefix}.shared_expert_gate", 1, hidden, layers)
    return parts
