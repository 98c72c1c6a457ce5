"""In which order each policy would let sequences go.

A policy is a function of a crowd that returns its sorting keys, the weightiest first; the lowest goes
first.  `cost` needs prices and stands in `ranking` and `victims`; `queue` evicts nobody.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np

from kvcalc.eviction.crowd import Crowd, Floats, Indices
from kvcalc.eviction.rules import Rules, class_of
from kvcalc.formulas.eviction import price_ratio

COST, QUEUE, RULES = "cost", "queue", "rules"


def ratios(crowd: Crowd) -> Floats:
    """Return tokens done over tokens to go; infinite where nothing is left to generate."""
    left = np.where(crowd.remaining > 0, crowd.remaining, 1.0)
    return np.where(crowd.remaining > 0, price_ratio(crowd.done, left), np.inf)


def _lru(crowd: Crowd, _: Rules) -> tuple[Floats, ...]:
    """Longest idle first; among those that ran in the last step, the one admitted first."""
    return -crowd.idle, crowd.age


def _ratio(crowd: Crowd, _: Rules) -> tuple[Floats, ...]:
    """Least done for what is still to come first."""
    return ratios(crowd), -crowd.age


def _priority(crowd: Crowd, _: Rules) -> tuple[Floats, ...]:
    """Lowest priority first, then the one admitted last, as vLLM preempts."""
    return crowd.priority, -crowd.age


def _rules(crowd: Crowd, rules: Rules) -> tuple[Floats, ...]:
    """By the place in `victim_order`, then the lowest ratio."""
    return class_of(rules, crowd).astype(float), ratios(crowd), -crowd.age


Keys = Callable[[Crowd, Rules], tuple[Floats, ...]]

ORDERS: Mapping[str, Keys] = MappingProxyType(
    {"lru": _lru, "ratio": _ratio, "priority": _priority, RULES: _rules}
)
RANKED = (*ORDERS, COST)
"""Policies that rank live sequences."""
POLICIES = (*RANKED, QUEUE)
"""Policies that a simulation compares."""


def order(policy: str, crowd: Crowd, rules: Rules) -> Indices:
    """Return the sequences in the order in which a policy lets them go; `rules` leaves some out."""
    keys = ORDERS[policy](crowd, rules)
    ranked: Indices = np.lexsort(keys[::-1])
    if policy == RULES:
        ranked = ranked[class_of(rules, crowd)[ranked] >= 0]
    return ranked
