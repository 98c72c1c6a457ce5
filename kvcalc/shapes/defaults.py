"""Sizes that nested text configs leave out.

A multimodal checkpoint saves its text config as the difference from the defaults of its class, so a
nested config without, say, `num_attention_heads` is complete: the class's default holds.  (A config
that stands alone is saved in full, and one that lacks a size is malformed.)
"""

from collections.abc import Mapping


def _sizes(
    layers: int,
    hidden: int,
    heads: int,
    kv_heads: int | None,
    head_dim: int | None,
    positions: int | None,
    window: int | None,
) -> Mapping[str, int]:
    sizes = {
        "num_hidden_layers": layers,
        "hidden_size": hidden,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "head_dim": head_dim,
        "max_position_embeddings": positions,
        "sliding_window": window,
    }
    return {name: size for name, size in sizes.items() if size is not None}


# Source: the configuration classes of transformers 5.24.0, models/*/configuration_*.py.
# Layers, hidden size, query heads, KV heads (None: as many), head dim (None: hidden / heads),
# positions, window (None: none).
NESTED_DEFAULTS: Mapping[str, Mapping[str, int]] = {
    "cohere": _sizes(40, 8192, 64, None, None, 8192, None),
    "cohere2": _sizes(40, 8192, 64, None, None, 8192, 4096),
    "deepseek_v2": _sizes(32, 4096, 32, None, None, 2048, None),
    "deepseek_v3": _sizes(61, 7168, 128, 128, None, 4096, None),
    "gemma": _sizes(28, 3072, 16, 16, 256, 8192, None),
    "gemma2": _sizes(26, 2304, 8, 4, 256, 8192, 4096),
    "gemma3_text": _sizes(26, 2304, 8, 4, 256, 131072, 4096),
    "gemma3n_text": _sizes(35, 2048, 8, 2, 256, 32768, 512),
    "gemma4_text": _sizes(30, 2304, 8, 4, 256, 131072, 512),
    "glm4": _sizes(40, 4096, 32, 2, 128, 131072, None),
    "glm4v_text": _sizes(40, 4096, 32, 2, None, 32768, None),
    "glm4v_moe_text": _sizes(46, 4096, 96, 8, None, 65536, None),
    "gpt_oss": _sizes(36, 2880, 64, 8, 64, 131072, 128),
    "granite": _sizes(32, 4096, 32, None, None, 2048, None),
    "llama": _sizes(32, 4096, 32, None, None, 2048, None),
    "llama4_text": _sizes(48, 5120, 40, 8, 128, None, None),
    "ministral3": _sizes(34, 4096, 32, 8, 128, 262144, None),
    "mistral": _sizes(32, 4096, 32, 8, None, None, 4096),
    "mllama_text_model": _sizes(40, 4096, 32, 8, None, 131072, None),
    "olmo2": _sizes(32, 4096, 32, None, None, 2048, None),
    "phi3": _sizes(32, 3072, 32, None, None, 4096, None),
    "qwen2": _sizes(32, 4096, 32, 32, None, 32768, 4096),
    "qwen2_moe": _sizes(24, 2048, 16, 16, None, 32768, 4096),
    "qwen2_vl_text": _sizes(80, 8192, 64, 8, None, 32768, 4096),
    "qwen2_5_vl_text": _sizes(80, 8192, 64, 8, None, 32768, 4096),
    "qwen3": _sizes(32, 4096, 32, 32, 128, 32768, 4096),
    "qwen3_moe": _sizes(24, 2048, 32, 4, None, 32768, 4096),
    "qwen3_vl_text": _sizes(32, 4096, 32, 32, 128, 128000, None),
    "qwen3_vl_moe_text": _sizes(24, 2048, 16, 16, None, 128000, None),
    "qwen3_5_text": _sizes(32, 4096, 16, 4, 256, 32768, None),
    "qwen3_5_moe_text": _sizes(40, 2048, 16, 2, 256, 32768, None),
    "qwen3_next": _sizes(48, 2048, 16, 2, 256, 32768, None),
}

TEXT_TYPES = {
    "gemma3": "gemma3_text",
    "gemma3n": "gemma3n_text",
    "gemma4": "gemma4_text",
    "llama4": "llama4_text",
    "llava": "llama",
    "mistral3": "mistral",
    "mllama": "mllama_text_model",
    "qwen2_5_vl": "qwen2_5_vl_text",
    "qwen2_audio": "qwen2",
    "qwen2_vl": "qwen2_vl_text",
    "qwen3_5": "qwen3_5_text",
    "qwen3_5_moe": "qwen3_5_moe_text",
    "qwen3_vl": "qwen3_vl_text",
    "qwen3_vl_moe": "qwen3_vl_moe_text",
}
"""The class of a text config that does not name its own, by the `model_type` around it (same source)."""
