"""What `kvcalc diagnose` answers."""

from dataclasses import dataclass
from typing import Annotated

from kvcalc.quantity import Bytes, Share, Tokens
from kvcalc.results import Result

Problem = Annotated[
    str,
    (
        "none",
        "unknown",
        "policy",
        "near_complete_victims",
        "no_cooldown",
        "recompute_share",
        "memory_not_kv",
        "compute",
        "layout",
    ),
]
"""Rows of the table of misdiagnoses, and what there is beside them."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One number that was read or computed from what was read."""

    name: str  # of the quantity
    value: float  # in `unit`
    unit: str  # base unit
    source: str  # metrics or log lines it is from
    note: str  # how far to trust it


@dataclass(frozen=True, slots=True)
class Missing:
    """One number that is not there; it is never taken for zero."""

    name: str  # of the quantity
    why: str  # which metrics would have said it


@dataclass(frozen=True, slots=True)
class Verdict:
    """One problem that the figures show."""

    problem: Problem  # row of the table of misdiagnoses
    because: str  # the numbers that led to it
    change: str  # what to change, and what not


@dataclass(frozen=True, slots=True)
class Comparison:
    """The KV size that the engine logged, and kvcalc's own prediction."""

    what: str  # tokens of the pool, or its bytes
    logged: Tokens | None  # as the engine printed it
    predicted: Tokens  # by the engine's own rule
    difference: Share | None  # logged over predicted, less one
    explanation: str  # why they differ, or that they do not


@dataclass(frozen=True, slots=True)
class MemoryComparison:
    """The KV memory of one GPU that the engine logged, and what kvcalc predicts for the machine."""

    logged: Bytes  # as the engine printed it
    predicted: Bytes  # by the model of the engine's memory
    difference: Share | None  # logged over predicted, less one; null where none is predicted
    explanation: str  # what would account for it


@dataclass(frozen=True, slots=True)
class ClaimCheck:
    """One thing that is told or counted, and what speaks against it."""

    told: str  # the claim as it was given, or whose counters these are
    severity: Annotated[str, ("error", "warning", "info", "none")]  # none: nothing speaks against it
    message: str  # what speaks against it
    instead: str  # what would show it


@dataclass(frozen=True, slots=True)
class DiagnoseResult(Result):
    """Answer of `kvcalc diagnose`."""

    engines: tuple[str, ...]  # whose metrics and logs these are
    figures: tuple[Figure, ...]  # what was read
    missing: tuple[Missing, ...]  # what was not there
    verdicts: tuple[Verdict, ...]  # what is wrong, the gravest first
    kv_tokens: Comparison | None  # tokens of the pool, logged against predicted
    kv_memory: MemoryComparison | None  # KV memory per GPU, logged against predicted
    claims: tuple[ClaimCheck, ...] = ()  # claims, and counters of tiers, held against arithmetic

    SCHEMA = "kvcalc.diagnose/1"
