"""What importers have in common: a measurement of which another tool told the rate alone."""

import math
import re
from collections.abc import Sequence
from dataclasses import field
from typing import NoReturn

from kvcalc.errors import ProfileError
from kvcalc.probe.results import Measurement
from kvcalc.records import record

FASTEST_LINK = 450e9
"""Rate above which no link of a host is [byte/second]: NVLink-C2C in one direction.  A cell above it is a
copy inside the device, as where a GPU's own memory is listed as a NUMA node of the host."""


@record
class Imported:
    """What one file of another tool says."""

    tool: str  # with its version
    measurements: tuple[Measurement, ...]
    devices: tuple[str, ...] = ()  # names, where the file tells them
    notes: tuple[str, ...] = ()  # what was left out, and why
    driver: str | None = None
    assumptions: tuple[str, ...] = field(default=())
    run: str | None = None  # date on which the tool ran, where the file tells it


def refuse(name: str, line: int, why: str) -> NoReturn:
    """Refuse a file at a line."""
    raise ProfileError(f"{name}:{line}: {why}")


def line_of(text: str, needle: str, start: int = 0) -> int:
    """Return the line that holds a piece of text, from a place on, else before it; 1 where none does."""
    at = text.find(needle, start)
    at = at if at >= 0 else text.find(needle)
    return text.count("\n", 0, at) + 1 if at >= 0 else 1


def rate_of(value: object) -> float | None:
    """Return a number that is finite and not negative, as a rate must be; None where it is not one."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        found = float(value)
    except OverflowError:
        return None
    return found if math.isfinite(found) and found >= 0 else None


def word_of(text: object, otherwise: str) -> str:
    """Return a version as it stands; another text where it could be something else, such as a name or a path.

    >>> word_of("fio-3.36", "?"), word_of("alice@host:/home", "?")
    ('fio-3.36', '?')
    """
    return text if isinstance(text, str) and re.fullmatch(r"[\w.+-]{1,40}", text) else otherwise


def told(
    *,
    test: str,
    series: str,
    path: str,
    direction: str,
    counted: str,
    mechanism: str,
    order: str = "",
    size: float,
    rate: float | None,
    device: int | None = None,
    pinned: bool | None = None,
    in_flight: int = 1,
    seconds: float | None = None,
    flags: Sequence[str] = (),
) -> Measurement:
    """Return a measurement without samples."""
    median = seconds if seconds is not None else size / rate if rate else 0.0
    return Measurement(
        test=test,
        series=series,
        device=device,
        path=path,
        direction=direction,
        pinned=pinned,
        mechanism=mechanism,
        order=order,
        counted=counted,
        chunk_bytes=size,
        n_chunks=1,
        operations=None,
        in_flight=in_flight,
        bandwidth=rate,
        bandwidth_range=None,
        t0=None,
        median=median,
        mad=None,
        p10=None,
        p90=None,
        median_range=None,
        outliers=0,
        enqueue=None,
        repeats=1,
        samples=(),
        verified=None,
        flags=tuple(flags),
    )
