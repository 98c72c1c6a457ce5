"""Inputs in which two scenarios differ, each with a way to change it alone in the first question."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from kvcalc.catalog.hardware_document import is_band, settable
from kvcalc.catalog.scenarios import Question, Said
from kvcalc.keys import KEYS, TIER_UNITS, unit_of_key
from kvcalc.profiles import Band, Hardware
from kvcalc.records import record
from kvcalc.scenario import Scenario
from kvcalc.sweeping.axes import Axis, applied

WHERE = "the other plan"


@record
class Difference:
    """One input that is not the same in both scenarios."""

    key: str
    unit: str
    a: Any
    b: Any
    change: Callable[[Question], Question] | None  # the first question with b's value; None: it follows


def differences(
    first: tuple[Question, Scenario], second: tuple[Question, Scenario]
) -> tuple[Difference, ...]:
    """Return what differs between two questions and their scenarios, model and machine first."""
    (question, one), (_, two) = first, second
    found = [*_names(question, one, two), *_keys(question, one, two), *_tiers(first, second)]
    return (*found, *_hardware(one.hardware, two.hardware))


def _names(question: Question, one: Scenario, two: Scenario) -> Iterator[Difference]:
    a, b = one.inputs["model"], two.inputs["model"]
    if a != b:
        yield Difference("model", "", a, b, lambda asked: replace(asked, model=b))
    on_a, on_b = one.inputs["on"], two.inputs["on"]
    if on_a != on_b:
        yield Difference("on", "", on_a, on_b, lambda asked: replace(asked, hardware=on_b, replaced={}))


_DERIVED = frozenset({"model", "on", "tiers", "set", "ranges", "compute_capability"})


def _keys(question: Question, one: Scenario, two: Scenario) -> Iterator[Difference]:
    known = {item.name: item for item in KEYS}
    derived = _DERIVED if "max_len" in one.given & two.given else _DERIVED | {"max_len"}
    for name in one.inputs:
        a, b = one.inputs[name], two.inputs.get(name)
        if a == b or name in derived or name not in known:
            continue
        unit = _UNITS[known[name].kind] if known[name].kind in _UNITS else unit_of_key(name)
        yield Difference(name, unit, _scalar(a), _scalar(b), _changed(name, unit, b))


_UNITS = {"text": "", "flag": "", "integer": "1", "number": "1"}


def _changed(name: str, unit: str, value: Any) -> Callable[[Question], Question]:  # noqa: ANN401
    if value is None:
        return lambda asked: replace(
            asked, said={key: said for key, said in asked.said.items() if key != name}
        )
    axis = Axis(name, (value,), unit, str(value))
    return lambda asked: applied(asked, [axis], [value])


def _scalar(value: Any) -> Any:  # noqa: ANN401 - a value of any input
    return ("yes" if value else "no") if isinstance(value, bool) else value


def _tiers(first: tuple[Question, Scenario], second: tuple[Question, Scenario]) -> Iterator[Difference]:
    """Yield tiers that only one of them has, and values in which a tier of both differs."""
    ours, theirs = first[1].inputs["tiers"], second[1].inputs["tiers"]
    for name in dict.fromkeys((*ours, *theirs)):
        if name not in ours or name not in theirs:
            words = ("there", "none") if name in ours else ("none", "there")
            yield Difference(f"tiers.{name}", "", *words, _with_tier(name, second[0]))
            continue
        a, b = ours[name], theirs[name]
        for key in dict.fromkeys((*a, *b)):
            if a.get(key) != b.get(key):
                unit, said = TIER_UNITS.get(key, ""), second[0].tiers.get(name, {}).get(key)
                yield Difference(
                    f"tiers.{name}.{key}",
                    unit,
                    _scalar(a.get(key)),
                    _scalar(b.get(key)),
                    _with_tier_value(name, key, said),
                )


def _with_tier(name: str, other: Question) -> Callable[[Question], Question]:
    def change(asked: Question) -> Question:
        kept = {tier: said for tier, said in asked.tiers.items() if tier != name}
        return replace(asked, tiers={**kept, **({name: other.tiers[name]} if name in other.tiers else {})})

    return change


def _with_tier_value(name: str, key: str, said: Said | None) -> Callable[[Question], Question]:
    def change(asked: Question) -> Question:
        own = {item: value for item, value in asked.tiers[name].items() if item != key}
        return replace(asked, tiers={**asked.tiers, name: {**own, **({} if said is None else {key: said})}})

    return change


def _hardware(one: Hardware, two: Hardware) -> Iterator[Difference]:
    """Yield the values of the machines that differ, where both have one."""
    ours, theirs = dict(settable(one)), dict(settable(two))
    for key, unit in ours.items():
        a, b = _value(one, key), _value(two, key) if key in theirs else None
        if a is None or b is None or a == b:
            continue
        yield Difference(key, unit, _middle(a), _middle(b), _with_value(key, unit, b))


def _middle(value: Any) -> Any:  # noqa: ANN401 - a number or a band
    return value.mid if isinstance(value, Band) else value


def _with_value(key: str, unit: str, value: Any) -> Callable[[Question], Question]:  # noqa: ANN401
    if is_band(key):
        text = f"{value.low!r}..{value.high!r}"
    else:
        text = repr(value) if unit == "1" else f"{value!r} {unit}"
    return lambda asked: replace(asked, replaced={**asked.replaced, key: Said(text, WHERE)})


def _value(hardware: Hardware, key: str) -> Any:  # noqa: ANN401 - a number, a band or nothing
    value: Any = hardware
    for part in key.split("."):
        value = value.get(part) if isinstance(value, Mapping) else getattr(value, part, None)
        if value is None:
            return None
    return value
