"""Where values stand on an axis, and which of them are written beside it."""

import math
from collections.abc import Sequence

from kvcalc.output.format import human
from kvcalc.records import record

_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
_PER_DECADE = ((1.0, 2.0, 5.0), (1.0, 3.0), (1.0,))


@record
class Axis:
    """A linear or logarithmic axis between two values; `at` gives shares of its length."""

    low: float
    high: float
    logarithmic: bool = False

    def at(self, value: float) -> float:
        """Return where a value stands, as a share of the axis, also outside it.

        >>> Axis(0.0, 4.0).at(1.0), Axis(1.0, 100.0, logarithmic=True).at(10.0)
        (0.25, 0.5)
        """
        low, high = self.low, self.high
        if self.logarithmic:
            value, low, high = (math.log(max(item, 1e-300)) for item in (value, low, high))
        return (value - low) / (high - low) if high > low else 0.5

    def ticks(self, most: int = 6) -> list[float]:
        """Return round values on the axis, not many more than `most`.

        >>> Axis(0.0, 34.0).ticks(4), Axis(2e6, 3e9, logarithmic=True).ticks(4)
        ([0.0, 10.0, 20.0, 30.0], [10000000.0, 100000000.0, 1000000000.0])
        """
        return self._decades(most) if self.logarithmic else _even(self.low, self.high, most)

    def _decades(self, most: int) -> list[float]:
        first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
        for digits in _PER_DECADE:
            found = [digit * 10.0**power for power in range(first, last + 1) for digit in digits]
            inside = [value for value in found if self.low <= value <= self.high]
            if len(inside) <= most + 1:
                return inside
        step = math.ceil(len(inside) / most)
        return [value for value in inside if round(math.log10(value)) % step == 0]


def _even(low: float, high: float, most: int) -> list[float]:
    rough = (high - low) / most
    if rough <= 0:
        return [low]
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(step * power for step in _STEPS if step * power >= rough * 0.999)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [number * step for number in range(first, last + 1)]


def binary_ticks(longest: float, most: int = 5) -> list[float]:
    """Return multiples of a power of two up to a length, as context lengths are spoken of.

    >>> binary_ticks(131072)
    [0.0, 32768.0, 65536.0, 98304.0, 131072.0]
    """
    step = 2.0 ** math.ceil(math.log2(max(1.0, longest / most)))
    return [number * step for number in range(math.floor(longest / step) + 1)]


def binary_text(length: float) -> str:
    """Return a length in powers of two where it is one of them.

    >>> binary_text(32768), binary_text(3 * 2**20), binary_text(100)
    ('32Ki', '3Mi', '100')
    """
    for factor, sign in ((2**20, "Mi"), (2**10, "Ki")):
        if length >= factor and length % (factor / 4) == 0:
            return f"{length / factor:g}{sign}"
    return f"{length:,.0f}"


def tick_texts(values: Sequence[float], unit: str) -> list[str]:
    """Return the values of ticks without the zeros that three digits would give them.

    >>> tick_texts([0.0, 5e9, 1e10], "byte"), tick_texts([0.5, 1.0], "second")
    (['0', '5 GB', '10 GB'], ['500 ms', '1 s'])
    """
    return [_short(human(value, unit)) if value else "0" for value in values]


def _short(text: str) -> str:
    number, space, sign = text.partition(" ")
    if "." in number:
        number = number.rstrip("0").rstrip(".")
    return number + space + sign
