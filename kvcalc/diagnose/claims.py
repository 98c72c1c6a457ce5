"""What somebody tells of a restore, in numbers with units: held against arithmetic, one finding each."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from types import MappingProxyType

from kvcalc.catalog.scenarios import Said, quantity
from kvcalc.diagnose.figures import Readings
from kvcalc.diagnose.results import ClaimCheck
from kvcalc.engines.layout import Layout
from kvcalc.errors import DomainError, KvcalcError, SettingsError, did_you_mean
from kvcalc.launch.audit import (
    Claim,
    Counters,
    audit,
    check_claim,
    check_reduction,
    explain_bytes_per_token,
    tier_fill,
)
from kvcalc.launch.audit.counters import UNATTRIBUTED
from kvcalc.launch.checks.check import Finding

UNITS: Mapping[str, str] = MappingProxyType(
    {
        **{name: "byte" for name in ("bytes", "piece", "tier_capacity", "working_set")},
        **{name: "second" for name in ("time", "ttft", "baseline", "device_hit")},
        **{name: "1" for name in ("speedup", "links", "requests", "before", "after", "printed")},
        **{name: "1" for name in ("device_hits", "tier_hits")},
        "link": "byte/second",
        "rate": "1/second",
        "bytes_per_token": "byte",
    }
)
"""What a claim may say, with the base unit of each."""

WORDS = ("quality", "fill")
"""What it may say in words: how its numbers were had, and the metric that is read as a tier's fill."""

_MAY_BE_ZERO = ("device_hits", "tier_hits")

_ALONE = ("before", "after", "printed", "bytes_per_token", "fill")


def claims_of(texts: Sequence[str], layout: Layout | None, by_source: bool = False) -> tuple[ClaimCheck, ...]:
    """Return what speaks against each claim; one that nothing speaks against says so.

    Parameters
    ----------
    texts : claims such as `ttft=50 ms,device_hit=100 ms`
    layout : of the model that they are about, for `bytes_per_token`
    by_source : whether counters beside the claims say which hits came from below the GPU

    Raises
    ------
    SettingsError
        If a claim cannot be read, or needs a model that was not named.
    """
    return tuple(check for text in texts for check in _checked(text, layout, by_source))


def hits_by_source(found: Readings) -> bool:
    """Whether a scrape counts the hits that came from below the GPU."""
    return found.counted.get("external_hits") is not None


def counters_of(found: Readings, layout: Layout | None, told: bool = False) -> tuple[ClaimCheck, ...]:
    """Return what the counters of tiers contradict; nothing where there is no tier.

    Parameters
    ----------
    found : the scrapes
    layout : of the model that they are about
    told : whether something is claimed of a tier, so that its counters would have to be there
    """
    counted = {name: None if item is None else item.value for name, item in found.counted.items()}
    queries, hits = counted.get("prefix_queries"), counted.get("prefix_hits")
    tier = told or any(counted.get(name) is not None for name in ("external_queries", "load_bytes"))
    if queries is None or hits is None or not tier:
        return ()
    counters = Counters(
        prefix_queries=queries,
        prefix_hits=hits,
        external_queries=counted.get("external_queries"),
        external_hits=counted.get("external_hits"),
        load_bytes=counted.get("load_bytes") if layout is not None else None,
        load_time=counted.get("load_seconds"),
        interval=found.seconds,
    )
    try:
        findings = audit(counters, 0.0 if layout is None else layout.bytes_per_token)
    except DomainError as error:
        findings = (Finding("error", str(error)),)
    return tuple(_check("the counters of tiers", item) for item in findings)


def _checked(text: str, layout: Layout | None, by_source: bool) -> Iterator[ClaimCheck]:
    said = _read(text)
    try:
        found = tuple(_findings(text, said, layout))
    except SettingsError:
        raise
    except KvcalcError as error:  # a draft without numbers, a metric that is no fill
        found = (Finding("error", str(error)),)
    if not found and not by_source and "tier_hits" not in said and _is_gain(said):
        found = (replace(UNATTRIBUTED, severity="warning", instead=_BY_SOURCE),)
    if not found:
        yield ClaimCheck(text, "none", "nothing speaks against it", "")
    yield from (_check(text, item) for item in found)


_BY_SOURCE = "device_hits and tier_hits beside the claim, or a scrape with both counters"


def _is_gain(said: Mapping[str, float | str]) -> bool:
    times = {name: float(said[name]) for name in ("speedup", "ttft", "baseline") if name in said}
    return Claim(speedup=times.get("speedup"), ttft=times.get("ttft"), baseline=times.get("baseline")).is_gain


def _findings(text: str, said: Mapping[str, float | str], layout: Layout | None) -> Iterator[Finding]:
    if "fill" in said:
        tier_fill({str(said["fill"]): 0.0})
    if "printed" in said:
        missing = [name for name in ("before", "after") if name not in said]
        if missing:
            raise SettingsError(f"--claim {text!r}: {missing[0]} is missing beside printed")
        yield from check_reduction(*(float(said[name]) for name in ("before", "after", "printed")))
    if "bytes_per_token" in said:
        if layout is None:
            raise SettingsError(f"--claim {text!r}: name the model it is about with --model")
        claimed, tp = float(said["bytes_per_token"]), layout.settings.tp
        yield from explain_bytes_per_token(layout.shape, claimed, layout.bytes_per_token, tp)
    whole = {item.name for item in fields(Claim) if item.type in (int, "int")}
    rest = {
        name: int(value) if name in whole else value for name, value in said.items() if name not in _ALONE
    }
    if rest:
        yield from check_claim(Claim(**rest))  # type: ignore[arg-type]


def _read(text: str) -> dict[str, float | str]:
    """Read `KEY=VALUE,KEY=VALUE`."""
    said: dict[str, float | str] = {}
    for part in text.split(","):
        name, equals, value = (word.strip() for word in part.partition("="))
        where = f"--claim {text!r}"
        if not equals or not value:
            raise SettingsError(f"{where}: write KEY=VALUE, for example 'ttft=50 ms,device_hit=100 ms'")
        if name not in (*UNITS, *WORDS):
            known = [*UNITS, *WORDS]
            hint = did_you_mean(name, known) or f"; known are {', '.join(known)}"
            raise SettingsError(f"{where}: unknown key {name!r}{hint}")
        if name in said:
            raise SettingsError(f"{where}: {name} is said twice")
        said[name] = value if name in WORDS else _number(name, value, where)
    return said


def _number(name: str, value: str, where: str) -> float:
    if UNITS[name] == "1":
        # A reduction is printed with its sign, "-49 %", and means a share of 0.49.
        digits = value.removesuffix("%").removeprefix("-" if name == "printed" else "")
        try:
            number = float(digits)
        except ValueError:
            raise SettingsError(f"{where}: {name} {value!r} is not a number without a unit") from None
        if not math.isfinite(number) or number < 0 or (number == 0 and name not in _MAY_BE_ZERO):
            least = "zero or more" if name in _MAY_BE_ZERO else "more than zero"
            raise SettingsError(f"{where}: {name} {value!r} must be {least}")
        return number / 100 if value.endswith("%") else number
    try:
        return quantity(Said(value, where), UNITS[name])
    except KvcalcError as error:
        raise type(error)(f"{where}: {name}: {error}") from None


def _check(told: str, finding: Finding) -> ClaimCheck:
    return ClaimCheck(told, finding.severity, finding.message, finding.instead)
