"""Ranges that a user says, such as ``5..20 ms``: the middle to plan with, and the ends beside it.

A distribution may be said instead: ``{normal: [MEAN, SD]}``, ``{lognormal: [MEDIAN, SIGMA]}`` with sigma
of the natural logarithm, or ``{uniform: [LOW, HIGH]}``, in a file as such and elsewhere as the same text.
Its range is then its central 90 %.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from kvcalc.catalog.scenarios import Question, Said, positive, quantity, read_value, tier_of
from kvcalc.errors import KvcalcError, SettingsError
from kvcalc.formulas.breakeven import NINETY_PERCENT
from kvcalc.keys import KEYS, TIER_UNITS, key
from kvcalc.scenario import SEED, Range, Scenario, TierUse

RANGED_TOKENS = ("prompt", "cached")
"""Token counts that may be ranges, since only the work of a request depends on them."""

_RANGED = {
    item.name: item for item in KEYS if item.kind in ("quantity", "share") or item.name in RANGED_TOKENS
}
_NUMBER = re.compile(r"[+-]?[\d.,_]+(?:[eE][+-]?\d+)?\s*")
_OTHER_RANGE = re.compile(r"(?:[A-Za-zµ/%]+\s*)?(?:-|–|—|to\b|~|±|\+/?-|,)\s*\d.*")  # noqa: RUF001
WIDEST_SIGMA = 3.0
"""Most that the logarithm of an input may spread [1]; chosen: more is a percentage, or a unit."""

DISTRIBUTIONS = {"normal": "[MEAN, SD]", "lognormal": "[MEDIAN, SIGMA]", "uniform": "[LOW, HIGH]"}
"""Distributions that an input may have, and the two numbers of each."""

_WRITTEN = re.compile(r"\{?\s*([A-Za-z]+)\s*:\s*\[([^\[\]]*)\]\s*\}?")

Reader = Callable[[Any], float]


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
    if not isinstance(value, str):
        return None
    if ".." not in value:
        _refuse_other_spellings(value, where)
        return None
    low, _, high = (part.strip() for part in value.partition(".."))
    if not low or not high or ".." in high:
        raise SettingsError(f"{where}: {value!r} is no range; write LOW..HIGH, for example 5..20 ms")
    unit = _NUMBER.sub("", high, count=1)
    if _NUMBER.fullmatch(low) and unit:
        low = f"{low}{unit}" if unit in ("%", "k", "Ki", "Mi") else f"{low} {unit}"
    return low, high


def _refuse_other_spellings(value: str, where: str) -> None:
    """Refuse what is meant as a range and written in another way, such as "20-30 GB/s"."""
    text = value.strip().lstrip("[(")
    first = _NUMBER.match(text)
    if first is not None and _OTHER_RANGE.fullmatch(text[first.end() :]):
        raise SettingsError(
            f"{where}: {value!r} looks like a range; write LOW..HIGH, for example 20..30 GB/s"
        )


def written(value: Any) -> Any:  # noqa: ANN401 - as typed, parsed or passed
    """Return the text of a distribution as a file would have it parsed, and anything else as it is.

    >>> written("{lognormal: [20 GB/s, 0.3]}"), written("uniform: [5 ms, 20 ms]"), written("5..20 ms")
    ({'lognormal': ['20 GB/s', 0.3]}, {'uniform': ['5 ms', '20 ms']}, '5..20 ms')
    """
    found = _WRITTEN.fullmatch(value.strip()) if isinstance(value, str) else None
    if found is None:
        return value
    return {found[1]: [_plain(part.strip()) for part in found[2].split(",")]}


def _plain(text: str) -> float | str:
    """Return a number without a unit as one, as YAML would."""
    try:
        return float(text)
    except ValueError:
        return text


def distribution(value: Mapping[str, Any], where: str, read: Reader) -> Range:
    """Return the range of a distribution: its central 90 %, around the middle to plan with.

    Parameters
    ----------
    value : one distribution, such as ``{"lognormal": ["20 GB/s", 0.3]}``
    where : where it stands
    read : reads one value of the input, with its unit
    """
    known = ", ".join(f"{{{name}: {numbers}}}" for name, numbers in DISTRIBUTIONS.items())
    name, numbers = next(iter(value.items()), ("", None))
    if len(value) != 1 or name not in DISTRIBUTIONS:
        raise SettingsError(f"{where}: {dict(value)!r:.60} is no distribution; write one of {known}")
    if not isinstance(numbers, (list, tuple)) or len(numbers) != 2:
        raise SettingsError(f"{where}: {name} takes two numbers, {DISTRIBUTIONS[name]}")
    first = read(numbers[0])
    second = _sigma(numbers[1], where) if name == "lognormal" else read(numbers[1])
    if name == "uniform":
        whole = in_order(first, second, dict(value), where)
        margin = 0.05 * (second - first)
        return replace(
            whole, low=first + margin, high=second - margin, spread=name, parameters=(first, second)
        )
    wide = second * NINETY_PERCENT
    if name == "lognormal":
        low, high = first * math.exp(-wide), first * math.exp(wide)
    else:
        low, high = first - wide, first + wide
        if low <= 0:
            raise SettingsError(
                f"{where}: more than 5 % of this normal distribution lies below zero; write a lognormal one"
            )
    return Range(low, first, high, spread=name, parameters=(first, second))


def _sigma(value: Any, where: str) -> float:  # noqa: ANN401 - as parsed
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < math.inf:
        raise SettingsError(f"{where}: sigma {value!r} is not a positive number without a unit")
    if value > WIDEST_SIGMA:
        raise SettingsError(
            f"{where}: sigma {value:g} is that of the logarithm, and {WIDEST_SIGMA:g} is the most that is "
            f"taken (90 % within a factor of {math.exp(WIDEST_SIGMA * NINETY_PERCENT):.0f} each way); about "
            "30 % each way is 0.2"
        )
    return float(value)


def _settled(name: str, said: Said, ranges: dict[str, Range]) -> Said:
    if name not in _RANGED:
        return said
    kind = _RANGED[name].kind

    def read(value: Any) -> float:  # noqa: ANN401 - as typed, parsed or passed
        return float(read_value(_RANGED[name], replace(said, value=value)))

    value = written(said.value)
    if isinstance(value, Mapping):
        found = distribution(value, said.where, read)
        found = replace(found, high=min(found.high, 1.0)) if kind == "share" else found
    else:
        both = ends(said.value, said.where)
        if both is None:
            return said
        found = in_order(read(both[0]), read(both[1]), said.value, said.where)
    if kind == "tokens":
        found = replace(found, middle=float(round(found.middle)))
    ranges[name] = replace(found, most=1.0) if kind == "share" else found
    return replace(said, value=int(found.middle) if kind == "tokens" else found.middle, numbers=True)


def _settled_tier(tier: str, name: str, said: Said, ranges: dict[str, Range]) -> Said:
    if name not in TIER_UNITS:
        return said

    def read(value: Any) -> float:  # noqa: ANN401 - as typed, parsed or passed
        try:
            return _of_tier(name, replace(said, value=value))
        except KvcalcError as error:
            raise type(error)(f"{said.where}: {error}") from None

    value = written(said.value)
    if isinstance(value, Mapping):
        found = distribution(value, said.where, read)
    else:
        both = ends(said.value, said.where)
        if both is None:
            return said
        found = in_order(read(both[0]), read(both[1]), said.value, said.where)
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
