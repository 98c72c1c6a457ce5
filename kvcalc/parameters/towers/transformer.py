"""The plain transformer encoder that most towers are, and the projectors behind them."""

from dataclasses import dataclass, replace
from itertools import pairwise

from kvcalc.errors import UnsupportedModelError
from kvcalc.parameters.blocks.tensors import linear, vector
from kvcalc.parameters.counts import Name, Part
from kvcalc.shapes.config import Config

_MLP_RATIO = 4  # of the width of a network to that of its layer, where a section says nothing
_MOST_WIDENED = 100  # no tower's network is that many times wider than its layer

TOWER: Name = "vision_tower"


@dataclass(frozen=True)
class Encoder:
    """Sizes of an encoder; `shift` is whether its norms have one, `gated` its network a gate."""

    hidden: int
    inner: int
    layers: int
    shift: bool = True
    bias: bool = True
    key_bias: bool = True
    gated: bool = False
    mlp_bias: bool | None = None  # None: as `bias`
    heads: int = 1  # tensor parallelism cuts between heads, or not at all

    def parts(self) -> list[Part]:
        """Return all layers: attention, network, two norms."""
        n, h, inner = self.layers, self.hidden, self.inner
        mlp_bias = self.bias if self.mlp_bias is None else self.mlp_bias
        parts: list[Part] = []
        for name in ("q", "k", "v", "out"):
            biased = self.bias and (name != "k" or self.key_bias)
            parts += self._matrix(name, h, h, biased)
        for name in ("gate", "up") if self.gated else ("up",):
            parts += self._matrix(name, inner, h, mlp_bias)
        parts += self._matrix("down", h, inner, mlp_bias)
        return parts + vector(TOWER, "tower.norms", 2 * h * (1 + self.shift), copies=n)

    def _matrix(self, name: str, outputs: int, inputs: int, bias: bool) -> list[Part]:
        return linear(
            TOWER,
            f"tower.{name}",
            outputs,
            inputs,
            bias=bias,
            copies=self.layers,
            split="whole_heads",
            heads=self.heads,
        )


def kept_whole(parts: list[Part]) -> list[Part]:
    """Return parts that engines do not cut but load on every rank."""
    return [replace(part, split="replicated") for part in parts]


def layer_norm(width: int, count: int = 1, shift: bool = True) -> list[Part]:
    """Return `count` norms over `width` channels."""
    return vector(TOWER, "tower.norm", width * (1 + shift) * count)


def patches(hidden: int, patch: int, *, bias: bool, frames: int = 1, colours: int = 3) -> list[Part]:
    """Return the convolution that turns an image patch (of `frames` frames) into one token."""
    inputs = colours * frames * patch * patch
    return linear(TOWER, "tower.patch", hidden, inputs, bias=bias, split="replicated")


def table(rows: int, width: int) -> list[Part]:
    """Return a learned table, of positions for example."""
    return vector(TOWER, "tower.table", rows * width)


def perceptron(*widths: int, bias: bool = True) -> list[Part]:
    """Return a chain of linear maps through `widths`."""
    return [
        part
        for inputs, outputs in pairwise(widths)
        for part in linear(TOWER, "tower.projector", outputs, inputs, bias=bias)
    ]


def outer(config: Config) -> Config:
    """Return the top level of a config, without looking into the language model's part."""
    whole = Config(config.top, config.where)
    whole.text = config.top
    return whole


def section(config: Config, name: str) -> Config:
    """Return a section of the whole checkpoint's config, or raise an error that names it."""
    value = config.top.get(name)
    if not isinstance(value, dict):
        raise UnsupportedModelError(
            f"{config.where}: {name}: missing (model_type {config.outer_model_type!r} needs it)"
        )
    part = Config({"model_type": config.outer_model_type}, f"{config.where}: {name}")
    part.text = value
    return part


def override(c: Config, **values: int) -> Config:
    """Return a section in which some keys have other values."""
    changed = Config(c.top, c.where)
    changed.text = {**c.text, **values}
    return changed


def encoder(c: Config, **features: bool) -> Encoder:
    """Read the sizes of an encoder under their usual names."""
    hidden = c.integer("hidden_size", "embed_dim", "d_model")
    inner = c.integer("intermediate_size", "encoder_ffn_dim", default=0)
    ratio = c.own("mlp_ratio", default=_MLP_RATIO)
    if not isinstance(ratio, (int, float)) or not 0 < ratio < _MOST_WIDENED:
        raise c.refuse("mlp_ratio", f"{ratio!r:.60} is no sensible ratio")
    return Encoder(
        hidden,
        inner or int(hidden * ratio),
        c.integer("num_hidden_layers", "depth", "encoder_layers"),
        heads=c.size("num_attention_heads", "num_heads", "encoder_attention_heads", "attention_heads"),
        **features,
    )
