"""Replacement policies by name, one file each: a function from a case to what it found."""

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING

from kvcalc.errors import SettingsError, did_you_mean
from kvcalc.replay.policies.registry import (
    ALWAYS,
    BELADY,
    BOUNDS,
    CHOICES,
    FIFO,
    INFINITE,
    LRU,
    POLICIES,
    Policy,
)

if TYPE_CHECKING:
    from kvcalc.replay.outcome import Case, Outcome

__all__ = [
    "ALWAYS",
    "BELADY",
    "BOUNDS",
    "CHOICES",
    "FIFO",
    "INFINITE",
    "LRU",
    "POLICIES",
    "Policy",
    "policy",
]


def policy(name: str) -> "Callable[[Case], Outcome]":
    """Return the function that replays a policy.

    Raises
    ------
    SettingsError
        If no policy has this name.
    """
    if name not in POLICIES:
        raise SettingsError(f"policy: unknown policy {name!r:.60}{did_you_mean(name, tuple(POLICIES))}")
    module = import_module(f"kvcalc.replay.policies.{name.replace('-', '_')}")
    found: Callable[[Case], Outcome] = module.replay
    return found
