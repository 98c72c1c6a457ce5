"""Refuses settings that no engine could run, in the user's words."""

from collections.abc import Mapping
from dataclasses import fields
from types import MappingProxyType

from kvcalc.engines.kinds import kind_of
from kvcalc.engines.settings import EngineSettings
from kvcalc.errors import SettingsError
from kvcalc.shapes.components import ModelShape

_POSITIVE = (
    *("tp", "pp", "dp", "ep", "dcp", "parallel", "ubatch", "block_size", "page_size", "kernel_block"),
    *("max_len", "max_batched_tokens", "max_seqs", "encoder_tokens", "num_blocks"),
)
_NOT_NEGATIVE = ("spec_tokens", "draft_layers")
_SHARES = ("swa_ratio", "mamba_ratio")

EXPERT_RANKS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"generic": ("replica", "all"), "vllm": ("all",), "sglang": ("replica",)}
)
"""Which ranks share whole experts where an engine can spread them: those of one replica, or of all.

vLLM's --enable-expert-parallel spreads them over TP x DP; SGLang's --ep-size divides its --tp-size.
"""

_OWNERS = {
    **dict.fromkeys(("k_type", "v_type", "swa_full", "parallel", "ubatch"), "llama.cpp"),
    "page_size": "sglang",
    "dp_attention": "sglang",
}
"""Settings that one engine alone has: elsewhere they would be passed over in silence."""


def option_of(field: str) -> str:
    """Return the command line's spelling of a setting.

    >>> option_of("max_len")
    '--max-len'
    """
    return "--" + field.replace("_", "-")


def check_settings(shape: ModelShape, settings: EngineSettings) -> None:
    """Refuse impossible numbers, and a division of the model that its heads do not allow."""
    for field in fields(settings):
        value = getattr(settings, field.name)
        if value is not None:
            _check_number(field.name, value)
        owner = _OWNERS.get(field.name, settings.engine)
        if owner != settings.engine and value != field.default:
            raise SettingsError(
                f"{option_of(field.name)}: {settings.engine} has no such setting, only {owner} has; "
                f"add --engine {owner}"
            )
    if settings.num_blocks is not None and not kind_of(settings.engine).has_blocks:
        raise SettingsError(f"--num-blocks: {settings.engine} has no blocks; add --engine vllm, for example")
    if settings.pp > shape.layers:
        raise SettingsError(f"--pp: {settings.pp} stages for {shape.layers} layers of {shape.name}")
    if settings.tp % settings.dcp:
        raise SettingsError(f"--dcp: {settings.dcp} does not divide --tp {settings.tp}")


def _check_number(name: str, value: object) -> None:
    if name in _POSITIVE or name in _NOT_NEGATIVE:
        lowest = 1 if name in _POSITIVE else 0
        if isinstance(value, bool) or not isinstance(value, int) or value < lowest:
            raise SettingsError(f"{option_of(name)}: {value!r} is not a whole number of at least {lowest}")
    if name in _SHARES and not (isinstance(value, (int, float)) and value > 0):
        raise SettingsError(f"{option_of(name)}: {value!r} is not a positive number")


def check_ranks(shape: ModelShape, settings: EngineSettings, ranks: int) -> None:
    """Refuse tensor parallelism that would cut a head in two.

    Query heads must divide evenly; KV heads must divide evenly or be replicated evenly.
    """
    counts = {part.kv_heads for part in shape.components_for(settings.engine)} - {None}
    heads = sorted(count for count in counts if count)
    valid = [tp for tp in range(1, shape.query_heads + 1) if _divides(tp, shape.query_heads, heads)]
    if ranks == 1 or not shape.query_heads or ranks in valid:
        return
    kv = "/".join(map(str, heads))
    has = f"{kv} KV heads and {shape.query_heads} query heads" if kv else f"{shape.query_heads} query heads"
    raise SettingsError(
        f"--tp: {ranks} does not divide {has} of {shape.name}; valid are {', '.join(map(str, valid))}"
    )


def _divides(tp: int, query_heads: int, kv_heads: list[int]) -> bool:
    return query_heads % tp == 0 and all(heads % tp == 0 or tp % heads == 0 for heads in kv_heads)
