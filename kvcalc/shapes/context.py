"""The longest context that a checkpoint declares."""

from collections.abc import Mapping
from typing import Any

from kvcalc.shapes.config import Config

LENGTHS = (
    "max_position_embeddings",
    "n_positions",
    "max_seq_len",
    "seq_length",
    "max_sequence_length",
    "max_seq_length",
    "seq_len",
    "max_target_positions",
)
"""Names under which configs give their context length; with several, the smallest binds."""

STRETCHING = ("linear", "dynamic", "yarn")
"""RoPE scalings whose `factor` stretches the trained length; others are already in the length."""

STRETCHED = ("gemma3", "gemma3_text")
"""Model types that declare the stretched length beside the factor, which vLLM skips for them too
(https://github.com/vllm-project/vllm/blob/main/vllm/config/model.py, _get_and_verify_max_len)."""


def longest_context(config: Config) -> int | None:
    """Return the longest context in tokens, or None when the config does not say."""
    lengths = [length for name in LENGTHS if (length := config.integer(name, default=0))]
    if not lengths:
        return None
    scaling = config.own("rope_scaling", "rope_parameters")
    if config.model_type in STRETCHED or not isinstance(scaling, Mapping):
        return min(lengths)
    return int(_stretched(min(lengths), scaling))


def _stretched(length: int, scaling: Mapping[str, Any]) -> float:
    """Apply a scaling that is meant to lengthen the context beyond the declared positions."""
    kind = scaling.get("rope_type") or scaling.get("type")
    factor = scaling.get("factor")
    if kind not in STRETCHING or isinstance(factor, bool) or not isinstance(factor, (int, float)):
        return length
    trained = scaling.get("original_max_position_embeddings")
    if kind == "yarn" and isinstance(trained, int):
        length = trained
    return length * factor if 1 <= factor < 2**20 else length
