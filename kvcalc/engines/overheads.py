"""What engines keep on a GPU besides weights, activations and KV, and how much they may use: data.

None of these figures is printed by the engines in a form that separates it from the others, so each
is assumed; `--utilization` and `--pool` replace them.
"""

from dataclasses import dataclass

from kvcalc.engines.settings import EngineSettings


@dataclass(frozen=True, slots=True)
class Overhead:
    """Fixed costs of one engine on one GPU."""

    utilization: float  # share of the memory that the engine may use
    context: float  # CUDA context, libraries, allocator slack [byte]
    graphs: float  # captured CUDA graphs [byte]
    communication: float  # buffers per GPU once ranks talk to each other [byte]
    batched_tokens: int  # tokens of the largest step, for the peak of activations
    sequences: int  # sequences that sample in one step, for the logits
    source: str


_MIB = 2**20

OVERHEADS = {
    "generic": Overhead(
        0.90, 512 * _MIB, 512 * _MIB, 512 * _MIB, 8192, 256, "assumed: as vLLM's defaults for a Hopper card"
    ),
    "vllm": Overhead(
        0.90,
        512 * _MIB,
        512 * _MIB,
        512 * _MIB,
        8192,
        1024,
        "vLLM's serve defaults; context and graphs assumed",
    ),
    "sglang": Overhead(
        0.88, 512 * _MIB, 1024 * _MIB, 512 * _MIB, 8192, 256, "SGLang's mem_fraction_static; the rest assumed"
    ),
    "llama.cpp": Overhead(
        1.0, 512 * _MIB, 0, 0, 512, 1, "llama.cpp reserves no share; compute buffers by --ubatch"
    ),
    "transformers": Overhead(1.0, 512 * _MIB, 0, 0, 8192, 1, "assumed: no pool, no graphs"),
}


def overhead(settings: EngineSettings) -> Overhead:
    """Return the fixed costs of the engine that `settings` name, by version where it matters."""
    found = OVERHEADS[settings.engine]
    if settings.engine == "vllm":
        from dataclasses import replace

        from kvcalc.engines.vllm.versions import default_utilization

        return replace(found, utilization=default_utilization(settings.version))
    return found
