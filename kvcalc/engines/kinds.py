"""What other code may ask of an engine: one row an engine, so that nobody has to compare names."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from kvcalc.errors import SettingsError, did_you_mean


@dataclass(frozen=True)
class Kind:
    """One engine."""

    module: str  # has its `lay_out`
    versioned: bool = False  # the rules of each version are known
    has_blocks: bool = True  # its KV memory is a number of blocks, which --num-blocks may give
    divides_layers_alone: bool = False  # over GPUs: by layers (pp) and in no other way
    has_host_layers: bool = False  # it can leave layers in host memory (--gpu-layers)
    has_slots: bool = False  # sequences have slots (--parallel), and a step is a micro-batch (--ubatch)
    has_hybrid_manager: bool = False  # without it, windows are kept, stored and loaded as full layers are
    groups_layers: bool = False  # pages belong to groups that are made layer by layer, so each layer counts


KINDS: Mapping[str, Kind] = MappingProxyType(
    {
        "generic": Kind("kvcalc.engines.generic", has_blocks=False),
        "vllm": Kind("kvcalc.engines.vllm", versioned=True, has_hybrid_manager=True, groups_layers=True),
        "sglang": Kind("kvcalc.engines.sglang"),
        "llama.cpp": Kind(
            "kvcalc.engines.llamacpp", divides_layers_alone=True, has_host_layers=True, has_slots=True
        ),
        "transformers": Kind("kvcalc.engines.transformers", has_blocks=False),
    }
)
"""Engine, as `--engine` has it -> what it is."""


def kind_of(engine: str) -> Kind:
    """Return what an engine is.

    Raises
    ------
    SettingsError
        If nobody knows it.

    >>> kind_of("vllm").versioned, kind_of("sglang").versioned
    (True, False)
    """
    if engine not in KINDS:
        raise SettingsError(f"--engine: unknown engine {engine!r}{did_you_mean(engine, list(KINDS))}")
    return KINDS[engine]
