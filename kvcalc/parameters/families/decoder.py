"""Decoders whose layers are all alike: norms, ordinary attention, one feed-forward network."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from kvcalc.parameters import dimensions, mixtures
from kvcalc.parameters.blocks.attention import QueryKeyNorm, grouped_query
from kvcalc.parameters.blocks.feedforward import feed_forward, mixture
from kvcalc.parameters.blocks.frame import frame
from kvcalc.parameters.blocks.tensors import linear, norm, whole
from kvcalc.parameters.counts import Layers, Parameters, Part
from kvcalc.parameters.dimensions import Dimensions
from kvcalc.shapes.config import Config
from kvcalc.shapes.families.attention import draft_layers

Switch = bool | str | tuple[str, bool] | Callable[[Config], bool]
"""Always, never, as a key of the config says (absent: no, or the given default), or a rule."""

Extra = Callable[[Config, Dimensions], list[Part]]

_LABELS = 2  # of a scoring model whose config names none, transformers' default

_SCORING = ("ForSequenceClassification", "ForRewardModel", "ForTokenClassification")


@dataclass(frozen=True)
class Style:
    """How one `model_type` differs from its neighbours."""

    norms: int = 2  # normalizations of the hidden width in one layer
    one_norm_if: Switch = False  # attention and network read the same normalized input
    norm_bias: bool = False
    final_norm: bool = True
    bias: Switch = False  # of query, key and value projections
    out_bias: Switch = False
    qk_norm: QueryKeyNorm = "none"
    qk_norm_if: Switch = True
    gated: bool = True
    mlp_bias: Switch = False
    tied: bool = False  # where the config does not say
    head_bias: Switch = False
    headless: bool = True  # an architecture named ...Model has no output head
    sparse: bool = False  # a mixture of experts in the layers that the config names
    expert_bias: bool = False
    router_bias: bool = False
    correction: Switch = False  # a stored router bias that balances load
    correction_trained: bool = False  # ... which the checkpoint counts as a parameter
    shared_gate: bool = False
    shared_default: int = 0  # shared experts where the config does not say
    network: str = "mlp"  # the checkpoint's names, which quantization configs refer to
    shared_name: str = "shared_experts"
    sinks: bool = False
    gate: Switch = False  # a gate per query channel, in the query projection
    defaults: Mapping[str, int] = field(default_factory=dict)  # the model class's own, for absent keys
    extra: Extra | None = None
    read: Callable[[Config, Mapping[str, int] | None], Dimensions] = dimensions.read


def switch(config: Config, how: Switch) -> bool:
    """Return whether a switch is on in this config."""
    if isinstance(how, bool):
        return how
    if callable(how):
        return how(config)
    key, absent = (how, False) if isinstance(how, str) else how
    return config.flag(key, default=absent)


def build(config: Config, style: Style) -> Parameters:
    """Build a decoder of one style."""
    d = style.read(config, style.defaults)
    parts = outside(config, d, style) + layer_norms(config, d, style)
    parts += attention(config, d, style) + networks(config, d, style)
    draft = draft_parts(config, d, style, lambda layers: attention(config, d, style, layers))
    return Parameters(tuple(parts), d.layers, is_tied(config, style.tied), draft)


def draft_parts(
    config: Config, d: Dimensions, style: Style, mixer: Callable[[Layers], list[Part]]
) -> tuple[Part, ...]:
    """Return the multi-token-prediction layers: each a decoder layer behind a projection.

    They take the embedding of the next token beside the hidden state, and share embedding and head.
    """
    layers = tuple(draft_layers(config, d.layers))
    parts = linear("mtp", "eh_proj", d.hidden, 2 * d.hidden, layers, split="replicated")
    parts += norm("draft_layernorms", (3 + style.norms) * d.hidden, layers) + mixer(layers)
    if style.sparse:
        parts += experts(config, d.hidden, layers, style)
    else:
        bias = switch(config, style.mlp_bias)
        parts += feed_forward(d.hidden, d.inner, layers, gated=style.gated, bias=bias)
    return tuple(replace(part, name="mtp") for part in parts if part.count)


def is_tied(config: Config, absent: bool) -> bool:
    """Return whether the output head shares the embedding's weights."""
    value = config.get("tie_word_embeddings", default=absent)
    if not isinstance(value, bool):
        raise config.refuse("tie_word_embeddings", f"expected true or false, got {value!r:.60}")
    return value


def outside(config: Config, d: Dimensions, style: Style) -> list[Part]:
    """Return embedding, head and final norm; a scoring model has a small head in place of the large."""
    kind = _architecture(config)
    bare = kind.endswith("Model") and not kind.endswith("LMHeadModel") and style.headless
    parts = frame(
        d.vocabulary,
        d.hidden,
        tied=is_tied(config, style.tied),
        head=not bare and not kind.endswith(_SCORING),
        head_bias=switch(config, style.head_bias),
        final_norm=style.final_norm,
        norm_bias=style.norm_bias,
    )
    if kind.endswith(_SCORING):
        named = config.top.get("id2label")
        labels = len(named) if isinstance(named, Mapping) and named else _LABELS
        labels = 1 if kind.endswith("ForRewardModel") else labels
        parts += whole("lm_head", "score", labels, d.hidden)
    return parts + (style.extra(config, d) if style.extra else [])


def _architecture(config: Config) -> str:
    """Return the class that the checkpoint holds; of a nested model, the language model's own."""
    named = (config.text if config.nested else config.top).get("architectures")
    return str(named[0]) if isinstance(named, list) and named else ""


def layer_norms(config: Config, d: Dimensions, style: Style) -> list[Part]:
    """Return the norms of the hidden width in all layers."""
    names = (
        "input_layernorm",
        "post_attention_layernorm",
        "pre_feedforward_layernorm",
        "post_feedforward_layernorm",
    )
    count = 1 if switch(config, style.one_norm_if) else style.norms
    return [
        part
        for module in names[:count]
        for part in norm(module, d.hidden, d.all_layers, bias=style.norm_bias)
    ]


def attention(
    config: Config,
    d: Dimensions,
    style: Style,
    layers: Layers | None = None,
    prefix: str = "self_attn",
) -> list[Part]:
    """Return the attention projections of `layers`, by default of all."""
    return grouped_query(
        d.hidden,
        d.heads,
        d.kv_heads,
        d.head_dim,
        d.value_dim,
        d.all_layers if layers is None else layers,
        bias=switch(config, style.bias),
        out_bias=switch(config, style.out_bias),
        qk_norm=style.qk_norm if switch(config, style.qk_norm_if) else "none",
        gate=switch(config, style.gate),
        sinks=style.sinks,
        prefix=prefix,
    )


def networks(config: Config, d: Dimensions, style: Style) -> list[Part]:
    """Return the feed-forward networks of all layers, dense and sparse."""
    sparse = mixtures.sparse_layers(config, d.layers) if style.sparse else ()
    dense = tuple(layer for layer in d.all_layers if layer not in sparse)
    parts = feed_forward(
        d.hidden,
        d.inner,
        dense,
        gated=style.gated,
        bias=switch(config, style.mlp_bias),
    )
    return parts + (experts(config, d.hidden, sparse, style) if sparse else [])


def experts(config: Config, hidden: int, layers: Layers, style: Style) -> list[Part]:
    """Return the mixture of experts of `layers`."""
    sizes = mixtures.read(config, style.shared_default)
    width = config.integer("routed_expert_hidden_size", default=0)
    parts = latent_width(hidden, width, layers, style) if width else []
    return parts + mixture(
        hidden,
        sizes.inner,
        sizes.experts,
        sizes.top_k,
        layers,
        gated=style.gated,
        bias=style.expert_bias,
        router_bias=style.router_bias,
        correction=switch(config, style.correction),
        correction_trained=style.correction_trained,
        shared_inner=sizes.shared_inner,
        shared_gate=style.shared_gate,
        prefix=style.network,
        shared_name=style.shared_name,
        expert_width=width,
    )


def latent_width(hidden: int, width: int, layers: Layers, style: Style) -> list[Part]:
    """Return what brings tokens to a narrower width for the experts and back."""
    down = f"{style.network}.routed_expert_down_proj"
    up = f"{style.network}.routed_expert_up_proj"
    parts = whole("shared_experts", down, width, hidden, layers)
    parts += norm(f"{style.network}.routed_expert_norm", width, layers)
    return parts + whole("shared_experts", up, hidden, width, layers)
