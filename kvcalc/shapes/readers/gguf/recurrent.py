"""GGUF architectures with recurrent layers, alone or between attention layers."""

from collections.abc import Callable, Mapping, Sequence

from kvcalc.shapes.components import Component, Growth, Tensor
from kvcalc.shapes.families.gated_deltanet import gated_deltanet_component
from kvcalc.shapes.families.kda import kda_component
from kvcalc.shapes.families.lightning import lightning_component
from kvcalc.shapes.families.mamba import mamba1_component
from kvcalc.shapes.families.mamba2 import mamba2_component
from kvcalc.shapes.families.recurrent import state_component
from kvcalc.shapes.families.short_conv import short_conv_component
from kvcalc.shapes.readers.gguf.attention import latent_layers
from kvcalc.shapes.readers.gguf.keys import Built, Keys, drafts, full_attention, read_heads


def _rwkv(keys: Keys) -> Built:
    hidden = keys.size("embedding_length")
    component = state_component(
        "rwkv",
        range(keys.layers),
        Tensor(
            "token_shift", hidden, 1, rows=keys.size("token_shift_count", 2), split="channels", storage="conv"
        ),
        Tensor("state", hidden, keys.size("wkv.head_size"), split="channels", storage="float32"),
    )
    return [component], [], ()


def _deltanet(keys: Keys) -> Built:
    recurrent = _recurrent_layers(keys, interval=4)
    inner, heads = keys.size("ssm.inner_size"), keys.size("ssm.time_step_rank")
    linear = gated_deltanet_component(
        [layer for layer in range(keys.layers) if recurrent[layer]],
        key_heads=keys.size("ssm.group_count"),
        key_dim=keys.size("ssm.state_size"),
        value_heads=heads,
        value_dim=_divided(keys, inner, heads),
        rows=_rows(keys),
    )
    return _mixed(keys, [linear], recurrent)


def _minimax_01(keys: Keys) -> Built:
    recurrent, heads = _recurrent_layers(keys, interval=8), read_heads(keys)
    linear = [layer for layer in range(keys.layers) if recurrent[layer]]
    return _mixed(keys, [lightning_component(linear, heads.query[0], heads.key_width)], recurrent)


def _recurrent_layers(keys: Keys, interval: int) -> list[bool]:
    """Return which layers are recurrent: as listed, else all but each n-th."""
    key = "attention.recurrent_layers"
    if keys.raw(key) is not None:
        return [bool(flag) for flag in keys.per_layer(key)]
    every = keys.size("full_attention_interval", interval)
    return [layer < keys.layers and (layer + 1) % every != 0 for layer in range(keys.blocks)]


def _mixed(keys: Keys, states: list[Component], recurrent: Sequence[bool]) -> Built:
    """Return recurrent layers with full attention in the others."""
    heads = read_heads(keys)
    full = full_attention(heads, (layer for layer in range(keys.layers) if not recurrent[layer]))
    return [*states, *full], full_attention(heads, drafts(keys)), ()


def _without_heads(keys: Keys) -> list[int]:
    kv = keys.per_layer("attention.head_count_kv")
    return [layer for layer in range(keys.layers) if not kv[layer]]


def _hybrid_by_heads(keys: Keys) -> Built:
    """Build layers that are recurrent if they have no KV heads; LFM2's others may slide, all of them."""
    recurrent = _without_heads(keys)
    state = {"jamba": _mamba1, "granitehybrid": _mamba2}.get(keys.architecture, _short_conv)(keys, recurrent)
    attention = [layer for layer in range(keys.layers) if layer not in set(recurrent)]
    window = keys.whole("attention.sliding_window", 0) if keys.architecture == "lfm2" else 0
    heads = read_heads(keys)
    if window:
        return [state, *heads.components("sliding_window", attention, Growth("window", window), True)], [], ()
    return [state, *full_attention(heads, attention)], [], ()


def _kda(keys: Keys) -> Built:
    recurrent = _without_heads(keys)
    attention = [layer for layer in range(keys.layers) if layer not in set(recurrent)]
    heads, width = keys.per_layer("attention.head_count")[0], keys.size("kda.head_dim")
    states = kda_component(recurrent, heads, width, _rows(keys))
    return [states, *latent_layers(keys, attention)], latent_layers(keys, drafts(keys)), ()


def _nemotron_h(keys: Keys) -> Built:
    """Build a mixer where a layer has no feed-forward network: attention if it has KV heads, else Mamba-2."""
    heads, inner = read_heads(keys), keys.per_layer("feed_forward_length")
    mixing = [layer for layer in range(keys.layers) if not inner[layer]]
    states = _mamba2(keys, [layer for layer in mixing if not heads.kv[layer]])
    return [states, *full_attention(heads, mixing)], full_attention(heads, drafts(keys)), ()


def _falcon_h1(keys: Keys) -> Built:
    layers = range(keys.layers)
    return [*full_attention(read_heads(keys), layers), _mamba2(keys, layers)], [], ()


def _mamba(keys: Keys) -> Built:
    build = _mamba1 if keys.architecture == "mamba" else _mamba2
    return [build(keys, range(keys.layers))], [], ()


def _mamba1(keys: Keys, layers: Sequence[int]) -> Component:
    return mamba1_component(layers, keys.size("ssm.inner_size"), keys.size("ssm.state_size"), _rows(keys))


def _mamba2(keys: Keys, layers: Sequence[int]) -> Component:
    inner, heads = keys.size("ssm.inner_size"), keys.size("ssm.time_step_rank")
    return mamba2_component(
        layers,
        heads,
        _divided(keys, inner, heads),
        groups=keys.size("ssm.group_count"),
        state_dim=keys.size("ssm.state_size"),
        rows=_rows(keys),
    )


def _short_conv(keys: Keys, layers: Sequence[int]) -> Component:
    rows = _past_inputs(keys, "shortconv.l_cache")
    return short_conv_component(layers, keys.size("embedding_length"), rows)


def _rows(keys: Keys) -> int:
    return _past_inputs(keys, "ssm.conv_kernel")


def _past_inputs(keys: Keys, key: str) -> int:
    kernel = keys.size(key)
    if kernel < 2:
        raise keys.refuse(key, f"a kernel of {kernel} is no convolution over past inputs")
    return kernel - 1


def _divided(keys: Keys, inner: int, heads: int) -> int:
    if inner % heads:
        raise keys.refuse("ssm.inner_size", f"{inner} is no multiple of the {heads} heads")
    return inner // heads


BUILDERS: Mapping[str, Callable[[Keys], Built]] = {
    **dict.fromkeys(("rwkv6", "rwkv6qwen2", "rwkv7", "arwkv7"), _rwkv),
    **dict.fromkeys(("qwen3next", "qwen35", "qwen35moe"), _deltanet),
    **dict.fromkeys(("kimi-linear", "kimi-k3", "bailingmoe3"), _kda),
    **dict.fromkeys(("granitehybrid", "jamba", "lfm2", "lfm2moe"), _hybrid_by_heads),
    **dict.fromkeys(("nemotron_h", "nemotron_h_moe"), _nemotron_h),
    **dict.fromkeys(("mamba", "mamba2"), _mamba),
    "falcon-h1": _falcon_h1,
    "minimax-01": _minimax_01,
}
"""What builds the shape of each architecture."""
