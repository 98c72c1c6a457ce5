"""What importers have in common: a measurement of which another tool told the rate alone."""

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


def refuse(name: str, line: int, why: str) -> NoReturn:
    """Refuse a file at a line."""
    raise ProfileError(f"{name}:{line}: {why}")


def line_of(text: str, needle: str, after: str = "") -> int:
    """Return the line that holds a piece of text, after the first place of another; 1 where none does."""
    start = max(0, text.find(after)) if after else 0
    at = text.find(needle, start)
    return text.count("\n", 0, at) + 1 if at >= 0 else 1


def told(
    *,
    test: str,
    series: str,
    path: str,
    direction: str,
    counted: str,
    mechanism: str,
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
        order="",
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
