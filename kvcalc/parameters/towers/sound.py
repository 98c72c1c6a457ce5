"""Audio towers: Whisper's encoder and what is built on it."""

from collections.abc import Callable

from kvcalc.parameters.blocks.tensors import linear, vector
from kvcalc.parameters.counts import Part
from kvcalc.parameters.towers.transformer import (
    TOWER,
    encoder,
    kept_whole,
    layer_norm,
    perceptron,
    section,
    table,
)
from kvcalc.shapes.config import Config

Tower = Callable[[Config, int], list[Part]]


def whisper_encoder(c: Config, *, positions: bool = True) -> list[Part]:
    """Return Whisper's encoder: two convolutions over mel bands, positions, layers, a norm."""
    e = encoder(c, key_bias=False)
    parts = e.parts() + layer_norm(e.hidden)
    for inputs in (c.integer("num_mel_bins"), e.hidden):
        parts += linear(TOWER, "tower.conv", e.hidden, 3 * inputs, bias=True)
    return parts + (table(c.integer("max_source_positions"), e.hidden) if positions else [])


def qwen_2_audio(config: Config, text: int) -> list[Part]:
    """Whisper's encoder and one matrix."""
    c = section(config, "audio_config")
    return kept_whole(whisper_encoder(c) + perceptron(c.integer("d_model"), text))


def voxtral(config: Config, text: int) -> list[Part]:
    """Whisper's encoder, four frames joined, and a two-layer projector."""
    c = section(config, "audio_config")
    joined = c.integer("intermediate_size")
    return whisper_encoder(c) + perceptron(joined, text, text, bias=False)


def qwen_3_asr(config: Config, text: int) -> list[Part]:
    """Three strided convolutions over the spectrogram, an encoder, and a two-layer projector."""
    thinker = config.top.get("thinker_config")
    inner = Config(thinker if isinstance(thinker, dict) else config.top, config.where)
    c = section(inner, "audio_config")
    e, channels = encoder(c), c.integer("downsample_hidden_size")
    parts = e.parts() + layer_norm(e.hidden)
    parts += linear(TOWER, "tower.conv", channels, 9, bias=True)
    parts += linear(TOWER, "tower.conv", channels, 9 * channels, bias=True, copies=2)
    bands = c.integer("num_mel_bins")
    for _ in range(3):
        bands = (bands + 1) // 2
    parts += linear(TOWER, "tower.conv_out", e.hidden, channels * bands)
    return parts + perceptron(e.hidden, e.hidden, c.integer("output_dim"))


def gemma_4_audio(config: Config, text: int) -> list[Part]:
    """Gemma 4's Conformer: two networks around local attention and a light convolution."""
    c = section(config, "audio_config")
    h, n = c.integer("hidden_size"), c.integer("num_hidden_layers")
    dim, inner = h // c.size("num_attention_heads"), 4 * h
    out = c.integer("output_proj_dims", default=1536)
    first, second = c.integers("subsampling_conv_channels", 2) or (128, 32)
    parts: list[Part] = []
    for outputs, inputs, count in ((inner, h, 2), (h, inner, 2), (h, h, 6), (2 * h, h, 1)):
        parts += linear(TOWER, "tower.layer", outputs, inputs, copies=count * n)
    kernel = c.integer("conv_kernel_size", default=5)
    parts += vector(TOWER, "tower.vectors", (9 + kernel) * h + dim, copies=n)
    parts += linear(TOWER, "tower.conv", first, 9) + linear(TOWER, "tower.conv", second, 9 * first)
    parts += layer_norm(first + second, shift=False)
    parts += linear(TOWER, "tower.input", h, first // 4 * second)
    return parts + perceptron(h, out) + perceptron(out, text, bias=False)


TOWERS: dict[str, Tower] = {
    "qwen2_audio": qwen_2_audio,
    "voxtral": voxtral,
    "qwen3_asr": qwen_3_asr,
}
