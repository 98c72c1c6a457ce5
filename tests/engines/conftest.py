"""Layers and models made up for the tests of engines."""

from kvcalc.shapes.components import Growth, ModelShape
from kvcalc.shapes.families.attention import kv_component
from kvcalc.shapes.families.mla import mla_component


def model(*parts, query_heads=32, model_type="made_up", **more):
    layers = max(index for part in parts for index in part.layers) + 1
    fields = {"hidden": 4096, "max_tokens": 131_072, **more}
    return ModelShape("made-up", model_type, parts, layers, query_heads=query_heads, **fields)


def full(layers, heads, width, query_heads=32):
    return kv_component("full_attention", layers, heads, width, width, query_heads)


def window(layers, heads, width, size, query_heads=32):
    return kv_component("sliding_window", layers, heads, width, width, query_heads, Growth("window", size))


def latent(layers):
    return mla_component(layers, 512, 64, 128, 128, 128)
