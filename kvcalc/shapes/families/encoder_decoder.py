"""Encoder-decoder models: the decoder's own attention grows, cross-attention keeps the encoder's output.

Kind ``cross_attention``: one key and value per head and encoder token, written once.  Its size is the
longest input that the checkpoint declares; engines may budget another number of encoder tokens.
"""

from kvcalc.shapes.components import Growth, ModelShape
from kvcalc.shapes.config import Config
from kvcalc.shapes.families.attention import Dimensions, shape_of

MODEL_TYPES = ("whisper", "bart", "mbart", "t5", "mt5", "umt5")

T5_POSITIONS = 512
"""Input tokens where a T5 checkpoint declares none: the length of its pre-training and the default
of its configuration class (Raffel et al. 2020; transformers, `T5Config.n_positions`)."""


def _shape(config: Config, dimensions: Dimensions, encoder_tokens: int, *notes: str) -> ModelShape:
    layers = range(dimensions.layers)
    components = [
        dimensions.component("full_attention", layers),
        dimensions.component("cross_attention", layers, Growth("constant", encoder_tokens)),
    ]
    return shape_of(config, dimensions, components, notes=notes)


def _decoder(config: Config) -> Dimensions:
    """Read the decoder of Whisper or BART, whose heads share out the model width."""
    config.own("encoder_attention_heads")  # the encoder keeps nothing of its own
    hidden = config.size("d_model")
    heads = config.size("decoder_attention_heads")
    if hidden % heads:
        raise config.refuse("decoder_attention_heads", f"{heads} heads do not divide a width of {hidden}")
    width = hidden // heads
    return Dimensions(config.layer_count("decoder_layers"), hidden, heads, heads, width, width)


def _build_t5(config: Config) -> ModelShape:
    heads, width = config.size("num_heads"), config.size("d_kv")
    layers = config.layer_count("num_decoder_layers", "num_layers")
    dimensions = Dimensions(layers, config.size("d_model"), heads, heads, width, width)
    positions = config.size("n_positions", default=T5_POSITIONS)
    note = f"cross-attention is sized for {positions} input tokens; T5 sets no limit"
    return _shape(config, dimensions, positions, note)


def build(config: Config) -> ModelShape:
    """Build the shape of an encoder-decoder model."""
    if config.model_type.endswith("t5"):
        return _build_t5(config)
    source = ("max_source_positions", "max_position_embeddings")
    return _shape(config, _decoder(config), config.size(*source))
