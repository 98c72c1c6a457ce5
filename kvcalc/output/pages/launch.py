"""The block of `kvcalc plan --check-config`: what the launch file will and will not do."""

from kvcalc.output.page import Cell, Grid, Style
from kvcalc.results import ConfigCheck

_STYLES: dict[str, Style] = {"error": "bad", "warning": "warn", "info": "dim"}


def launch_grid(checks: tuple[ConfigCheck, ...]) -> Grid:
    """Return one row a finding, the worst first."""
    rows = tuple(
        (Cell(item.severity, _STYLES[item.severity]), item.where, item.id, _told(item)) for item in checks
    )
    counts = [f"{sum(item.severity == name for item in checks)} {name}" for name in _STYLES]
    title = f"Launch check: {', '.join(counts)}"
    return Grid(title, ("", "where", "check", "why"), "llll", rows, wide="under")


def _told(item: ConfigCheck) -> str:
    instead = f" Write: {item.instead}." if item.instead else ""
    return f"{item.message}.{instead}"
