"""What the commands answer on a machine or a part of one, value by value."""

from collections.abc import Mapping
from dataclasses import dataclass

from kvcalc.results import Result


@dataclass(frozen=True)
class HardwareValue:
    """One value of a machine, in base units and as its source prints it."""

    key: str  # dotted, as `--set` takes it
    value: float | None  # in base units
    unit: str  # base unit
    as_printed: str  # as the source prints it
    kind: str  # nominal, measured, derived or assumed
    source: str  # key into `HardwareResult.references`, or "user"
    url: str | None  # page of the source
    range: tuple[float, float] | None  # low and high, in base units
    note: str  # what else to know of it


@dataclass(frozen=True)
class Reference:
    """A page, file or log that values were read from."""

    title: str  # what it calls itself
    url: str | None  # where it is
    retrieved: str | None  # date


@dataclass(frozen=True)
class HardwareResult(Result):
    """Answer of `kvcalc hardware show`."""

    name: str  # of the profile
    title: str  # name in full
    vendor: str  # who makes it
    aliases: tuple[str, ...]  # other names that find it
    via: Mapping[str, str]  # what carries each link
    unified: bool  # CPU and device share one memory
    values: tuple[HardwareValue, ...]  # one row a value
    references: Mapping[str, Reference]  # by the key that `values` name
    notes: tuple[str, ...]  # remarks on the machine
    kind: str = "accelerators"  # or hosts, drives, nics, instances

    SCHEMA = "kvcalc.hardware-show/1"
