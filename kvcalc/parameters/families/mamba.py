"""Pure state-space models: Mamba, Falcon Mamba, Mamba-2."""

from math import ceil

from kvcalc.parameters.blocks.frame import frame
from kvcalc.parameters.blocks.state import Mamba2Sizes, mamba_1, mamba_2
from kvcalc.parameters.blocks.tensors import norm
from kvcalc.parameters.counts import Parameters
from kvcalc.parameters.dimensions import VOCABULARY
from kvcalc.parameters.families.decoder import is_tied
from kvcalc.shapes.config import Config
from kvcalc.shapes.families.attention import HIDDEN, LAYERS


def build_mamba_1(config: Config) -> Parameters:
    """Build a stack of Mamba layers."""
    hidden, layers = config.integer(*HIDDEN), tuple(range(config.layer_count(*LAYERS)))
    inner = config.integer("intermediate_size", "d_inner", default=0)
    inner = inner or config.integer("expand") * hidden
    rank = config.own("time_step_rank", default="auto")
    tied = is_tied(config, True)
    parts = frame(config.size(*VOCABULARY), hidden, tied=tied) + norm("norm", hidden, layers)
    parts += mamba_1(
        hidden,
        inner,
        config.integer("state_size"),
        ceil(hidden / 16) if rank == "auto" else config.integer("time_step_rank"),
        config.integer("conv_kernel"),
        layers,
        bias=config.flag("use_bias"),
        conv_bias=config.flag("use_conv_bias", default=True),
    )
    return Parameters(tuple(parts), len(layers), tied=tied)


def build_mamba_2(config: Config) -> Parameters:
    """Build a stack of Mamba-2 layers."""
    hidden, layers = config.integer(*HIDDEN), tuple(range(config.layer_count(*LAYERS)))
    dim = config.size("head_dim")
    sizes = Mamba2Sizes(
        hidden,
        config.integer("num_heads", default=config.integer("expand") * hidden // dim),
        dim,
        config.size("n_groups"),
        config.integer("state_size"),
        config.integer("conv_kernel"),
    )
    tied = is_tied(config, False)
    parts = frame(config.size(*VOCABULARY), hidden, tied=tied) + norm("norm", hidden, layers)
    parts += mamba_2(
        sizes,
        layers,
        bias=config.flag("use_bias"),
        conv_bias=config.flag("use_conv_bias", default=True),
    )
    return Parameters(tuple(parts), len(layers), tied=tied)


BUILDERS = {
    "mamba": build_mamba_1,
    "falcon_mamba": build_mamba_1,
    "mamba2": build_mamba_2,
}
