"""How cells look: inputs and formulas told apart, quantities readable, every sheet ready to print."""

from collections.abc import Mapping
from typing import Any

_WHOLE = "#,##0"

_FORMATS: Mapping[str, tuple[tuple[float, str], ...]] = {
    "byte": ((1e9, '#,##0.00,,," GB"'), (1e6, '#,##0.00,," MB"'), (0.0, '#,##0.##" B"')),
    "byte/second": ((1e9, '#,##0.00,,," GB/s"'), (1e6, '#,##0.00,," MB/s"'), (0.0, '#,##0" B/s"')),
    "byte/token": ((0.0, '#,##0.##" B"'),),
    "second": ((1.0, "#,##0.000"), (0.0, "0.000000")),
    "token": ((0.0, "#,##0.##"),),
    "token/second": ((0.0, "#,##0.0"),),
    "flop": ((0.0, "0.000E+00"),),
    "flop/second": ((0.0, "0.000E+00"),),
    "USD": ((0.0, "0.0000"),),
    "USD/second": ((0.0, "0.000000"),),
    "1": ((1000.0, _WHOLE), (100.0, "#,##0.0"), (0.0, "0.0000")),
    "1/second": ((0.0, "0.0000"),),
}
"""Number formats by unit, each from the size of a value on; values stay in base units, whatever is shown.

One format for all sizes would need conditions, which some programs print without the sign of a loss.
"""


def number_format(unit: str, value: Any) -> str:
    """Return how a value of this unit and size is shown.

    >>> number_format("byte", 54e9), number_format("second", -0.2)
    ('#,##0.00,,," GB"', '0.000000')
    """
    size = abs(value) if isinstance(value, (int, float)) else 0.0
    if unit == "1" and isinstance(value, int):
        return _WHOLE
    return next((form for least, form in _FORMATS.get(unit, ()) if size >= least), "General")


WIDTHS = {"label": 44, "value": 18, "unit": 13, "note": 62, "key": 36}

BLUE, GREY, DARK, PALE = "#0B3FB3", "#6B6B6B", "#1F2A37", "#FFF8DC"
GOOD, BAD = "#0A6B2B", "#B3261E"


class Styles:
    """The formats of one workbook, each made once."""

    def __init__(self, book: Any) -> None:
        self.book = book
        self.made: dict[tuple[tuple[str, Any], ...], Any] = {}

    def of(self, **what: Any) -> Any:
        """Return a format."""
        full = {"font_name": "Calibri", "font_size": 11, "valign": "top", **what}
        key = tuple(sorted(full.items()))
        if key not in self.made:
            self.made[key] = self.book.add_format(full)
        return self.made[key]

    def title(self) -> Any:
        """Heading of a sheet."""
        return self.of(bold=True, font_size=16, font_color=DARK)

    def head(self) -> Any:
        """Heading of a column."""
        return self.of(bold=True, font_color="#FFFFFF", bg_color=DARK, border=0, text_wrap=True)

    def section(self) -> Any:
        """Heading of a part of a sheet."""
        return self.of(bold=True, font_color=DARK, bg_color="#E8EDF3")

    def label(self) -> Any:
        """Words."""
        return self.of(text_wrap=True)

    def faint(self) -> Any:
        """Words that few need."""
        return self.of(font_color=GREY, font_size=9)

    def unit(self) -> Any:
        """Return the look of the unit behind a number."""
        return self.of(font_color=GREY, indent=1)

    def input(self, unit: str, value: Any, whole: bool) -> Any:
        """Return the look of a number that a planner may change."""
        form = _WHOLE if whole else number_format(unit, value)
        return self.of(font_color=BLUE, bg_color=PALE, border=1, border_color="#C9B458", num_format=form)

    def formula(self, unit: str, value: Any, bold: bool = False) -> Any:
        """Return the look of a number that follows from the inputs, which is `value` now."""
        what: dict[str, Any] = {"num_format": number_format(unit, value), "align": "right"}
        return self.of(**what, bold=True) if bold else self.of(**what)

    def words(self, bold: bool = False) -> Any:
        """Words that follow from the inputs."""
        return self.of(text_wrap=True, bold=True) if bold else self.of(text_wrap=True)

    def fixed(self) -> Any:
        """Return the look of what this workbook does not change."""
        return self.of(font_color=GREY, italic=True, text_wrap=True, align="left")
