"""Numbers of mechanisms and tiers with where they are from, as their data files hold them."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, TypeVar

from kvcalc.errors import SettingsError, did_you_mean
from kvcalc.profiles import Kind
from kvcalc.results import Source

T = TypeVar("T")


@dataclass(frozen=True)
class Figure:
    """One number in base units, how far to trust it, and its source."""

    value: float
    kind: Kind
    source: str  # address of the page, or what was assumed
    note: str = ""

    @property
    def cited(self) -> Source:
        """The figure's origin as a result quotes it."""
        return Source(self.kind, self.source, f"{self.value:g}", self.note)


def data_of(name: str) -> Mapping[str, Any]:
    """Return the content of a data file of this package."""
    found: Mapping[str, Any] = json.loads((files(__package__) / name).read_text(encoding="utf-8"))
    return found


def named(known: Mapping[str, T], name: str, what: str) -> T:
    """Return what has this name, or raise SettingsError with the nearest one there is."""
    if name not in known:
        hint = did_you_mean(name, list(known)) or f"; known are {', '.join(known)}"
        raise SettingsError(f"unknown {what} {name!r}{hint}")
    return known[name]


def figures_of(
    entry: Mapping[str, Any], names: tuple[str, ...], sources: Mapping[str, Any]
) -> dict[str, Figure]:
    """Return the figures of an entry by name; one that the entry lacks is left out."""
    return {name: _figure(entry[name], sources) for name in names if name in entry}


def _figure(said: Mapping[str, Any], sources: Mapping[str, Any]) -> Figure:
    page = sources[said["source"]]
    place = page.get("url") or page["title"]
    return Figure(float(said["value"]), said["kind"], place, said.get("note", ""))
