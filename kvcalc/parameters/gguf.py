"""The weights of a GGUF file, from its tensor infos: exact counts and bytes, none computed from a config.

Tensor names are those of llama.cpp's src/llama-arch.cpp (as vendored in llama-cpp-python 0.3.36).
"""

import re
from collections.abc import Mapping
from math import prod

from kvcalc.parameters.counts import Name, Parameters, Part, Split
from kvcalc.parameters.ggml import ggml_format
from kvcalc.shapes.readers.gguf.file import GgmlType, Header
from kvcalc.shapes.readers.gguf.keys import Keys, read_architecture

_BLOCK = re.compile(r"(?:dec\.|enc\.)?blk\.(\d+)\.(.+)")

_NAMES: tuple[tuple[str, Name], ...] = (
    (r".*_norm", "norms"),
    (r"exp_probs_b|ffn_gate_inp", "router"),
    (r"ffn_\w*_exps", "experts"),
    (r"ffn_\w*_(shexp|chexps)", "shared_experts"),
    (r"ssm_|shortconv|time_mix|channel_mix", "state_mixer"),
    (r"attn_|cross_attn_|indexer", "attention"),
    (r"ffn_", "mlp"),
    (r"token_embd|token_types|position_embd|per_layer_token_embd", "embedding"),
    (r"output\.", "lm_head"),
)
"""What a tensor is for, by the first pattern that its name within a layer begins with."""

_LOOKUPS = ("token_types", "position_embd", "per_layer_token_embd")
"""Embeddings that are never an output head as well."""

_NO_PARAMETERS = ("exp_probs_b", "rope_freqs", "rope_factors")
"""Correction biases and rotary tables: stored, but not counted as parameters."""

_SPLITS: Mapping[str, Split] = {"experts": "experts", "embedding": "vocab", "lm_head": "vocab"}


def parameters_of_header(header: Header) -> Parameters:
    """Return the weights that a GGUF header lists; layers of multi-token prediction are the draft."""
    keys = Keys(header, read_architecture(header))
    used = max(keys.per_layer("expert_used_count", [0]))
    groups: dict[tuple[str, tuple[int, ...], GgmlType, bool], list[int]] = {}
    for tensor in header.tensors:
        match = _BLOCK.fullmatch(tensor.name)
        module = match[2] if match else tensor.name
        draft = match is not None and int(match[1]) >= keys.layers
        layers = groups.setdefault((module, tensor.dimensions, tensor.type, draft), [])
        if match:
            layers.append(int(match[1]))
    parts: dict[bool, list[Part]] = {False: [], True: []}
    for (module, dimensions, kind, draft), owners in groups.items():
        parts[draft].append(_part(module, dimensions, kind, tuple(owners) or None, used))
    return Parameters(
        parts=tuple(parts[False]),
        layers=keys.layers,
        tied=all(tensor.name != "output.weight" for tensor in header.tensors),
        draft=tuple(parts[True]),
    )


def _part(
    module: str, dimensions: tuple[int, ...], kind: GgmlType, layers: tuple[int, ...] | None, used: int
) -> Part:
    name: Name = next((name for pattern, name in _NAMES if re.match(pattern, module)), "other")
    columns, *rest = dimensions
    copies = rest.pop() if name == "experts" and rest else 1
    vector = not rest or name in ("norms", "other") or module.endswith(".bias")
    return Part(
        name=name,
        module=module,
        rows=prod(rest),
        columns=columns,
        layers=layers,
        copies=copies,
        used=min(copies, used) if used else copies,
        split=_SPLITS.get(name, "columns"),
        matrix=not vector and not module.startswith(_LOOKUPS),
        buffer=module.startswith(_NO_PARAMETERS),
        format=ggml_format(kind),
    )
