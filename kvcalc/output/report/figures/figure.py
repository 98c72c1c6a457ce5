"""What every chart of a report has: a sentence, a drawing, a legend, and the numbers behind it."""

from kvcalc.output.page import Grid
from kvcalc.records import record


@record
class Figure:
    """One chart: `says` is what a reader should take from it, and what stands for it where it is not seen."""

    title: str
    says: str
    drawing: str  # SVG, whose texts are escaped
    table: Grid  # its numbers
    legend: tuple[tuple[str, str], ...] = ()  # class of a colour, what has it
    gutter: str = ""  # class of the room that labels need beside the drawing


SERIES = 7
"""Colours that a page has for things that are told apart [1]."""


def series(index: int) -> str:
    """Return the class of the colour of the so-manieth thing.

    >>> series(0), series(8)
    ('s1', 's2')
    """
    return f"s{index % SERIES + 1}"
