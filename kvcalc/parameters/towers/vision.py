"""Vision towers and their projectors."""

from collections.abc import Callable
from dataclasses import replace

from kvcalc.parameters.blocks.tensors import linear, vector
from kvcalc.parameters.counts import Part
from kvcalc.parameters.towers.sound import gemma_4_audio
from kvcalc.parameters.towers.transformer import (
    TOWER,
    encoder,
    kept_whole,
    layer_norm,
    outer,
    override,
    patches,
    perceptron,
    section,
    table,
)
from kvcalc.shapes.config import Config

_QWEN_3_POSITIONS = 2304  # 48 x 48, the model class's default
_QWEN_3_DEEP = (8, 16, 24)  # layers of Qwen3-VL's tower that feed the decoder, the class's default
_GEMMA_4_POSITIONS = 10_240  # rows of each of two tables, the model class's default
_MLLAMA_ASPECT_RATIOS = 9  # eight supported ones and none

Tower = Callable[[Config, int], list[Part]]


def _siglip(c: Config) -> list[Part]:
    e, patch = encoder(c), c.size("patch_size")
    positions = (c.integer("image_size") // patch) ** 2
    parts = e.parts() + patches(e.hidden, patch, bias=True) + table(positions, e.hidden)
    return parts + layer_norm(e.hidden)


def gemma_3(config: Config, text: int) -> list[Part]:
    """SigLIP without its pooling head, a norm and one matrix behind it."""
    c = section(config, "vision_config")
    width = c.integer("hidden_size")
    return _siglip(c) + perceptron(width, text, bias=False) + layer_norm(width, shift=False)


def _clip(c: Config) -> list[Part]:
    e, patch = encoder(c), c.size("patch_size")
    positions = (c.integer("image_size") // patch) ** 2 + 1  # one for the class token
    parts = e.parts() + patches(e.hidden, patch, bias=False) + table(positions + 1, e.hidden)
    return parts + layer_norm(e.hidden, count=2)


_CLIP_LARGE_336 = {
    "hidden_size": 1024,
    "intermediate_size": 4096,
    "num_hidden_layers": 24,
    "num_attention_heads": 16,
    "image_size": 336,
    "patch_size": 14,
}
_BY_NAME = {"openai/clip-vit-large-patch14-336": _CLIP_LARGE_336}
"""Published towers that configs name without giving their sizes."""


def _named(config: Config, name: object) -> Config:
    sizes = _BY_NAME.get(str(name))
    if sizes is None:
        raise config.refuse("mm_vision_tower", f"the sizes of {name!r} are not known")
    return Config(sizes, f"{config.where}: {name}")


def _pixtral(c: Config) -> list[Part]:
    e = encoder(c, shift=False, bias=False, gated=True)
    parts = e.parts() + patches(e.hidden, c.size("patch_size"), bias=False)
    return parts + layer_norm(e.hidden, shift=False)


def llava(config: Config, text: int) -> list[Part]:
    """CLIP or Pixtral, and a two-layer projector."""
    if config.top.get("mm_vision_tower"):
        c = _named(config, config.top["mm_vision_tower"])
        return _clip(c) + perceptron(c.integer("hidden_size"), text, text)
    c = section(config, "vision_config")
    kind = c.own("model_type")
    if kind not in ("clip_vision_model", "pixtral"):
        raise config.refuse("vision_config", f"a {kind!r} tower is not understood")
    tower = _clip(c) if kind == "clip_vision_model" else _pixtral(c)
    bias = outer(config).flag("multimodal_projector_bias", default=True)
    return tower + perceptron(c.integer("hidden_size"), text, text, bias=bias)


def mistral_3(config: Config, text: int) -> list[Part]:
    """Pixtral, a merger of neighbouring patches, and a two-layer projector."""
    c = section(config, "vision_config")
    whole = outer(config)
    width, side = c.integer("hidden_size"), whole.integer("spatial_merge_size", default=2)
    bias = whole.flag("multimodal_projector_bias")
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
    return patches(width, c.size("patch_size"), bias=bias, frames=c.integer("temporal_patch_size", default=2))


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
    parts += table(c.integer("num_position_embeddings", default=_QWEN_3_POSITIONS), e.hidden)
    parts += layer_norm(e.hidden) + perceptron(hidden, hidden, out)
    deep = c.integers("deepstack_visual_indexes")
    if deep is None and config.outer_model_type.startswith("qwen3_vl"):
        deep = list(_QWEN_3_DEEP)
    for _ in deep or ():
        parts += layer_norm(hidden) + perceptron(hidden, hidden, out)
    return parts


def kimi(config: Config, text: int) -> list[Part]:
    """MoonViT and its patch merger, as Kimi K2.5 has them."""
    c = section(config, "vision_config")
    width = c.integer("vt_hidden_size")
    names = {
        "vt_num_hidden_layers": "num_hidden_layers",
        "vt_intermediate_size": "intermediate_size",
        "vt_num_attention_heads": "num_attention_heads",
    }
    sizes = {new: c.integer(old) for old, new in names.items()} | {"hidden_size": width}
    e = encoder(override(c, **sizes))
    side = c.integers("merge_kernel_size", 2) or [2, 2]
    positions = c.integer("init_pos_emb_height") * c.integer("init_pos_emb_width")
    parts = e.parts() + patches(width, c.size("patch_size"), bias=True) + table(positions, width)
    hidden = width * side[0] * side[1]
    return parts + layer_norm(width, count=2) + perceptron(hidden, hidden, text)


def paddle(config: Config, text: int) -> list[Part]:
    """SigLIP as in PaddleOCR-VL, with a norm and a merger of four patches."""
    c = section(config, "vision_config")
    width = c.integer("hidden_size")
    hidden = _merged(c, width)
    return _siglip(c) + layer_norm(width) + kept_whole(perceptron(hidden, hidden, text))


def gemma_4(config: Config, text: int) -> list[Part]:
    """Gemma 4: an encoder built like its decoder, and one matrix; a second tower hears."""
    c = section(config, "vision_config")
    n, width, inner = c.integer("num_hidden_layers"), c.integer("hidden_size"), c.integer("intermediate_size")
    heads = c.size("num_attention_heads")
    dim = c.integer("head_dim", default=width // heads)
    parts: list[Part] = []
    for outputs, inputs in [(heads * dim, width)] * 3 + [(width, heads * dim), (width, inner)]:
        parts += linear(TOWER, "tower.layer", outputs, inputs, copies=n)
    parts += linear(TOWER, "tower.layer", 2 * inner, width, copies=n)
    parts += vector(TOWER, "tower.norms", 4 * width + 2 * dim, copies=n)
    parts += patches(width, c.size("patch_size"), bias=False)
    parts += table(2 * c.integer("position_embedding_size", default=_GEMMA_4_POSITIONS), width)
    parts += perceptron(width, text, bias=False)
    parts += gemma_4_audio(config, text) if config.top.get("audio_config") else []
    return kept_whole(parts)


def mllama(config: Config, text: int) -> list[Part]:
    """Llama 3.2 Vision: a local and a gated global encoder over image tiles."""
    c = section(config, "vision_config")
    e = encoder(c, bias=False, mlp_bias=True)
    width, tiles = e.hidden, c.integer("max_num_tiles", default=4)
    globals_ = c.integer("num_global_layers", default=8)
    rows = (c.integer("image_size") // c.size("patch_size")) ** 2 + 1
    parts = e.parts() + replace(e, layers=globals_).parts()
    parts += vector(TOWER, "tower.gates", 2 * globals_ + 3)
    parts += patches(width, c.size("patch_size"), bias=False) + layer_norm(width, count=2)
    parts += table(1 + rows, width)  # the class token, then positions
    parts += table(_MLLAMA_ASPECT_RATIOS * tiles * (rows + 2), width)
    return parts + perceptron(c.integer("vision_output_dim"), text)


def phi_3(config: Config, text: int) -> list[Part]:
    """CLIP, four patches joined with separators, and a two-layer projector."""
    processor = config.top.get("img_processor")
    c = _named(config, processor.get("model_name") if isinstance(processor, dict) else None)
    joined = 4 * c.integer("hidden_size")
    parts = _clip(c) + vector(TOWER, "tower.separators", 2 * joined)
    return parts + kept_whole(perceptron(joined, text, text))


def intern_vl(config: Config, text: int) -> list[Part]:
    """InternViT, whose layers scale their outputs, and a merger of four patches."""
    c = section(config, "vision_config")
    if c.flag("qk_normalization") or c.own("norm_type") != "layer_norm":
        raise config.refuse("vision_config", "InternViT with normalized queries is not understood")
    e, patch = encoder(c), c.size("patch_size")
    positions = (c.integer("image_size") // patch) ** 2 + 1
    ratio = config.top.get("downsample_ratio", 0.5)
    if ratio != 0.5:
        raise config.refuse("downsample_ratio", f"{ratio!r:.60} is not understood, only 0.5 is")
    joined = 4 * e.hidden
    parts = e.parts() + vector(TOWER, "tower.scales", 2 * e.hidden * e.layers)
    parts += patches(e.hidden, patch, bias=True) + table(positions + 1, e.hidden)
    return parts + layer_norm(joined) + kept_whole(perceptron(joined, text, text))


def glm_4(config: Config, text: int) -> list[Part]:
    """GLM-4V: a gated encoder, a strided convolution, and a gated merger."""
    c = section(config, "vision_config")
    out, inner = c.integer("out_hidden_size"), c.integer("intermediate_size")
    bias = c.flag("attention_bias")
    # The layers' networks are as wide as the output; the section's inner width is the merger's.
    e = encoder(override(c, intermediate_size=out), shift=False, bias=bias, gated=True, mlp_bias=False)
    side = c.integer("spatial_merge_size", default=2)
    parts = e.parts() + _qwen_patches(c, e.hidden, bias=True) + layer_norm(e.hidden, 2, shift=False)
    parts += table((c.integer("image_size") // c.size("patch_size")) ** 2, e.hidden)
    parts += linear(TOWER, "tower.downsample", out, side * side * e.hidden, bias=True)
    parts += perceptron(out, out, bias=False) + layer_norm(out)
    return parts + perceptron(out, 2 * inner, bias=False) + perceptron(inner, out, bias=False)


def minimax(config: Config, text: int) -> list[Part]:
    """CLIP without positions over pairs of frames, a projector, and a merger of four patches."""
    c = section(config, "vision_config")
    e = encoder(c)
    how = outer(config).section("img_token_compression_config") or outer(config)
    side = how.integer("spatial_merge_size", default=2)
    middle = outer(config).integer("projector_hidden_size", default=text)
    parts = e.parts() + layer_norm(e.hidden)
    frames = how.integer("temporal_patch_size", default=2)
    parts += patches(e.hidden, c.size("patch_size"), bias=False, frames=frames)
    return parts + perceptron(e.hidden, middle, text) + perceptron(side * side * text, middle, text)


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
    "gemma4": gemma_4,
    "phi3_v": phi_3,
    "internvl_chat": intern_vl,
    "glm4v": glm_4,
    "minimax_m3_vl": minimax,
    "mllama": mllama,
}
