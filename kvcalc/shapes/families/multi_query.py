"""Families with a switch for multi-query attention: one KV head, or as many as a second key says."""

from kvcalc.shapes.components import ModelShape
from kvcalc.shapes.config import Config
from kvcalc.shapes.families.attention import KV_HEADS, QUERY_HEADS, full_attention_shape, read_dimensions

MODEL_TYPES = ("chatglm", "falcon", "gpt_bigcode", "RefinedWeb", "RefinedWebModel")


def kv_heads(config: Config) -> int:
    """Return the KV heads that the switches ask for.

    ChatGLM counts its groups in `multi_query_group_num`.  Falcon's new decoder (40B, 180B) shares
    each KV head among a group of query heads although it also sets `multi_query`; transformers
    broadcasts them in its cache, engines do not.
    """
    query_heads = config.size(*QUERY_HEADS)
    grouped = config.integer("multi_query_group_num", *KV_HEADS, default=0)
    if config.flag("new_decoder_architecture"):
        return grouped or query_heads
    if config.flag("multi_query_attention"):
        return grouped or 1
    return 1 if config.flag("multi_query", default=_multi_query_by_default(config)) else query_heads


def _multi_query_by_default(config: Config) -> bool:
    """Whether transformers' config class takes an absent `multi_query` as true."""
    return config.model_type in ("falcon", "gpt_bigcode")


def build(config: Config) -> ModelShape:
    """Build the shape of full attention with the KV heads that the switches give."""
    return full_attention_shape(config, read_dimensions(config, kv_heads(config)))
