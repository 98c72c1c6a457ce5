"""Each figure against what such machines usually reach: pass, warn or fail, and why."""

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from kvcalc.probe.derive import link_rate
from kvcalc.probe.flags import FLAGS
from kvcalc.probe.results import Check, Derived, DeviceFacts, Machine, Measurement, SeriesFit, TestRun
from kvcalc.probe.session import usable
from kvcalc.records import record

ALONE = 0.9
"""Share of their rates alone that devices must keep together to count as having links of their own [1]."""

FILE = files(__package__) / "expected.json"


@record
class Found:
    """Everything that checks look at."""

    machine: Machine
    measurements: Sequence[Measurement]
    fits: Sequence[SeriesFit]
    tests: Sequence[TestRun]
    derived: Derived


@cache
def expected() -> tuple[Mapping[str, Any], ...]:
    """Return the table of usual ranges."""
    return tuple(json.loads(FILE.read_text(encoding="utf-8"))["ranges"])


def checks_of(found: Found) -> tuple[Check, ...]:
    """Return all checks, the ranges first, then verification, flags and tests that did not run."""
    return (
        *_ranges(found),
        *_pinned(found),
        *_together(found),
        *_verification(found),
        *_flags(found),
        *_fits(found),
    )


def _values(found: Found) -> dict[str, float | None]:
    rows, fits = found.measurements, found.fits
    copy = next((row for row in rows if row.series == "memory.copy" and usable(row)), None)
    bound = next((device.memory_bound for device in found.machine.devices), None)
    disk = next((row for row in rows if row.series == "disk.read.depth1" and row.chunk_bytes == 4096), None)
    return {
        "h2d": link_rate("h2d", rows, fits),
        "d2h": link_rate("d2h", rows, fits),
        "memory_share": float(copy.bandwidth) / float(bound) if copy and copy.bandwidth and bound else None,
        "disk_latency": float(disk.median) if disk else None,
        **{name: getattr(found.derived, name) for name in Derived.__annotations__},
    }


def _ranges(found: Found) -> Iterator[Check]:
    values = _values(found)
    kinds = {device.link.kind for device in found.machine.devices} | {"memory", "disk"}
    for row in expected():
        value = values.get(row["value"])
        if value is None or row["kind"] not in kinds:
            continue
        low, high = row["good"]
        verdict, detail = "pass", f"as usual: {row['source']}"
        if not low <= value <= high:
            fails = value < row["fair"] and not row.get("provisional")
            verdict = "fail" if fails else "warn"
            detail = (
                f"below what is usual; look at {row['causes']}"
                if value < low
                else f"above what is usual: {row['causes']}"
            )
        yield Check(row["id"], verdict, value, (low, high), row["unit"], detail)


def _pinned(found: Found) -> Iterator[Check]:
    share = found.derived.pageable_share
    if share is not None and not any(device.integrated for device in found.machine.devices):
        verdict = "pass" if share < 1 else "warn"
        words = (
            "pinned memory is faster than pageable" if share < 1 else "pageable memory is as fast as pinned"
        )
        yield Check("pinned_over_pageable", verdict, 1 / float(share), None, "1", words)


def _together(found: Found) -> Iterator[Check]:
    share = found.derived.together_share
    if share is not None:
        shared = share < ALONE
        words = (
            FLAGS["shared_link"].meaning if shared else "each device keeps its rate while all copy at once"
        )
        yield Check("shared_link", "warn" if shared else "pass", share, (ALONE, 1.0), "1", words)


def _verification(found: Found) -> Iterator[Check]:
    compared = [row for row in found.measurements if row.verified is not None]
    if compared:
        wrong = sorted({row.series for row in compared if row.verified is False})
        detail = f"content arrived as it was sent in all {len(compared)} sizes that were compared"
        if wrong:
            detail = f"other bytes arrived than were sent: {', '.join(wrong[:5])}"
        yield Check("verification", "fail" if wrong else "pass", float(len(wrong)), (0, 0), "1", detail)


_SAID = ("fail", "warn")


def _flags(found: Found) -> Iterator[Check]:
    for device in found.machine.devices:
        yield from _of_device(device)
    seen: dict[str, list[str]] = {}
    for row in found.measurements:
        for name in row.flags:
            seen.setdefault(name, []).append(row.series)
    for name in found.machine.flags:
        seen.setdefault(name, []).append("machine")
    for name, series in seen.items():
        flag = FLAGS[name]
        if flag.severity in _SAID and name != "verification":
            where = ", ".join(dict.fromkeys(series[:3])) + (", ..." if len(set(series)) > 3 else "")
            sizes = "1 size" if len(series) == 1 else f"{len(series)} sizes"
            count = f" ({sizes})" if "machine" not in series else ""
            yield Check(name, flag.severity, None, None, "1", f"{flag.meaning}: {where}{count}")


def _of_device(device: DeviceFacts) -> Iterator[Check]:
    link = device.link
    if link.kind == "pcie" and link.generation is not None and "link_degraded" not in device.flags:
        words = f"PCIe {link.generation} x{link.width} while it copied, as device and slot allow"
        yield Check("link_under_load", "pass", float(link.generation), None, "1", words)
    for name in device.flags:
        flag = FLAGS[name]
        if flag.severity in _SAID:
            yield Check(name, flag.severity, None, None, "1", f"{flag.meaning}: device {device.index}")


def _fits(found: Found) -> Iterator[Check]:
    for fit in found.fits:
        if not fit.published:
            yield Check(
                f"fit.{fit.series}", "warn", None, None, "byte/second", f"no line is published: {fit.reason}"
            )
