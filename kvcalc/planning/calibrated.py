"""How a plan's verdicts move between the values of a profile and those that were measured instead."""

import math
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from types import MappingProxyType
from typing import Any

from kvcalc.calibration_results import Calibrated, Calibration, Moved
from kvcalc.profiles import Band, Before, Hardware, Provenance
from kvcalc.results import PlanResult
from kvcalc.scenario import Scenario

NOTHING_BEFORE = "nothing was known of it before, so there is no verdict to compare with"


def calibration_of(
    scenario: Scenario, result: PlanResult, answer: Callable[[Scenario], PlanResult]
) -> Calibration | None:
    """Return what measured values change; None for a machine none of whose values was measured on it.

    `answer` plans the same scenario on the machine as it was known before.
    """
    hardware = scenario.hardware
    measured = hardware.measured_here
    if not measured:
        return None
    values = tuple(_value(hardware, key, hardware.provenance[key]) for key in measured)
    assumed = tuple(key for key, source in result.sources.items() if source.kind == "assumed")
    if all(value.before is None for value in values):
        return Calibration(values, (), assumed, NOTHING_BEFORE)
    verdicts = _verdicts(answer(replace(scenario, hardware=as_before(hardware))), result)
    return Calibration(values, verdicts, assumed, _reason(verdicts))


def as_before(hardware: Hardware) -> Hardware:
    """Return a machine with every measured value as it was before it was measured."""
    provenance = dict(hardware.provenance)
    for key in hardware.measured_here:
        before = hardware.provenance[key].before
        part = _replaced(hardware, key.split("."), before)
        if part is None:
            continue  # a value that every machine has, and of which nothing else is known
        hardware = part
        if before is None:
            del provenance[key]
        else:
            provenance[key] = Provenance(before.kind, before.source, before.as_printed, before.range)
    return replace(hardware, provenance=MappingProxyType(provenance))


def _replaced(part: Any, path: list[str], before: Before | None) -> Any:  # noqa: ANN401 - any level of a profile
    """Return a part with a value as it was before, without it where there was none; None where it must be."""
    name, *rest = path
    now = part[name] if isinstance(part, Mapping) else getattr(part, name)
    if now is None:
        return part  # its section has gone with another value of it
    if rest or before is None:
        inner = _replaced(now, rest, before) if rest else None
        if inner is None and not _may_lack(part, name):
            return None
        return replace(part, **{name: inner})
    if isinstance(part, Mapping):
        return MappingProxyType({**part, name: before.value})
    if isinstance(now, Band):
        low, high = before.range or (before.value, before.value)
        return replace(part, **{name: Band(low, before.value, high)})
    return replace(part, **{name: before.value})


def _may_lack(part: Any, name: str) -> bool:  # noqa: ANN401 - any level of a profile
    if isinstance(part, Mapping):
        return False  # such as the peaks of a device, some of which every machine has
    return any(item.name == name and item.default is None for item in fields(part))


_UNITS = {
    "bandwidth": "byte/second",
    "latency": "second",
    "per_piece": "second",
    "capacity": "byte",
    "iops": "1/second",
}


def _value(hardware: Hardware, key: str, found: Provenance) -> Calibrated:
    part: Any = hardware
    for name in key.split("."):
        part = part[name] if isinstance(part, Mapping) else getattr(part, name)
    now = part.mid if isinstance(part, Band) else part
    unit = _UNITS.get(key.rpartition(".")[2], "flop/second" if ".flops." in key else "1")
    before = found.before
    old, kind = (None, "") if before is None else (before.value, before.kind)
    source = hardware.sources.get(found.source)
    title, day = (found.source, None) if source is None else (source.title, source.measured)
    return Calibrated(key, unit, old, kind, float(now), found.range, title, day)


def _verdicts(earlier: PlanResult, result: PlanResult) -> tuple[Moved, ...]:
    words = [("fits", _fit(earlier), _fit(result)), ("first_limit", earlier.first_limit, result.first_limit)]
    found = [Moved(name, "", "", old, new, old != new, None, None) for name, old, new in words]
    old_rows = {(row.tier, row.mode): row for row in earlier.offload}
    for row in result.offload:
        old_row = old_rows.get((row.tier, row.mode))
        before = "" if old_row is None else old_row.verdict
        found.append(
            Moved(
                question="offload",
                tier=row.tier,
                mode=row.mode,
                before=before,
                measured=row.verdict,
                changed=before != row.verdict,
                gain_before=None if old_row is None else _gain(old_row),
                gain_measured=_gain(row),
            )
        )
    return tuple(found)


def _fit(result: PlanResult) -> str:
    return "fits" if result.fits else "does not fit"


def _gain(row: Any) -> float | None:  # noqa: ANN401 - a row of an offload table
    total = row.cached_total if row.overlapped_total is None else row.overlapped_total
    gain = float(row.recompute) - float(total)
    return gain if math.isfinite(gain) else None


_QUESTIONS = {"fits": "whether it fits", "first_limit": "the first limit"}


def _reason(verdicts: tuple[Moved, ...]) -> str:
    moved = [verdict for verdict in verdicts if verdict.changed]
    if not moved:
        return "the measured values change no verdict"
    parts = [
        f"{_QUESTIONS.get(verdict.question, f'offload to {verdict.tier}')} from "
        f"{verdict.before.replace('_', ' ') or 'unknown'} to {verdict.measured.replace('_', ' ')}"
        for verdict in moved
    ]
    return f"the measured values turn {'; '.join(parts)}"
