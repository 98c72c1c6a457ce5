"""Models that vLLM no longer runs, or never ran, although their cache can be laid out."""

from kvcalc.shapes.components import ModelShape

GONE = ("arctic", "baichuan", "grok-1", "internlm", "minimax_m1", "minimax_text_01", "mpt", "phi3small")
"""Model types that vLLM 0.33 names as removed (`models/registry.py: _PREVIOUSLY_SUPPORTED_MODELS`)."""

ABSENT = ("bamba", "bart", "jet_nemotron", "rwkv", "rwkv7", "t5", "zamba")
"""Model types that vLLM 0.33 has no working implementation of."""


def support_notes(shape: ModelShape) -> tuple[str, ...]:
    """Return a note when vLLM 0.33 would not run the model."""
    if shape.model_type in GONE:
        return (f"vLLM 0.33 no longer runs {shape.model_type} models; the layout is by its rules all the same",)
    if shape.model_type in ABSENT:
        return (f"vLLM 0.33 does not run {shape.model_type} models; the layout is by its rules all the same",)
    return ()
