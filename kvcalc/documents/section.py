"""The mappings and values inside a document, read with a message that names their place."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar

from kvcalc.documents.limits import Document
from kvcalc.errors import ProfileError, UnitError, did_you_mean

Value = TypeVar("Value")
LARGEST = sys.float_info.max
"""Largest number that is read [1]: whole numbers of a file may have more digits than any float."""


@dataclass(frozen=True)
class Section:
    """A mapping inside a file, which knows its place for messages.

    >>> section = Section.of({"value": "54 GB/s"}, "dram.yaml", "tiers.dram")
    >>> section.quantity("value", "byte/second")
    54000000000.0
    """

    data: Mapping[str, Any]
    file: str
    path: str = ""

    @classmethod
    def of(cls, data: Document, file: str, path: str = "") -> "Section":
        """Return `data` as a section, refusing what is no mapping or has keys that are not text."""
        where = f"{file}: {path}" if path else file
        if not isinstance(data, Mapping):
            raise ProfileError(f"{where}: expected keys with values, not {describe(data)}")
        for key in data:
            if not isinstance(key, str):
                raise ProfileError(f"{where}: the key {key!r} is not text; write it in quotes")
        return cls(data, file, path)

    def where(self, key: str = "") -> str:
        """Return ``"file: dotted.key"``, with which every message begins."""
        dotted = ".".join(part for part in (self.path, key) if part)
        return f"{self.file}: {dotted}" if dotted else self.file

    def check(self, required: tuple[str, ...], optional: tuple[str, ...] = ()) -> None:
        """Refuse unknown keys, naming the nearest valid one, and missing keys."""
        known = (*required, *optional)
        for key in self.data:
            if key not in known:
                raise ProfileError(f"{self.where(key)}: unknown key{did_you_mean(key, known)}")
        for key in required:
            if key not in self.data:
                raise ProfileError(f"{self.where(key)}: missing")

    def __contains__(self, key: str) -> bool:
        return key in self.data

    def fail(self, key: str, expected: str) -> NoReturn:
        """Refuse the value of `key`, saying what it is and what was expected."""
        if key not in self.data:
            raise ProfileError(f"{self.where(key)}: missing")
        raise ProfileError(f"{self.where(key)}: expected {expected}, not {describe(self.data[key])}")

    def _typed(self, key: str, kind: type[Value], expected: str) -> Value:
        value = self.data.get(key)
        if not isinstance(value, kind):
            self.fail(key, expected)
        return value

    def text(self, key: str) -> str:
        """Return a text."""
        return self._typed(key, str, "text")

    def number(self, key: str) -> float:
        """Return a number without a unit."""
        value = self.data.get(key)
        if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= LARGEST:
            self.fail(key, "a number")
        return float(value)

    def integer(self, key: str) -> int:
        """Return a whole number."""
        value = self.data.get(key)
        if isinstance(value, bool) or not isinstance(value, int):
            self.fail(key, "a whole number")
        return value

    def flag(self, key: str) -> bool:
        """Return true or false."""
        return self._typed(key, bool, "true or false")

    def items(self, key: str) -> list[Any]:
        """Return a list."""
        return self._typed(key, list, "a list")

    def texts(self, key: str) -> tuple[str, ...]:
        """Return a list of texts."""
        values = self.items(key)
        if not all(isinstance(value, str) for value in values):
            self.fail(key, "a list of texts")
        return tuple(values)

    def section(self, key: str) -> "Section":
        """Return a mapping inside this one."""
        if key not in self.data:
            self.fail(key, "keys with values")
        return Section.of(self.data[key], self.file, f"{self.path}.{key}" if self.path else key)

    def quantity(self, key: str, unit: str) -> float:
        """Return a text with a unit as a float in `unit`; the unit "1" takes a bare number."""
        if key not in self.data:
            self.fail(key, f"a number with a unit ({unit})")
        return to_quantity(self.data[key], unit, self.where(key))


def to_quantity(value: Document, unit: str, where: str) -> float:
    """Read a value of a file as a float in `unit`, naming its place when it cannot be.

    >>> to_quantity("3.35 TB/s", "byte/second", "h100.yaml: device.bandwidth")
    3350000000000.0
    """
    from kvcalc.units import to_base

    if unit == "1":
        try:
            return float(value) if not isinstance(value, bool) else float("nan")
        except (TypeError, ValueError):
            raise ProfileError(f"{where}: expected a plain number, not {describe(value)}") from None
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = f"{value:g}" if isinstance(value, float) else str(value)
    if not isinstance(value, str):
        raise ProfileError(f"{where}: expected a number with a unit ({unit}), not {describe(value)}")
    try:
        return to_base(value, unit)
    except UnitError as error:
        raise ProfileError(f"{where}: {error}") from None


def describe(value: object) -> str:
    """Return a value as a message shows it, shortened.

    >>> describe([1, 2]), describe("x"), describe(None)
    ('a list', "'x'", 'nothing')
    """
    if value is None:
        return "nothing"
    if isinstance(value, Mapping | list):
        return "a list" if isinstance(value, list) else "keys with values"
    shown = repr(value)
    return shown if len(shown) <= 60 else shown[:57] + "..."
