"""What changed when: the allocation rules of every vLLM version, as data.

Each `Change` names the first release whose source has it; a version lives by all changes up to it.
Read from the released wheels 0.6.6, 0.8.5, 0.9.2, 0.10.2 and each minor release from 0.11 to 0.15 and from
0.17 to 0.33, in `vllm/v1/core/kv_cache_utils.py` (`kv_cache_planning.py` from 0.32),
`vllm/v1/kv_cache_interface.py`, `vllm/platforms/interface.py`, `vllm/config` and
`vllm/model_executor`.
"""

import re
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Literal

from kvcalc.errors import SettingsError

Packing = Literal["tuples", "slots", "widest"]
"""How pages of different sizes share a block: in whole tuples of one page of each size, in as many
slots of each size as any group needs, or side by side so that the widest group sets the block."""

InFlight = Literal["batch", "stages", "overlapped"]
"""Tokens scheduled and not settled: of one batch; of a batch per pipeline stage, two without stages;
of a batch per stage and one more (asynchronous scheduling of the second model runner)."""


@dataclass(frozen=True)
class Rules:
    """The rules in force in one version."""

    paged_pool: bool = False  # V1: one pool of blocks; V0 kept GPU and CPU blocks
    hybrid_groups: bool = False  # layers that grow differently form groups in one pool
    chunked_groups: bool = False  # chunked local attention frees blocks; before, it was kept in full
    near_equal: float = 0.0  # groups take the larger layer count below this multiple of the smaller
    tokens_by_concurrency: bool = False  # printed tokens = concurrency x max_len; before, blocks // groups
    utilization: float = 0.90  # default of --gpu-memory-utilization
    in_flight: InFlight = "batch"  # whose tokens a window keeps beside its own
    null_block_in_fit: bool = False  # the check of max_len leaves out the block that nobody may use
    state_modes: bool = False  # states follow the prefix cache: one, two and more, or one per block
    state_per_block_kinds: tuple[str, ...] = ()  # state kinds that keep one state per block by default
    checkpoint_kinds: tuple[str, ...] = ()  # states exported inside a prefill take one more page
    checkpoint_grid: bool = False  # hybrid blocks are multiples of the prefill kernels' checkpoints
    latent_hybrid_block: int = 1  # hybrid blocks of MLA models are multiples of this [token]
    one_host_copy: bool = False  # the host tier keeps once what all ranks hold alike, latents
    skip_layer_blocks: bool = False  # blocks grow until a packed page covers an unquantized layer's
    packing: Packing = "tuples"


@dataclass(frozen=True)
class Change:
    """What a release changed."""

    since: tuple[int, int]
    what: dict[str, Any] = field(default_factory=dict)


_PER_BLOCK = ("mamba1", "mamba2")

CHANGES: tuple[Change, ...] = (
    Change((0, 1)),
    Change((0, 8), {"paged_pool": True}),  # V1 became the default engine
    Change((0, 9), {"hybrid_groups": True}),
    Change((0, 12), {"near_equal": 1.25}),
    Change((0, 14), {"chunked_groups": True}),
    Change((0, 15), {"state_modes": True, "state_per_block_kinds": _PER_BLOCK}),
    Change((0, 18), {"near_equal": 1.5}),
    Change((0, 20), {"utilization": 0.92}),
    Change((0, 21), {"tokens_by_concurrency": True}),
    Change((0, 24), {"packing": "slots"}),
    Change((0, 26), {"in_flight": "stages", "skip_layer_blocks": True}),
    Change((0, 27), {"latent_hybrid_block": 128, "one_host_copy": True}),
    Change((0, 28), {"state_per_block_kinds": ()}),
    Change((0, 29), {"packing": "widest", "null_block_in_fit": True, "in_flight": "overlapped"}),
    Change((0, 29), {"checkpoint_kinds": ("kda",)}),
    Change((0, 32), {"checkpoint_kinds": ("kda", "mamba2")}),
    Change((0, 33), {"checkpoint_kinds": ("kda", "mamba2", "gated_deltanet"), "checkpoint_grid": True}),
)

NEWEST = (0, 33)
_OLDEST = CHANGES[0].since
_VERSION = re.compile(r"v?(\d+)\.(\d+)(?:\.\d+)?(?:[.+-]?(?:dev|rc|post|a|b)[\w.+]*|\+[\w.]+)?")


def parse_version(text: str) -> tuple[int, int]:
    """Return the major and minor number of a version, by which the rules are found.

    >>> parse_version("0.10.1.dev101")
    (0, 10)
    """
    match = _VERSION.fullmatch(text.strip())
    if match is None:
        raise SettingsError(
            f"--engine-version: {text!r} is not a vLLM version such as 0.{NEWEST[1]}.0 or 0.10.2"
        )
    return int(match[1]), int(match[2])


@cache
def rules_for(version: str | None) -> Rules:
    """Return the rules of a version; the newest known when none is named.

    >>> rules_for("0.19.1").utilization, rules_for(None).utilization
    (0.9, 0.92)
    """
    found = parse_version(version) if version else NEWEST
    if not _OLDEST <= found <= NEWEST:
        nearest = _OLDEST if found < _OLDEST else NEWEST
        raise SettingsError(
            f"--engine-version: vLLM {version} is not known; known are {_OLDEST[0]}.{_OLDEST[1]} to "
            f"{NEWEST[0]}.{NEWEST[1]}, nearest is {nearest[0]}.{nearest[1]}"
        )
    rules = Rules()
    for change in CHANGES:
        if change.since <= found:
            rules = replace(rules, **change.what)
    return rules


def default_utilization(version: str | None) -> float:
    """Return the share of GPU memory that a version takes by default."""
    return rules_for(version).utilization
