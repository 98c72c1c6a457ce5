"""``KEY=RANGE`` -> the values of one input, checked and in base units."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from kvcalc.catalog import hardware as machines
from kvcalc.catalog import models
from kvcalc.catalog.scenarios import Question, Said, positive, quantity, read_value, tier_of
from kvcalc.errors import KvcalcError, SettingsError, did_you_mean
from kvcalc.keys import KEYS, TIER_UNITS, TIER_WORDS, Key, unit_of_key
from kvcalc.records import record

LOADS = ("prompt", "generate", "concurrency", "cached", "hit", "rate", "hit_rate")
"""Keys that all rows of one launch may differ in; any other key makes a launch of its own."""

STEPS = 10
"""Steps of a range of quantities whose step nobody says [1]: eleven values, both ends among them."""

MOST_VALUES = 10_000_000
"""Most values of one axis [1]; more do not fit the memory of a small machine."""

_RANGE = re.compile(r"^(?P<low>.+?)\.\.(?P<high>.+?)(?:(?P<way>[*+/])(?P<step>[^*+/]+(?:/[a-z]+)?))?$")
_COUNT = re.compile(r"^\s*\d+\s*$")
_NUMBER = re.compile(r"^\s*[+-]?[\d._]+(?:[eE][+-]?\d+)?\s*$")
_UNIT = re.compile(r"^\s*[+-]?[\d._]+(?:[eE][+-]?\d+)?\s*(?P<unit>[^\d\s._].*)$")


@record
class Axis:
    """One input with all its values."""

    key: str  # as a scenario file or `--set` names it: prompt, tiers.dram.bandwidth, device.bandwidth
    values: tuple[Any, ...]  # numbers in base units, whole ones as int, or words
    unit: str  # of the values; empty for words
    said: str

    @property
    def is_load(self) -> bool:
        """Whether rows that differ in it share a launch."""
        return self.key in LOADS

    @property
    def is_share(self) -> bool:
        """Whether the values are shares, which people read as percentages."""
        found = next((item for item in KEYS if item.name == self.key), None)
        return self.key.endswith("_efficiency") if found is None else found.kind == "share"

    @property
    def is_words(self) -> bool:
        """Whether the values are words."""
        return isinstance(self.values[0], str)


def axes_of(vary: Sequence[str] | Mapping[str, Any], question: Question) -> tuple[Axis, ...]:
    """Return the axes that were asked for, in their order.

    Raises
    ------
    SettingsError
        If a key is unknown or given twice, or a value of it cannot be read.
    """
    pairs = list(vary.items()) if isinstance(vary, Mapping) else [_pair(text) for text in vary]
    if not pairs:
        raise SettingsError("--vary: missing; say what to vary, e.g. --vary concurrency=1..64")
    axes: list[Axis] = []
    for name, values in pairs:
        axis = _axis(_canonical(str(name)), values, question, axes)
        if axis.key in {other.key for other in axes}:
            raise SettingsError(f"--vary {name}: given twice")
        axes.append(axis)
    names = {axis.key for axis in axes}
    if {"hit", "cached"} <= names:
        raise SettingsError("--vary: hit and cached say the same thing twice; vary one of them")
    return tuple(axes)


def _pair(text: str) -> tuple[str, str]:
    name, equals, values = text.partition("=")
    if not equals or not name.strip() or not values.strip():
        raise SettingsError(f"--vary {text!r}: write KEY=RANGE, e.g. concurrency=1..64 or prompt=1k..128k*2")
    return name.strip(), values.strip()


def _canonical(name: str) -> str:
    """Return a key as a scenario file spells it.

    >>> _canonical("--kv-dtype"), _canonical("workload.prompt"), _canonical("set.device.bandwidth")
    ('kv_dtype', 'prompt', 'device.bandwidth')
    """
    plain = name.strip().removeprefix("--").removeprefix("workload.").removeprefix("set.")
    return plain if "." in plain else plain.replace("-", "_")


def _axis(name: str, values: Any, question: Question, before: Sequence[Axis]) -> Axis:  # noqa: ANN401
    reader = _reader(name, question, before)
    said = values if isinstance(values, str) else ",".join(map(str, _listed(values)))
    try:
        found = tuple(_values(values, reader))
        if found and isinstance(found[0], str):
            _check_names(name, found)
    except KvcalcError as error:
        message = str(error)
        where = f"--vary {name}"
        raise type(error)(
            message if message.startswith(where) else f"{where}={said:.60}: {message}"
        ) from None
    if not found:
        raise SettingsError(f"--vary {name}={said:.60}: has no values")
    return Axis(name, found, reader.unit, said)


def _listed(values: Any) -> list[Any]:  # noqa: ANN401 - what a caller of the library gave
    if isinstance(values, (str, int, float)):
        return [values]
    if isinstance(values, np.ndarray):
        return list(values.tolist())
    return list(values)


def _check_names(name: str, values: tuple[Any, ...]) -> None:
    """Refuse a model or a machine that does not exist before any row is computed."""
    for value in values:
        if name == "model":
            models.load(value)
        elif name == "on":
            machines.load(value)


@record
class _Reader:
    """How the text of one value of an axis is read."""

    name: str
    unit: str
    kind: str  # words, flag, whole or number
    item: Key | None = None  # of the question, where it is none of a tier or a machine
    last: str = ""  # of a dotted key

    def read(self, text: Any) -> Any:  # noqa: ANN401 - a number, a word or a flag
        """Return one value in base units."""
        where = Said(text, f"--vary {self.name}", numbers=not isinstance(text, str))
        if self.item is not None:
            return read_value(self.item, where)
        if self.name in ("model", "on"):
            return read_value(Key(self.name, "text", ""), where)
        if self.name.startswith("tiers."):
            found = tier_of("tier", {"bandwidth": Said(1.0, "", numbers=True), self.last: where})
            value = getattr(found, self.last)
            return str(text).strip() if isinstance(value, bool) else value
        if self.unit == "1":
            return positive(where)
        return quantity(where, self.unit, zero=self.last == "latency")


def _reader(name: str, question: Question, before: Sequence[Axis]) -> _Reader:
    if name in ("model", "on"):
        return _Reader(name, "", "words")
    found = next((item for item in KEYS if item.name == name and "plan" in item.commands), None)
    if found is not None:
        kinds = {"text": "words", "flag": "words", "integer": "whole", "tokens": "whole"}
        kind = kinds.get(found.kind, "number")
        unit = "" if kind == "words" else "1" if found.kind in ("integer", "number") else unit_of_key(name)
        return _Reader(name, unit, kind, found)
    head, _, last = name.rpartition(".")
    if head.startswith("tiers."):
        return _tier_reader(name, last)
    return _hardware_reader(name, question, before)


def _tier_reader(name: str, last: str) -> _Reader:
    if last in TIER_WORDS:
        return _Reader(name, "", "words", last=last)
    if last in TIER_UNITS:
        return _Reader(name, TIER_UNITS[last], "number", last=last)
    raise SettingsError(
        f"--vary {name}: a tier has no such value{did_you_mean(last, [*TIER_UNITS, *TIER_WORDS])}"
    )


def _hardware_reader(name: str, question: Question, before: Sequence[Axis]) -> _Reader:
    from kvcalc.catalog.hardware_document import settable

    varied = next((axis.values[0] for axis in before if axis.key == "on"), None)
    machine = varied or question.hardware
    units = dict(settable(machines.load(machine))) if machine else {}
    if name not in units:
        known = [item.name for item in KEYS if "plan" in item.commands]
        near = did_you_mean(name, [*known, "model", "on", *units, "tiers.dram.bandwidth"])
        raise SettingsError(f"--vary {name}: unknown key{near}")
    return _Reader(name, units[name], "number", last=name.rpartition(".")[2])


def _values(said: Any, reader: _Reader) -> Iterator[Any]:  # noqa: ANN401 - a text, a value or several
    if not isinstance(said, str):
        yield from (reader.read(_whole(value)) for value in _listed(said))
        return
    items = [item.strip() for item in said.split(",")]
    if not all(items):
        raise SettingsError("a value between two commas is empty")
    if reader.kind == "words":
        for item in items:
            if ".." in item and not item.startswith((".", "/")):
                raise SettingsError(f"{item!r} is a range, and these are words; list them: a,b,c")
            value = reader.read(item)
            yield str(value).lower() if isinstance(value, bool) else value
        return
    unit = _last_unit(items[-1])
    for item in items:
        yield from _range(_with_unit(item, unit), reader)


def _whole(value: Any) -> Any:  # noqa: ANN401 - what a caller of the library gave
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _last_unit(text: str) -> str:
    """Return the unit at the end of a list, which its bare numbers share.

    >>> _last_unit("40 GB/s"), _last_unit("10..40 GB/s/4"), _last_unit("16")
    ('GB/s', 'GB/s', '')
    """
    found = _RANGE.match(text)
    match = _UNIT.match(found["high"] if found else text)
    return match["unit"].strip() if match else ""


def _with_unit(text: str, unit: str) -> str:
    if not unit or not _NUMBER.match(text):
        return text
    if unit in ("k", "Ki", "Mi"):
        if float(text) == 0:
            return text
        raise SettingsError(
            f"{text.strip()} beside a number of {unit} is ambiguous: write {text.strip()}{unit}, or all of "
            f"them without {unit}"
        )
    return text + unit if unit == "%" else f"{text} {unit}"


def _range(text: str, reader: _Reader) -> Iterator[Any]:
    found = _RANGE.match(text)
    if found is None:
        yield reader.read(text)
        return
    way, step = found["way"], found["step"]
    high_text = found["high"].strip()
    if way == "/" and step is not None and not _COUNT.match(step):
        # The stroke was the unit's own, as in GB/s.
        high_text = f"{high_text}/{step.strip()}"
        way = step = None
        inner = re.match(r"^(?P<high>.+)/(?P<count>\d+)$", high_text)
        if inner is not None:
            high_text, way, step = inner["high"], "/", inner["count"]
    unit = _last_unit(high_text)
    low, high = reader.read(_with_unit(found["low"].strip(), unit)), reader.read(high_text)
    if low > high:
        raise SettingsError(f"{text!r} begins with its higher end; write the lower one first")
    yield from _points(low, high, way, step, reader, unit)


def _points(
    low: float, high: float, way: str | None, step: str | None, reader: _Reader, unit: str
) -> Iterator[Any]:
    """Yield the values of a range: by factor, by step, so many, or whole numbers one by one."""
    if way == "*":
        yield from _by_factor(low, high, _factor(step or ""), reader)
        return
    if way == "+":
        stride = reader.read(_with_unit((step or "").strip(), unit))
        if not stride > 0:
            raise SettingsError(f"a step of {step} never ends; give one above zero")
        count = int((high - low) / stride * (1 + 1e-12)) + 1
    elif way == "/" or reader.kind != "whole":
        count = int(step) if way == "/" and step else STEPS + 1
        if count < 1:
            raise SettingsError("a range has one value at least")
        stride = (high - low) / max(1, count - 1)
    else:
        count, stride = int(high - low) + 1, 1
    _check_count(count)
    exact = reader.kind == "whole"
    last = None
    for index in range(count):
        value = round(low + index * stride) if exact else _tidy(min(high, low + index * stride))
        if value != last:
            yield value
        last = value


def _tidy(value: float) -> float:
    """Return a point without the last digits that counting in binary leaves.

    >>> _tidy(0.1 + 0.2)
    0.3
    """
    return float(f"{value:.12g}")


def _by_factor(low: float, high: float, factor: float, reader: _Reader) -> Iterator[Any]:
    if low <= 0:
        raise SettingsError("a range by a factor begins above zero")
    _check_count(int(np.log(high / low) / np.log(factor)) + 1)
    power, last = 0, None
    while (value := low * factor**power) <= high * (1 + 1e-12):
        point = round(value) if reader.kind == "whole" else _tidy(min(value, high))
        if point != last:
            yield point
        power, last = power + 1, point


def _factor(text: str) -> float:
    try:
        factor = float(text)
    except ValueError:
        factor = 0.0
    if not 1 < factor < float("inf"):
        raise SettingsError(f"{text!r} is no factor; write a number above 1, as in 1k..128k*2")
    return factor


def _check_count(count: int) -> None:
    if count > MOST_VALUES:
        raise SettingsError(f"{count:,} values are more than the {MOST_VALUES:,} that one axis may have")


def applied(question: Question, axes: Sequence[Axis], values: Sequence[Any]) -> Question:
    """Return the question with one value of each axis in it."""
    for axis, value in zip(axes, values, strict=True):
        question = _with(question, axis, value)
    return question


def _with(question: Question, axis: Axis, value: Any) -> Question:  # noqa: ANN401 - a value of the axis
    where = f"--vary {axis.key}"
    if axis.key == "model":
        return replace(question, model=value)
    if axis.key == "on":
        return replace(question, hardware=value)
    if axis.key.startswith("tiers."):
        _, tier, last = axis.key.split(".", 2)
        tiers = {name: dict(said) for name, said in question.tiers.items()}
        tiers.setdefault(tier, {})[last] = Said(value, where, numbers=True)
        return replace(question, tiers=tiers)
    if any(item.name == axis.key for item in KEYS):
        # A key that says the same as another one stays beside it: the row is refused as its plan is.
        return replace(question, said={**question.said, axis.key: Said(value, where, numbers=True)})
    text = repr(value) if axis.unit == "1" else f"{value!r} {axis.unit}"
    return replace(question, replaced={**question.replaced, axis.key: Said(text, where)})
