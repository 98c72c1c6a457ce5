"""The rules of a `kv_eviction` file: who may go in which order, who is protected, what happens else."""

from dataclasses import dataclass

import numpy as np

from kvcalc.eviction.crowd import Crowd, Flags, Indices

MODES = ("recompute", "swap", "tail", "queue")
"""What becomes of a victim: all dropped, moved to a tier, its tail dropped, or nobody evicted at all."""

COMPLETED, SHORT, STALLED = "completed_not_released", "short_low_remaining", "long_stalled"
CLASSES = (COMPLETED, SHORT, STALLED)
"""Classes of victims that `victim_order` may name."""

NEAR_COMPLETION, HIGH_PRIORITY = "near_completion", "high_priority_tenant"
PROTECTIONS = (NEAR_COMPLETION, HIGH_PRIORITY)
"""What `protect` may name."""

COOLDOWN = "cooldown"
QUEUE_NEW = "queue_new_request"


@dataclass(frozen=True)
class Rules:
    """One rule list; the defaults are those of the command line."""

    preempt_mode: str = "recompute"
    victim_order: tuple[str, ...] = CLASSES
    protect: tuple[str, ...] = PROTECTIONS
    cooldown: float = 30.0  # seconds in which nobody is evicted twice
    fallback: str = QUEUE_NEW
    short: float = 4096  # done fewer tokens than this
    low_remaining: float = 2048  # fewer tokens to go than this
    near_completion: float = 512  # fewer tokens to go than this: protected
    stalled: float = 10.0  # idle for so many seconds or longer
    long: float = 16384  # done so many tokens or more
    high_priority: float = 0.0  # a priority above this is protected


UNGUARDED = Rules(protect=(), cooldown=0.0)
"""Rules that protect nobody: an engine as it comes."""


def near_completion(rules: Rules, crowd: Crowd) -> Flags:
    """Return who is about to finish; a finished sequence is not, it is free."""
    named = NEAR_COMPLETION in rules.protect
    return np.logical_and(named and crowd.remaining < rules.near_completion, ~crowd.finished)


def high_priority(rules: Rules, crowd: Crowd) -> Flags:
    """Return whose tenant matters more than others."""
    named = HIGH_PRIORITY in rules.protect
    return np.logical_and(named and crowd.priority > rules.high_priority, ~crowd.finished)


def cooling_down(rules: Rules, crowd: Crowd) -> Flags:
    """Return who was evicted so recently that it may not be again."""
    return np.logical_and(crowd.evicted_ago < rules.cooldown, ~crowd.finished)


def protected(rules: Rules, crowd: Crowd) -> Flags:
    """Return who may not be evicted."""
    safe = near_completion(rules, crowd) | high_priority(rules, crowd)
    return np.asarray(safe | cooling_down(rules, crowd))


def class_of(rules: Rules, crowd: Crowd) -> Indices:
    """Return the place in `victim_order` of the first class that names each sequence, -1 for none."""
    members = {
        COMPLETED: crowd.finished,
        SHORT: (crowd.done < rules.short) & (crowd.remaining < rules.low_remaining) & ~crowd.finished,
        STALLED: (crowd.done >= rules.long) & (crowd.idle >= rules.stalled) & ~crowd.finished,
    }
    place = np.full(len(crowd), -1, dtype=np.int64)
    for index, name in reversed(list(enumerate(rules.victim_order))):
        place[members[name]] = index
    return place
