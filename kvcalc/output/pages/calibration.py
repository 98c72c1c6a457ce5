"""What measuring the machine has changed, as a part of the page of a plan."""

from kvcalc.calibration_results import Calibrated, Calibration, Moved
from kvcalc.output.fields import text
from kvcalc.output.format import human, range_text
from kvcalc.output.page import Cell, Grid, grid

_QUESTIONS = {"fits": "does it fit", "first_limit": "first limit", "offload": "restore or recompute"}
_MOST = 8


IMPORTED = ", imported by kvcalc probe"
"""What follows the name of another tool in the title of a source."""


def calibration_blocks(calibration: Calibration) -> tuple[Grid, ...]:
    """Return the measured values beside those before, and every verdict under both."""
    values: list[tuple[Cell | str, ...]] = [_value(item) for item in calibration.values]
    verdicts: list[tuple[Cell | str, ...]] = [_verdict(item) for item in calibration.verdicts]
    tools = _tools(calibration)
    header = ("value", "before", f"measured ({tools})" if tools else "measured", "range", "change")
    if not calibration.verdicts:
        said = (f"{calibration.reason[:1].upper()}{calibration.reason[1:]}.", _assumed(calibration))
        return (grid("Measured", header, "lrrrr", values, said),)
    return (
        grid("Measured, instead of what was known of its kind", header, "lrrrr", values),
        grid(
            "Verdicts before and with the measured values",
            ("", "tier", "before", "now", "gain before", "gain now"),
            "llllrr",
            verdicts,
            (f"{calibration.reason[:1].upper()}{calibration.reason[1:]}.", _assumed(calibration)),
        ),
    )


def _tools(calibration: Calibration) -> str:
    """Return which other tools measured the values, and the day where known; nothing where the probe did."""
    others = [item for item in calibration.values if IMPORTED in item.source]
    tools = [(item.source.partition(IMPORTED)[0].split()[0], item.measured_on) for item in others]
    return "; ".join(dict.fromkeys(tool if day is None else f"{tool}, {day}" for tool, day in tools))


def _value(item: Calibrated) -> tuple[Cell | str, ...]:
    before = f"{_number(item.before, item)} ({item.before_kind})" if item.before is not None else ""
    change = f"{item.measured / item.before - 1:+.1%}".replace("%", " %") if item.before else ""
    ends = "" if item.range is None else range_text(*item.range, item.unit)
    return (
        item.key,
        before,
        Cell(_number(item.measured, item), "bold"),
        ends,
        change,
    )


def _number(value: float, item: Calibrated) -> str:
    return human(value, item.unit, share=item.unit == "1")


def _verdict(item: Moved) -> tuple[Cell | str, ...]:
    now = Cell(item.measured.replace("_", " "), "warn" if item.changed else "")
    gains = ["" if gain is None else text(item, name) for name, gain in _gains(item)]
    return _QUESTIONS[item.question], item.tier, item.before.replace("_", " "), now, *gains


def _gains(item: Moved) -> tuple[tuple[str, object], ...]:
    return ("gain_before", item.gain_before), ("gain_measured", item.gain_measured)


def _assumed(calibration: Calibration) -> str:
    if not calibration.assumed:
        return "Nothing that it uses is assumed any more."
    more = f" and {len(calibration.assumed) - _MOST} more" if len(calibration.assumed) > _MOST else ""
    return f"Still assumed: {', '.join(calibration.assumed[:_MOST])}{more}."
