"""A hardware profile as a document that people write -> `Hardware`, strictly.

The dataclasses say which values exist and in which unit; this module only walks them.
"""

import dataclasses
from collections.abc import Iterator, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, cast, get_args, get_origin, get_type_hints

from kvcalc.documents import Document, Section, to_quantity
from kvcalc.errors import ProfileError, did_you_mean
from kvcalc.profiles import (
    Band,
    Before,
    Device,
    Dtype,
    Hardware,
    Kind,
    Link,
    Memory,
    Provenance,
    Source,
    Storage,
)

SCHEMA = "kvcalc.hardware/1"
"""A changed meaning of a key is a new number here."""

_VALUE_KEYS = (("value", "kind", "from"), ("range", "note", "before"))
_BEFORE_KEYS = (("value", "kind", "from"), ("range",))
_SECTIONS: Mapping[str, type] = MappingProxyType(
    {
        "device": Device,
        "host_to_device": Link,
        "device_to_host": Link,
        "interconnect": Link,
        "host": Memory,
        "storage": Storage,
    }
)
_BANDS = ("prefill_efficiency", "decode_efficiency")
_OPTIONAL_BANDS = ("attention_efficiency",)
_REQUIRED = ("schema", "name", "title", "vendor", "sources", "device", "host_to_device", "device_to_host")
_OPTIONAL = ("interconnect", "host", "storage", "aliases", "note")


@cache
def units(part: type) -> Mapping[str, str]:
    """Return the unit of each value of a dataclass, by field; a mapping has its values' unit.

    >>> units(Memory)["bandwidth"]
    'byte/second'
    """
    hints = get_type_hints(part, include_extras=True)
    found = {name: _unit(hint) for name, hint in hints.items()}
    return MappingProxyType({name: unit for name, unit in found.items() if unit is not None})


def _unit(hint: Any) -> str | None:  # noqa: ANN401 - a type, an Annotated or a union
    if hasattr(hint, "__metadata__"):
        return str(hint.__metadata__[0])
    return next((unit for part in get_args(hint) if (unit := _unit(part)) is not None), None)


def is_mapping(part: type, name: str) -> bool:
    """Tell whether a field holds values by format, as `Device.flops` does."""
    return get_origin(get_type_hints(part)[name]) is Mapping


def settable(hardware: Hardware) -> Iterator[tuple[str, str]]:
    """Yield dotted key and unit of each value that this machine has or may have."""
    for key, part in _SECTIONS.items():
        if getattr(hardware, key) is not None:
            for name, unit in units(part).items():
                if is_mapping(part, name):
                    yield from ((f"{key}.{name}.{dtype}", unit) for dtype in get_args(Dtype))
                else:
                    yield f"{key}.{name}", unit
    yield from ((key, "1") for key in (*_BANDS, *_OPTIONAL_BANDS))


def is_band(key: str) -> bool:
    """Tell whether a key holds a share with a range, as ``prefill_efficiency`` does."""
    return key in _BANDS or key in _OPTIONAL_BANDS


def check_value(value: float, key: str, where: str) -> float:
    """Refuse a value that no machine has: all are positive, and a share is at most one."""
    lowest_allowed = value >= 0 if key.endswith("latency") else value > 0
    if not lowest_allowed or value != value:
        raise ProfileError(f"{where}: must be positive, not {value:g}")
    if is_band(key) and value > 1:
        raise ProfileError(f"{where}: a share is at most 1, not {value:g}")
    return value


def hardware_from_document(data: Document, file: str) -> Hardware:
    """Build a machine from plain data.

    Raises
    ------
    ProfileError
        If a key is unknown or missing, a unit is missing or wrong, or a source is not listed; names
        the file and the key.
    """
    top = Section.of(data, file)
    top.check((*_REQUIRED, *_BANDS), (*_OPTIONAL, *_OPTIONAL_BANDS))
    if top.data["schema"] != SCHEMA:
        raise ProfileError(f"{top.where('schema')}: expected {SCHEMA}, not {top.data['schema']!r}")
    reader = Reader.of(top)
    parts: dict[str, Any] = {
        key: reader.part(part, top.section(key)) for key, part in _SECTIONS.items() if key in top
    }
    parts |= {key: reader.band(top, key) for key in (*_BANDS, *_OPTIONAL_BANDS) if key in top}
    return Hardware(**reader.head(top, file), vendor=top.text("vendor"), **parts)


def source(section: Section) -> Source:
    """Return a source as a profile lists it."""
    section.check(("title",), ("url", "retrieved", "file", "measured"))
    return Source(**{key: section.text(key) for key in section.data})


@dataclasses.dataclass(frozen=True)
class Reader:
    """Reads values and keeps where each came from."""

    sources: dict[str, Source]
    provenance: dict[str, Provenance]

    @classmethod
    def of(cls, top: Section) -> "Reader":
        """Return a reader of the values that cite the sources of a profile."""
        listed = top.section("sources")
        return cls({key: source(listed.section(key)) for key in listed.data}, {})

    def head(self, top: Section, file: str) -> dict[str, Any]:
        """Return the fields that profiles of every kind have; those of its values follow as they are read."""
        return {
            "name": top.text("name"),
            "title": top.text("title"),
            "aliases": top.texts("aliases") if "aliases" in top else (),
            "note": top.text("note") if "note" in top else None,
            "origin": file,
            "sources": MappingProxyType(self.sources),
            "provenance": MappingProxyType(self.provenance),
        }

    def part(self, part: type, section: Section) -> Any:  # noqa: ANN401 - an instance of `part`
        """Read a section into its dataclass."""
        fields = dataclasses.fields(part)
        optional = tuple(field.name for field in fields if field.default is not dataclasses.MISSING)
        section.check(tuple(field.name for field in fields if field.name not in optional), optional)
        values: dict[str, Any] = {}
        for name in section.data:
            unit = units(part).get(name)
            if unit is None:
                values[name] = section.flag(name) if name == "unified" else section.text(name)
            elif is_mapping(part, name):
                rates = section.section(name)
                rates.check((), get_args(Dtype))
                values[name] = MappingProxyType({key: self.value(rates, key, unit) for key in rates.data})
            else:
                values[name] = self.value(section, name, unit)
        return part(**values)

    def band(self, section: Section, key: str) -> Band:
        """Read a share with its range."""
        mid = self.value(section, key, "1")
        bounds = self.provenance[key].range
        if bounds is None:
            raise ProfileError(f"{section.where(key)}.range: missing")
        for bound in bounds:
            check_value(bound, key, f"{section.where(key)}.range")
        return Band(bounds[0], mid, bounds[1])

    def value(self, section: Section, key: str, unit: str) -> float:
        """Read one value with its pedigree."""
        entry = section.section(key)
        entry.check(*_VALUE_KEYS)
        value = check_value(entry.quantity("value", unit), entry.path, entry.where("value"))
        kind, source = self._pedigree(entry)
        self.provenance[entry.path] = Provenance(
            kind=kind,
            source=source,
            as_printed=str(entry.data["value"]),
            range=_range(entry, value, unit) if "range" in entry else None,
            note=entry.text("note") if "note" in entry else None,
            before=self._before(entry.section("before"), unit) if "before" in entry else None,
        )
        return value

    def _pedigree(self, entry: Section) -> tuple[Kind, str]:
        """Return kind and source of a value."""
        kind, source = entry.text("kind"), entry.text("from")
        if kind not in get_args(Kind):
            raise ProfileError(
                f"{entry.where('kind')}: unknown kind {kind!r}{did_you_mean(kind, get_args(Kind))}"
            )
        if source not in self.sources:
            listed = did_you_mean(source, list(self.sources))
            raise ProfileError(f"{entry.where('from')}: {source!r} is not listed under sources{listed}")
        return cast(Kind, kind), source

    def _before(self, entry: Section, unit: str) -> Before:
        """Read the value that a measured one stands instead of."""
        entry.check(*_BEFORE_KEYS)
        value = check_value(entry.quantity("value", unit), entry.path, entry.where("value"))
        kind, source = self._pedigree(entry)
        bounds = _range(entry, value, unit) if "range" in entry else None
        return Before(value, str(entry.data["value"]), kind, source, bounds)


def _range(entry: Section, value: float, unit: str) -> tuple[float, float]:
    bounds = entry.items("range")
    if len(bounds) != 2:
        entry.fail("range", "two values, low and high")
    low, high = (to_quantity(bound, unit, entry.where("range")) for bound in bounds)
    if not low <= value <= high:
        raise ProfileError(
            f"{entry.where('range')}: {entry.data['value']} is outside of {bounds[0]} to {bounds[1]}"
        )
    return low, high
