"""Which layers hold a mixture of experts and how large it is, under any of the known key names."""

from dataclasses import dataclass

from kvcalc.errors import UnsupportedModelError
from kvcalc.parameters.counts import Layers
from kvcalc.shapes.config import Config

EXPERTS = ("n_routed_experts", "num_experts", "num_local_experts", "moe_num_experts")
TOP_K = (
    "num_experts_per_tok",
    "num_experts_per_token",
    "moe_topk",
    "moe_k",
    "moe_top_k",
    "top_k_experts",
    "experts_per_token",
)
WIDTH = ("moe_intermediate_size", "expert_ffn_hidden_size", "intermediate_size", "ffn_hidden_size")
SHARED_WIDTH = (
    "shared_expert_intermediate_size",
    "moe_shared_expert_intermediate_size",
    "shared_intermediate_size",
    "share_expert_dim",
)
SHARED_COUNT = ("n_shared_experts", "num_shared_experts", "moe_num_shared_experts", "num_shared_expert")


@dataclass(frozen=True)
class Mixture:
    """Sizes of a mixture of experts."""

    experts: int
    top_k: int
    inner: int
    shared_inner: int  # width of all shared experts together


def read(config: Config, shared_default: int = 0) -> Mixture:
    """Read the sizes of a mixture; a model that lists them per layer must list equal ones.

    `shared_default` is the number of shared experts where the config does not say.
    """
    inner = _uniform(config, WIDTH)
    shared = _uniform(config, SHARED_WIDTH, absent=-1)
    if shared < 0:
        shared = _uniform(config, SHARED_COUNT, absent=shared_default) * inner
    experts = _uniform(config, EXPERTS, absent=0)
    top_k = _uniform(config, TOP_K) if experts else 0
    if top_k > experts:
        raise UnsupportedModelError(f"{config.where}: {TOP_K[0]}: {top_k} of {experts} experts")
    return Mixture(
        experts=experts,
        top_k=top_k,
        inner=inner,
        shared_inner=shared,
    )


def sparse_layers(config: Config, layers: int) -> Layers:
    """Return the layers whose feed-forward network is a mixture; the others are dense."""
    chosen = [True] * layers
    words = config.words("mlp_layer_types", layers)
    if words is not None:
        chosen = [word == "sparse" for word in words]
    every = config.own("moe_layer_freq", "interleave_moe_layer_step", "decoder_sparse_step")
    if isinstance(every, list):
        if len(every) != layers:
            raise UnsupportedModelError(
                f"{config.where}: moe_layer_freq: {len(every)} entries for {layers} layers"
            )
        chosen = [bool(flag) for flag in every]
    first = config.integer("first_k_dense_replace", "num_dense_layers", "moe_layer_start_index", default=0)
    last = config.integer("moe_layer_end_index", default=layers - 1)
    step, offset = _period(config, every)
    dense = config.integers("mlp_only_layers") or ()
    return tuple(
        layer
        for layer in range(layers)
        if chosen[layer] and first <= layer <= last and layer % step == offset and layer not in dense
    )


def _period(config: Config, every: object) -> tuple[int, int]:
    """Return n and i where layer l is sparse when l modulo n is i."""
    period = config.integer("expert_layer_period", default=0)
    if period:
        return period, config.integer("expert_layer_offset", default=0)
    counted_from_one = config.own("interleave_moe_layer_step", "decoder_sparse_step") is not None
    if isinstance(every, int) and every > 1:
        return every, every - 1 if counted_from_one else 0
    return max(1, config.integer("moe_layer_interval", default=1)), 0


def _uniform(config: Config, names: tuple[str, ...], absent: int | None = None) -> int:
    value = config.own(*names)
    if isinstance(value, list):
        present = next(name for name in names if config.has(name))
        sizes = set(config.integers(present) or ())
        if len(sizes) != 1:
            raise UnsupportedModelError(f"{config.where}: {present}: differs from layer to layer")
        return sizes.pop()
    return config.integer(*names) if absent is None else config.integer(*names, default=absent)
