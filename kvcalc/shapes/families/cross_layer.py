"""Hunyuan's cross-layer attention (CLA): one layer in a group caches, the others read it."""

from kvcalc.shapes.components import ModelShape
from kvcalc.shapes.config import Config
from kvcalc.shapes.families.attention import read_dimensions, shape_of

MODEL_TYPES = ("hunyuan", "hunyuan_v1_moe")


def build(config: Config) -> ModelShape:
    """Build the layers that own a cache: every `cla_share_factor`-th, if CLA is on."""
    if config.flag("use_mla") or config.own("kv_lora_rank") is not None:
        raise config.refuse("use_mla", "Hunyuan with latent attention is not understood")
    config.own("qk_rope_head_dim", "qk_nope_head_dim", "v_head_dim")
    dimensions = read_dimensions(config)
    factor = config.size("cla_share_factor", default=1)
    step = factor if config.flag("use_cla") else 1
    component = dimensions.component("full_attention", range(0, dimensions.layers, step))
    return shape_of(config, dimensions, [component])
