"""Prefixes for the axes and tables of pages: one for all values of a column."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

_DECIMAL = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))
_SMALL = ((1.0, ""), (1e-3, "m"), (1e-6, "µ"), (1e-9, "n"))
_SHORT = {
    "byte": "B",
    "byte/second": "B/s",
    "flop": "FLOP",
    "flop/second": "FLOP/s",
    "flop/token": "FLOP/token",
    "second": "s",
    "watt": "W",
    "1/second": "/s",
    "token/second": "token/s",
    "second/byte": "s/B",
}
_PREFIXED = {"B", "B/s", "FLOP", "FLOP/s", "FLOP/token", "s", "W"}


@dataclass(frozen=True, slots=True)
class Scale:
    """What values are divided by before they are shown, and the unit they are in then."""

    factor: float
    unit: str  # empty for bare numbers

    @classmethod
    def of(cls, unit: str, values: Sequence[float]) -> "Scale":
        """Return the scale that shows the middle of the values with few digits.

        >>> Scale.of("byte/second", [1e10, 5e10])
        Scale(factor=1000000000.0, unit='GB/s')
        """
        short = _SHORT.get(unit, "" if unit == "1" else unit)
        sizes = sorted(abs(value) for value in values if value and math.isfinite(value))
        if short not in _PREFIXED or not sizes:
            return cls(1.0, short)
        middle = sizes[len(sizes) // 2]
        steps = _SMALL if short == "s" else _DECIMAL
        factor, prefix = next(((f, p) for f, p in steps if middle >= f), steps[-1])
        return cls(factor, prefix + short)

    def show(self, value: float | str | None) -> str:
        """Return a value as a table shows it.

        >>> Scale(1e9, "GB").show(1.5e9)
        '1.5'
        """
        if value is None:
            return "none"
        if isinstance(value, str):
            return value
        scaled = value / self.factor
        if scaled and not 1e-3 <= abs(scaled) < 1e6:
            return f"{scaled:.3g}"
        return f"{float(f'{scaled:.4g}'):,.10g}"
