"""Ranges that a user says, such as ``5..20 ms``: the middle to plan with, and the ends beside it."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from kvcalc.catalog.scenarios import Question, Said, positive, quantity, read_value, tier_of
from kvcalc.errors import KvcalcError, SettingsError
from kvcalc.keys import KEYS, TIER_UNITS, key
from kvcalc.scenario import SEED, Range, Scenario, TierUse

RANGED_TOKENS = ("prompt", "cached")
"""Token counts that may be ranges, since only the work of a request depends on them."""

_RANGED = {
    item.name: item for item in KEYS if item.kind in ("quantity", "share") or item.name in RANGED_TOKENS
}
_NUMBER = re.compile(r"[+-]?[\d.,_]+(?:[eE][+-]?\d+)?\s*")


def settle(question: Question) -> tuple[Question, dict[str, Range]]:
    """Return the question with the middle of each range in its place, and the ranges by key.

    Raises
    ------
    SettingsError
        If a range has no two ends, or its lower end is above the higher one.
    """
    ranges: dict[str, Range] = {}
    said = {name: _settled(name, item, ranges) for name, item in question.said.items()}
    tiers = {
        tier: {name: _settled_tier(tier, name, item, ranges) for name, item in values.items()}
        for tier, values in question.tiers.items()
    }
    return (replace(question, said=said, tiers=tiers), ranges) if ranges else (question, {})


def in_order(low: float, high: float, text: object, where: str) -> Range:
    """Return the range between two ends, the lower one first.

    >>> in_order(5.0, 20.0, "5..20", "--setup").middle
    12.5
    """
    if low > high:
        raise SettingsError(f"{where}: {text!r} begins with its higher end; write the lower one first")
    return Range(low, (low + high) / 2, high)


def ends(value: Any, where: str) -> tuple[Any, Any] | None:  # noqa: ANN401 - as typed, parsed or passed
    """Return both ends of a range, the unit of the second one on the first as well; None for one value.

    >>> ends("5..20 ms", "--setup"), ends("40..54 GB/s", "--tier"), ends("12 ms", "--setup")
    (('5 ms', '20 ms'), ('40 GB/s', '54 GB/s'), None)
    """
    if isinstance(value, (list, tuple)):
        if len(value) != 2:
            raise SettingsError(f"{where}: a range has two ends, not {len(value)}")
        return value[0], value[1]
    if not isinstance(value, str) or ".." not in value:
        return None
    low, _, high = (part.strip() for part in value.partition(".."))
    if not low or not high or ".." in high:
        raise SettingsError(f"{where}: {value!r} is no range; write LOW..HIGH, for example 5..20 ms")
    unit = _NUMBER.sub("", high, count=1)
    if _NUMBER.fullmatch(low) and unit:
        low = f"{low}{unit}" if unit in ("%", "k", "Ki", "Mi") else f"{low} {unit}"
    return low, high


def _settled(name: str, said: Said, ranges: dict[str, Range]) -> Said:
    both = ends(said.value, said.where) if name in _RANGED else None
    if both is None:
        return said
    kind = _RANGED[name].kind
    low, high = (float(read_value(_RANGED[name], replace(said, value=end))) for end in both)
    found = in_order(low, high, said.value, said.where)
    if kind == "tokens":
        found = replace(found, middle=float(round(found.middle)))
    ranges[name] = replace(found, most=1.0) if kind == "share" else found
    return replace(said, value=int(found.middle) if kind == "tokens" else found.middle, numbers=True)


def _settled_tier(tier: str, name: str, said: Said, ranges: dict[str, Range]) -> Said:
    both = ends(said.value, said.where) if name in TIER_UNITS else None
    if both is None:
        return said
    try:
        low, high = (_of_tier(name, replace(said, value=end)) for end in both)
    except KvcalcError as error:
        raise type(error)(f"{said.where}: {error}") from None
    found = in_order(low, high, said.value, said.where)
    ranges[f"tiers.{tier}.{name}"] = found
    return replace(said, value=found.middle, numbers=True)


def _of_tier(name: str, said: Said) -> float:
    if TIER_UNITS[name] == "1":
        return positive(said)
    return quantity(said, TIER_UNITS[name], zero=name in ("setup", "price"))


def with_ranges(scenario: Scenario, ranges: Mapping[str, Range]) -> Scenario:
    """Return the scenario that knows its ranges, those of its tiers' bandwidths included."""
    inputs = {**scenario.inputs, **told(ranges, scenario.draws, scenario.seed)}
    tiers = tuple(with_range(tier, ranges) for tier in scenario.tiers)
    return replace(scenario, tiers=tiers, ranges=ranges, inputs=inputs)


def told(ranges: Mapping[str, Range], draws: int, seed: int) -> dict[str, Any]:
    """Return the ranges and the draws as the JSON `inputs` have them."""
    ends_of = {name: [item.low, item.high] for name, item in ranges.items()}
    return {"ranges": ends_of, "draws": draws, "seed": seed}


def with_range(tier: TierUse, ranges: Mapping[str, Range]) -> TierUse:
    """Return the tier with the range of its bandwidth, where one was given."""
    found = ranges.get(f"tiers.{tier.name}.bandwidth")
    return tier if found is None else replace(tier, bandwidth_range=(found.low, found.high))


def bandwidth_tiers(rates: Sequence[float | str]) -> tuple[tuple[TierUse, ...], dict[str, Range]]:
    """Return tiers that are nothing but a bandwidth, named as they were given, and the ranges among them."""
    ranges: dict[str, Range] = {}
    tiers = []
    for rate in rates:
        name = rate if isinstance(rate, str) else f"{rate / 1e9:g} GB/s"
        said = {"bandwidth": Said(rate, "--bandwidth", numbers=True)}
        settled = {key: _settled_tier(name, key, item, ranges) for key, item in said.items()}
        tiers.append(with_range(tier_of(name, settled), ranges))
    return tuple(tiers), ranges


def drawing(question: Question) -> tuple[int, int]:
    """Return how many draws were asked for, and the seed of their random numbers."""
    found = {
        name: int(read_value(key(name), question.said[name]))
        for name in ("draws", "seed")
        if name in question.said
    }
    return found.get("draws", 0), found.get("seed", SEED)
