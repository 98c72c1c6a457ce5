"""Models with latent attention: DeepSeek V2 and V3, Kimi K2, MiniCPM3."""

from functools import partial

from kvcalc.parameters import dimensions
from kvcalc.parameters.blocks.latent import latent_attention, read_latent
from kvcalc.parameters.counts import Parameters
from kvcalc.parameters.families.decoder import Style, is_tied, layer_norms, networks, outside
from kvcalc.shapes.config import Config

_DEEPSEEK_V2 = Style(sparse=True, mlp_bias="mlp_bias")
_DEEPSEEK_V3 = Style(sparse=True, correction=True)
_MINICPM_3 = Style(tied=True)


def build(config: Config, style: Style) -> Parameters:
    """Build a decoder with latent attention in every layer."""
    d = dimensions.read(config, {"head_dim": 1})  # latent attention has dimensions of its own
    sizes = read_latent(config, d.hidden, d.heads)
    parts = outside(config, d, style) + layer_norms(d, style)
    parts += latent_attention(sizes, d.all_layers, bias=bool(config.own("attention_bias", default=False)))
    parts += networks(config, d, style)
    return Parameters(tuple(parts), d.layers, tied=is_tied(config, style.tied))


BUILDERS = {
    "deepseek_v2": partial(build, style=_DEEPSEEK_V2),
    "deepseek_v3": partial(build, style=_DEEPSEEK_V3),
    "kimi_k2": partial(build, style=_DEEPSEEK_V3),
    "minicpm3": partial(build, style=_MINICPM_3),
}
