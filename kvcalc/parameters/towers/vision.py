"""Vision towers and their projectors."""

from collections.abc import Callable

from kvcalc.parameters.counts import Part
from kvcalc.parameters.towers.transformer import (
    encoder,
    layer_norm,
    override,
    patches,
    perceptron,
    section,
    table,
)
from kvcalc.shapes.config import Config

Tower = Callable[[Config, int], list[Part]]


def _siglip(c: Config) -> list[Part]:
    e, patch = encoder(c), c.integer("patch_size")
    positions = (c.integer("image_size") // patch) ** 2
    parts = e.parts() + patches(e.hidden, patch, bias=True) + table(positions, e.hidden)
    return parts + layer_norm(e.hidden)


def gemma_3(config: Config, text: int) -> list[Part]:
    """SigLIP without its pooling head, a norm and one matrix behind it."""
    c = section(config, "vision_config")
    width = c.integer("hidden_size")
    return _siglip(c) + perceptron(width, text, bias=False) + layer_norm(width, shift=False)


def _clip(c: Config) -> list[Part]:
    e, patch = encoder(c), c.integer("patch_size")
    positions = (c.integer("image_size") // patch) ** 2 + 1  # one for the class token
    parts = e.parts() + patches(e.hidden, patch, bias=False) + table(positions + 1, e.hidden)
    return parts + layer_norm(e.hidden, count=2)


def _pixtral(c: Config) -> list[Part]:
    e = encoder(c, shift=False, bias=False, gated=True)
    parts = e.parts() + patches(e.hidden, c.integer("patch_size"), bias=False)
    return parts + layer_norm(e.hidden, shift=False)


def llava(config: Config, text: int) -> list[Part]:
    """CLIP or Pixtral, and a two-layer projector."""
    c = section(config, "vision_config")
    kind = c.own("model_type")
    if kind not in ("clip_vision_model", "pixtral"):
        raise config.refuse("vision_config", f"a {kind!r} tower is not understood")
    tower = _clip(c) if kind == "clip_vision_model" else _pixtral(c)
    bias = bool(config.top.get("multimodal_projector_bias", True))
    return tower + perceptron(c.integer("hidden_size"), text, text, bias=bias)


def mistral_3(config: Config, text: int) -> list[Part]:
    """Pixtral, a merger of neighbouring patches, and a two-layer projector."""
    c = section(config, "vision_config")
    width, side = c.integer("hidden_size"), int(config.top.get("spatial_merge_size", 2))
    bias = bool(config.top.get("multimodal_projector_bias", False))
    parts = _pixtral(c) + layer_norm(width, shift=False)
    parts += perceptron(side * side * width, width, bias=False)
    return parts + perceptron(width, text, text, bias=bias)


def _merged(c: Config, width: int) -> int:
    return width * c.integer("spatial_merge_size", default=2) ** 2


def qwen_2(config: Config, text: int) -> list[Part]:
    """Qwen2-VL: a plain encoder over pairs of frames, and a merger of four patches."""
    c = section(config, "vision_config")
    width = c.integer("embed_dim")
    hidden = _merged(c, width)
    # The vision section calls the language model's width `hidden_size`.
    e = encoder(override(c, hidden_size=width))
    parts = e.parts() + _qwen_patches(c, width, bias=False)
    return parts + layer_norm(width) + perceptron(hidden, hidden, text)


def _qwen_patches(c: Config, width: int, bias: bool) -> list[Part]:
    return patches(
        width, c.integer("patch_size"), bias=bias, frames=c.integer("temporal_patch_size", default=2)
    )


def qwen_2_5(config: Config, text: int) -> list[Part]:
    """Qwen2.5-VL: gated networks and norms without shift."""
    c = section(config, "vision_config")
    e = encoder(c, shift=False, gated=True)
    hidden = _merged(c, e.hidden)
    parts = e.parts() + _qwen_patches(c, e.hidden, bias=False)
    return parts + layer_norm(e.hidden, shift=False) + perceptron(hidden, hidden, text)


def qwen_3(config: Config, text: int) -> list[Part]:
    """Qwen3-VL and Qwen3.5: learned positions, and mergers that feed early decoder layers."""
    c = section(config, "vision_config")
    e = encoder(c)
    hidden, out = _merged(c, e.hidden), c.integer("out_hidden_size", default=text)
    parts = e.parts() + _qwen_patches(c, e.hidden, bias=True)
    parts += table(c.integer("num_position_embeddings"), e.hidden)
    parts += layer_norm(e.hidden) + perceptron(hidden, hidden, out)
    for _ in c.own("deepstack_visual_indexes") or ():
        parts += layer_norm(hidden) + perceptron(hidden, hidden, out)
    return parts


def kimi(config: Config, text: int) -> list[Part]:
    """MoonViT and its patch merger, as Kimi K2.5 has them."""
    c = section(config, "vision_config")
    width = c.integer("vt_hidden_size")
    names = {"vt_num_hidden_layers": "num_hidden_layers", "vt_intermediate_size": "intermediate_size"}
    sizes = {new: c.integer(old) for old, new in names.items()} | {"hidden_size": width}
    e = encoder(override(c, **sizes))
    side = c.own("merge_kernel_size", default=[2, 2])
    positions = c.integer("init_pos_emb_height") * c.integer("init_pos_emb_width")
    parts = e.parts() + patches(width, c.integer("patch_size"), bias=True) + table(positions, width)
    hidden = width * side[0] * side[1]
    return parts + layer_norm(width, count=2) + perceptron(hidden, hidden, text)


def paddle(config: Config, text: int) -> list[Part]:
    """SigLIP as in PaddleOCR-VL, with a norm and a merger of four patches."""
    c = section(config, "vision_config")
    width = c.integer("hidden_size")
    hidden = _merged(c, width)
    return _siglip(c) + layer_norm(width) + perceptron(hidden, hidden, text)


TOWERS: dict[str, Tower] = {
    "gemma3": gemma_3,
    "llava": llava,
    "mistral3": mistral_3,
    "ministral3": mistral_3,
    "qwen2_vl": qwen_2,
    "qwen2_5_vl": qwen_2_5,
    "qwen3_vl": qwen_3,
    "qwen3_vl_moe": qwen_3,
    "qwen3_5": qwen_3,
    "qwen3_5_moe": qwen_3,
    "kimi_k25": kimi,
    "paddleocr_vl": paddle,
}
