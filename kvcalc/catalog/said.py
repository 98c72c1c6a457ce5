"""What was said, as it was said: values with the place where they stand, and all of them as one question.

Apart from their reading, so that the command line knows its own words without loading numpy.
"""

import re
from collections.abc import Mapping
from typing import Any

from kvcalc.errors import SettingsError, did_you_mean
from kvcalc.keys import TIER_UNITS, TIER_WORDS
from kvcalc.records import record


@record
class Said:
    """One value as the user gave it, and where, for the error message."""

    value: Any
    where: str  # "--tp", "scenario.yaml: workload.prompt", "tp"
    numbers: bool = False  # a bare number is a base-unit value (library arguments only)


@record
class Question:
    """Everything that was said, before model and machine are looked up."""

    model: str | None
    hardware: str | None
    said: Mapping[str, Said]
    tiers: Mapping[str, Mapping[str, Said]]
    replaced: Mapping[str, Said]  # --set: profile values by dotted key

    def merged(self, other: "Question") -> "Question":
        """Return this question with what `other` says taking precedence."""
        return Question(
            model=other.model or self.model,
            hardware=other.hardware or self.hardware,
            said={**self.said, **other.said},
            tiers={**self.tiers, **other.tiers},
            replaced={**self.replaced, **other.replaced},
        )


_APART = re.compile(r",(?![^\[]*\])")
"""A comma between two parts of a tier, not one between the numbers of a distribution."""


def tier_option(text: str) -> tuple[str, dict[str, Said]]:
    """Read ``"dram=512 GB@54 GB/s"``, optionally followed by ``,setup=12 ms``."""
    name, equals, rest = text.partition("=")
    first, *more = _APART.split(rest)
    capacity, at, bandwidth = first.partition("@")
    where = f"--tier {text!r}"
    if not equals or not name.strip() or not (at or capacity.strip()):
        raise SettingsError(f"{where}: write NAME=CAPACITY@BANDWIDTH, for example 'dram=512 GB@54 GB/s'")
    if not at:
        rate = capacity.lstrip().startswith("{") or "/s" in capacity
        meant = f"@{capacity.strip()}" if rate else f"{capacity}@54 GB/s"
        raise SettingsError(f"{where}: bandwidth is missing; write for example '{name}={meant}'")
    said = {"bandwidth": Said(bandwidth.strip(), where)}
    if capacity.strip():
        said["capacity"] = Said(capacity.strip(), where)
    for part in more:
        key, equals, value = part.partition("=")
        if key.strip() not in (*TIER_UNITS, *TIER_WORDS):
            known = did_you_mean(key.strip(), [*TIER_UNITS, *TIER_WORDS])
            if key.strip()[:1].isdigit():
                known = "; a range is written LOW..HIGH, for example 20..30 GB/s"
            raise SettingsError(f"{where}: unknown key {key.strip()!r}{known}")
        if not equals:
            raise SettingsError(f"{where}: {key.strip()} has no value; write KEY=VALUE")
        said[key.strip()] = Said(value.strip(), where)
    return name.strip(), said
