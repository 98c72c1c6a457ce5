"""Part of a plan: what measuring this machine has changed, and what is still assumed."""

from typing import Annotated

from kvcalc.quantity import Seconds
from kvcalc.records import record

Question = Annotated[str, ("fits", "first_limit", "offload")]
"""Which of a plan's questions a verdict answers."""


@record
class Calibrated:
    """One value that was measured, beside the one that it stands instead of, where there is one."""

    key: str  # of the profile
    unit: str  # of `before`, `measured` and `range`
    before: float | None  # the value of the built-in profile, or of the link on paper; null: there was none
    before_kind: str  # nominal, measured elsewhere, derived or assumed; empty where there was none
    measured: float  # on this machine
    range: tuple[float, float] | None  # of the measurement
    source: str  # title of the source: what measured it
    measured_on: str | None  # day of the measurement; null where a file of another tool does not tell it


@record
class Moved:
    """One verdict with the values before, and with the measured ones."""

    question: Question  # that it answers
    tier: str  # whose verdict it is; empty where it is none's
    mode: str  # of the tier
    before: str  # verdict with the values before
    measured: str  # verdict now
    changed: bool  # whether the two differ
    gain_before: Seconds | None  # time that restoring saves; null where the question is another one
    gain_measured: Seconds | None  # the same with the measured values


@record
class Calibration:
    """What a plan on a measured machine owes to the measurement."""

    values: tuple[Calibrated, ...]
    verdicts: tuple[
        Moved, ...
    ]  # every verdict of the plan, moved or not; none where nothing was known before
    assumed: tuple[str, ...]  # values that the plan uses and nobody has measured
    reason: str  # all of it in words
