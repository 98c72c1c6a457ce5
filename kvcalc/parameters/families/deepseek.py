"""Models with latent attention: DeepSeek V2, V3 and V3.2, Kimi K2, GLM-5, MiniCPM3, LongCat."""

from collections.abc import Callable
from functools import partial

from kvcalc.parameters import dimensions, mixtures
from kvcalc.parameters.blocks.feedforward import feed_forward, mixture
from kvcalc.parameters.blocks.latent import latent_attention, read_latent
from kvcalc.parameters.blocks.tensors import linear, norm, whole
from kvcalc.parameters.counts import Layers, Parameters, Part
from kvcalc.parameters.families.decoder import Style, draft_parts, is_tied, layer_norms, networks, outside
from kvcalc.shapes.config import Config
from kvcalc.shapes.families.sparse_mla import indexer_layers

_DEEPSEEK_V2 = Style(sparse=True, mlp_bias="mlp_bias")
_DEEPSEEK_V3 = Style(sparse=True, correction=True)
_MINICPM_3 = Style(tied=True)


def build(config: Config, style: Style) -> Parameters:
    """Build a decoder with latent attention in every layer."""
    d = dimensions.read(config, head_dim=1)  # latent attention has dimensions of its own
    sizes = read_latent(config, d.hidden, d.heads)
    parts = outside(config, d, style) + layer_norms(config, d, style)
    sparse = config.integer("index_topk", default=0) > 0

    def mixer(layers: Layers, owners: Layers) -> list[Part]:
        bias = config.flag("attention_bias")
        own = latent_attention(sizes, layers, bias=bias)
        return own + (indexer(config, d.hidden, sizes.query_rank, owners) if sparse else [])

    parts += mixer(d.all_layers, tuple(indexer_layers(config, d.layers)) if sparse else ())
    draft = draft_parts(config, d, style, lambda layers: mixer(layers, layers))
    parts += networks(config, d, style)
    return Parameters(tuple(parts), d.layers, is_tied(config, style.tied), draft)


def build_longcat(config: Config) -> Parameters:
    """Build LongCat: two attentions and two dense networks beside the experts of each layer.

    The router also chooses among `zero_expert_num` experts that pass their input on unchanged.
    """
    d, m = dimensions.read(config, head_dim=1, layers=config.layer_count("num_layers")), mixtures.read(config)
    sizes, layers = read_latent(config, d.hidden, d.heads), d.all_layers
    style = Style()
    parts = outside(config, d, style) + norm("layernorms", 4 * d.hidden, layers)
    for _ in range(2):
        parts += latent_attention(sizes, layers)
        parts += feed_forward(d.hidden, config.integer("ffn_hidden_size"), layers, prefix="mlps")
    zero = config.integer("zero_expert_num", default=0)
    parts += mixture(d.hidden, m.inner, m.experts, m.top_k, layers, correction=True)
    parts += whole("router", "mlp.router.zero", zero, d.hidden, layers)
    return Parameters(tuple(parts), d.layers, tied=is_tied(config, False))


def indexer(config: Config, hidden: int, query_rank: int, layers: Layers) -> list[Part]:
    """Return the lightning indexer of sparse latent attention, the same on every rank."""
    heads, dim = config.integer("index_n_heads"), config.integer("index_head_dim")
    prefix = "self_attn.indexer"
    parts = linear("attention", f"{prefix}.wq_b", heads * dim, query_rank, layers, split="replicated")
    parts += linear("attention", f"{prefix}.wk", dim, hidden, layers, split="replicated")
    parts += norm(f"{prefix}.k_norm", dim, layers, bias=True)
    return parts + whole("attention", f"{prefix}.weights_proj", heads, hidden, layers)


BUILDERS: dict[str, Callable[[Config], Parameters]] = {
    "longcat_flash": build_longcat,
    "deepseek_v2": partial(build, style=_DEEPSEEK_V2),
    "deepseek_v3": partial(build, style=_DEEPSEEK_V3),
    "kimi_k2": partial(build, style=_DEEPSEEK_V3),
    "deepseek_v32": partial(build, style=_DEEPSEEK_V3),
    "glm_moe_dsa": partial(build, style=_DEEPSEEK_V3),
    "minicpm3": partial(build, style=_MINICPM_3),
}
