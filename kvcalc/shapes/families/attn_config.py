"""MPT and DBRX: ordinary attention whose settings sit in a section `attn_config`."""

from kvcalc.shapes.components import ModelShape
from kvcalc.shapes.config import Config
from kvcalc.shapes.families.attention import QUERY_HEADS, full_attention_shape, read_dimensions

MODEL_TYPES = ("dbrx", "mpt")


def build(config: Config) -> ModelShape:
    """Build the shape of full attention, its KV heads from `attn_config`."""
    section = config.section("attn_config")
    heads = config.size(*QUERY_HEADS)
    if section is not None:
        kind = section.own("attn_type", default="multihead_attention")
        if kind not in ("multihead_attention", "multiquery_attention", "grouped_query_attention"):
            raise config.refuse("attn_type", f"{kind!r:.60} is not understood")
        heads = section.size("kv_n_heads", default=1 if kind == "multiquery_attention" else heads)
    return full_attention_shape(config, read_dimensions(config, heads))
