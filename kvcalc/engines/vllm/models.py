"""Where vLLM's code for a model type departs from the rule of its kind, and what it does not run."""

from kvcalc.engines.vllm.versions import parse_version
from kvcalc.errors import UnsupportedModelError
from kvcalc.shapes.components import ModelShape

IGNORES_KV_DTYPE = ("falcon",)
"""Model types whose attention is built without the cache's settings, so that `--kv-dtype` has no
effect (`models/falcon.py`: `Attention(...)` lacks `cache_config`, in 0.6.6 as in 0.33)."""

EXPORTS_NO_STATE = ("kimi_linear",)
"""Model types whose own layer exports no checkpoint although their kind's kernels can: Kimi Linear
runs `model_executor/layers/kda.py`, Kimi K3 `models/kimi_k3/nvidia/kda.py`."""

LAST_VERSION = {
    "arctic": "0.28",
    "baichuan": "0.23",
    "bamba": "0.23",
    "grok-1": "0.24",
    "internlm": "0.23",
    "minimax": "0.23",
    "minimax_m1": "0.23",
    "minimax_text_01": "0.23",
    "mllama_text_model": "0.10",
    "mpt": "0.28",
    "phi3small": "0.9",
    "qwen": "0.23",
    "xverse": "0.23",
}
"""The last version that ran a model type (`models/registry.py: _PREVIOUSLY_SUPPORTED_MODELS`)."""

ABSENT = ("bart", "gla", "jet_nemotron", "rwkv", "rwkv7", "t5", "yuan")
"""Model types without an implementation in vLLM 0.33."""


NOT_UNDERSTOOD = ("inkling_mm_model", "inkling_model", "inkling_text")
"""Model types that vLLM caches in a way of its own: Inkling's convolutions are pages of a window."""

NOT_UNDERSTOOD_KINDS = ("pooled_index", "index_ring")
"""Components in rings beside pages of other sizes (GLM-5.3-Flash, Qwen4), for which no log is known."""


def refuse_not_understood(shape: ModelShape) -> None:
    """Refuse a model whose blocks under vLLM could only be guessed."""
    kinds = {part.kind for part in shape.components_for("vllm")}.intersection(NOT_UNDERSTOOD_KINDS)
    if kinds or shape.model_type in NOT_UNDERSTOOD:
        what = " and ".join(sorted(kinds)) or "its convolutions"
        raise UnsupportedModelError(
            f"{shape.name}: how vLLM lays out {what} is not understood (model_type {shape.model_type!r}); "
            "--engine generic sizes it without blocks"
        )


def support_notes(shape: ModelShape, version: str | None) -> tuple[str, ...]:
    """Return a note when vLLM would not run the model, whose cache is laid out all the same."""
    kind = shape.model_type
    last = LAST_VERSION.get(kind)
    if last and (version is None or parse_version(version) > parse_version(last)):
        return (f"vLLM runs {kind} models up to {last} only; laid out by its rules all the same",)
    if kind in ABSENT:
        return (f"vLLM has no {kind} models; laid out by its rules all the same",)
    return ()
