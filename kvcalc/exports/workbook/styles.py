"""How cells look: inputs and formulas told apart, quantities readable, every sheet ready to print."""

from typing import Any

_BYTES = '[>=1000000000]#,##0.00,,," GB{0}";[>=1000000]#,##0.00,," MB{0}";#,##0.##" B{0}"'
_SECONDS = "[>=1]#,##0.000;[>=0.001]0.00000;0.00E+00"
_COUNTS = "[>=1000]#,##0;[>=10]0.0;0.0000"
_WHOLE = "#,##0"

FORMATS = {
    "byte": _BYTES.format(""),
    "byte/second": _BYTES.format("/s"),
    "byte/token": '#,##0.##" B"',
    "second": _SECONDS,
    "token": "#,##0.##",
    "token/second": "#,##0.0",
    "flop": "0.000E+00",
    "flop/second": "0.000E+00",
    "USD": "0.0000",
    "USD/second": "0.000000",
    "1": _COUNTS,
    "1/second": "0.0000",
}
"""Number format by unit; values stay in base units, whatever is shown."""

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

    def input(self, unit: str, whole: bool = False) -> Any:
        """Return the look of a number that a planner may change."""
        form = _WHOLE if whole else FORMATS.get(unit, _COUNTS)
        return self.of(font_color=BLUE, bg_color=PALE, border=1, border_color="#C9B458", num_format=form)

    def formula(self, unit: str, bold: bool = False) -> Any:
        """Return the look of a number that follows from the inputs."""
        what: dict[str, Any] = {"num_format": FORMATS.get(unit, "General"), "align": "right"}
        return self.of(**what, bold=True) if bold else self.of(**what)

    def words(self, bold: bool = False) -> Any:
        """Words that follow from the inputs."""
        return self.of(text_wrap=True, bold=True) if bold else self.of(text_wrap=True)

    def fixed(self) -> Any:
        """Return the look of what this workbook does not change."""
        return self.of(font_color=GREY, italic=True, text_wrap=True, align="left")
