"""Encoder-decoder models: T5, BART, Whisper."""

from kvcalc.parameters.blocks.attention import grouped_query
from kvcalc.parameters.blocks.feedforward import feed_forward
from kvcalc.parameters.blocks.frame import frame
from kvcalc.parameters.blocks.tensors import norm, vector, whole
from kvcalc.parameters.counts import Parameters, Part
from kvcalc.parameters.families.decoder import is_tied
from kvcalc.shapes.config import Config

_T5_BUCKETS = 32  # relative positions that T5 tells apart, its class's default


def _encoder(parts: list[Part]) -> list[Part]:
    """Move parts of encoder layers out of the decoder's layer stack."""
    return [part.moved_to("encoder") for part in parts]


def build_t5(config: Config) -> Parameters:
    """Build T5 and its relatives with gated networks."""
    hidden, heads, dim = config.integer("d_model"), config.size("num_heads"), config.integer("d_kv")
    inner, layers = config.integer("d_ff"), config.layer_count("num_layers")
    gated = str(config.own("feed_forward_proj", default="relu")).startswith("gated")
    buckets = config.integer("relative_attention_num_buckets", default=_T5_BUCKETS)
    stacks = (layers, config.layer_count("num_decoder_layers", default=layers))
    parts: list[Part] = []
    for count, encodes in zip(stacks, (True, False), strict=True):
        own = tuple(range(count))
        stack: list[Part] = []
        for prefix in ("SelfAttention",) if encodes else ("SelfAttention", "EncDecAttention"):
            stack += grouped_query(hidden, heads, heads, dim, dim, own, prefix=prefix)
        stack += feed_forward(hidden, inner, own, gated=gated, prefix="DenseReluDense")
        stack += norm("layer_norm", (2 if encodes else 3) * hidden, own)
        stack += vector("attention", "relative_attention_bias", buckets * heads, split="columns")
        stack += norm("final_layer_norm", hidden)
        parts += _encoder(stack) if encodes else stack
    tied = is_tied(config, True)
    parts += frame(config.integer("vocab_size"), hidden, tied=tied, final_norm=False)
    return Parameters(tuple(parts), stacks[1], tied=tied)


def _layers(config: Config, side: str, key_bias: bool) -> list[Part]:
    """Return the layers of one side of BART or Whisper: biases everywhere, Whisper's keys excepted."""
    hidden = config.integer("d_model")
    heads, inner = config.size(f"{side}_attention_heads"), config.integer(f"{side}_ffn_dim")
    own, dim = tuple(range(config.layer_count(f"{side}_layers"))), hidden // heads
    kinds = ("self_attn",) if side == "encoder" else ("self_attn", "encoder_attn")
    parts: list[Part] = []
    for prefix in kinds:
        attention = grouped_query(
            hidden, heads, heads, dim, dim, own, bias=True, out_bias=True, prefix=prefix
        )
        parts += [part for part in attention if key_bias or not part.module.endswith("k_proj.bias")]
    parts += feed_forward(hidden, inner, own, gated=False, bias=True)
    return parts + norm("layer_norms", (len(kinds) + 1) * hidden, own, bias=True)


def build_bart(config: Config) -> Parameters:
    """Build BART."""
    hidden = config.integer("d_model")
    # BART's tables of positions start with two rows for padding.
    rows = config.integer("max_position_embeddings", default=1024) + 2
    edge = vector("embedding", "embed_positions", rows * hidden)
    edge += norm("layernorm_embedding", hidden, bias=True)
    parts = _encoder(_layers(config, "encoder", key_bias=True) + edge)
    parts += _layers(config, "decoder", key_bias=True) + edge
    parts += frame(config.integer("vocab_size"), hidden, tied=True, final_norm=False)
    return Parameters(tuple(parts), config.layer_count("decoder_layers"), tied=True)


def build_whisper(config: Config) -> Parameters:
    """Build Whisper."""
    hidden = config.integer("d_model")
    encoder = _layers(config, "encoder", key_bias=False) + norm("layer_norm", hidden, bias=True)
    for inputs in (config.integer("num_mel_bins"), hidden):
        encoder += whole("other", "conv", hidden, 3 * inputs, bias=True)
    encoder += vector("other", "embed_positions", config.integer("max_source_positions") * hidden)
    parts = _encoder(encoder) + _layers(config, "decoder", key_bias=False)
    parts += vector("embedding", "embed_positions", config.integer("max_target_positions") * hidden)
    parts += frame(config.integer("vocab_size"), hidden, tied=True, norm_bias=True, split="replicated")
    return Parameters(tuple(parts), config.layer_count("decoder_layers"), tied=True)


BUILDERS = {"t5": build_t5, "bart": build_bart, "whisper": build_whisper}
