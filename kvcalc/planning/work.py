"""How many operations a prompt takes: products by format, attention by the way each cache grows."""

from collections.abc import Callable, Iterable

from kvcalc.formulas.prefill import (
    attention_flops,
    capped_entries,
    chunked_entries,
    dense_flop_per_token,
    full_entries,
    state_flop_per_token,
    strided_entries,
)
from kvcalc.parameters import Parameters
from kvcalc.quantity import Count, Flop, Share, Tokens
from kvcalc.scenario import Scenario
from kvcalc.shapes.components import Attention, Component

LINEAR_SHARE = 0.2
"""Share of attention in the operations of a prompt from which a constant rate misleads [1]: what it is at
a quarter of the length where attention and weights cost the same."""

DELTA_RULE = frozenset({"gated_deltanet", "kda", "rwkv"})
"""State kinds whose update reads the state once more, as the delta rule does."""


def products(parameters: Parameters) -> dict[tuple[str, bool], float]:
    """Return the operations [flop] of a prompt token's matrix products, by format and whether routed."""
    work: dict[tuple[str, bool], float] = {}
    for part in parameters.prompt_matrices:
        kind = part.format.name, part.name == "experts"
        work[kind] = work.get(kind, 0.0) + float(dense_flop_per_token(part.active))
    return work


def attention_work(components: Iterable[Component], new: Tokens, cached: Tokens = 0.0) -> Flop:
    """Return the operations [flop] of attention and states for `new` tokens after `cached` ones."""
    total: Flop = new * 0.0
    for part in components:
        if part.attention is not None:
            total = total + _component_work(part, part.attention, new, cached)
    return total


def _component_work(part: Component, sizes: Attention, new: Tokens, cached: Tokens) -> Flop:
    layers = float(len(part.layers))
    if part.growth.kind == "constant" and part.growth.size == 1:
        passes = 3.0 if part.kind in DELTA_RULE else 2.0
        per_token = state_flop_per_token(layers, sizes.query_heads, sizes.key_dim, sizes.value_dim, passes)
        return new * per_token
    entries = _ENTRIES[part.growth.kind](part, sizes, new, cached)
    return attention_flops(entries, layers, sizes.query_heads, sizes.key_dim, sizes.value_dim)


def _linear(_: Component, sizes: Attention, new: Tokens, cached: Tokens) -> Count:
    if sizes.top_k is not None:
        return capped_entries(new, sizes.top_k, cached)
    return full_entries(new, cached)


def _window(part: Component, _: Attention, new: Tokens, cached: Tokens) -> Count:
    return capped_entries(new, part.growth.size, cached)


def _chunk(part: Component, _: Attention, new: Tokens, cached: Tokens) -> Count:
    return chunked_entries(new, part.growth.size, cached)


def _strided(part: Component, sizes: Attention, new: Tokens, cached: Tokens) -> Count:
    if sizes.top_k is not None:
        return strided_entries(new, part.growth.size, cached, sizes.top_k)
    return strided_entries(new, part.growth.size, cached)


def _constant(part: Component, _: Attention, new: Tokens, __: Tokens) -> Count:
    # Cross-attention: every token attends to all encoder entries.
    return new * part.growth.size


_ENTRIES: dict[str, Callable[[Component, Attention, Tokens, Tokens], Count]] = {
    "linear": _linear,
    "window": _window,
    "chunk": _chunk,
    "strided": _strided,
    "constant": _constant,
}


def attention_share(scenario: Scenario) -> Share | None:
    """Return which share of the prompt's operations are attention; None without parameter counts."""
    model, prompt = scenario.model, scenario.workload.prompt
    if model.parameters is None:
        return None
    parts = model.shape.components_for(scenario.settings.engine)
    attention = attention_work(parts, prompt)
    weights = dense_flop_per_token(model.parameters.matmul_active) * prompt
    return attention / (attention + weights)
