"""A result as CSV that a spreadsheet can compute with: units in the header, full precision."""

import csv
import io

from kvcalc.output.fields import Answer, flat

_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


def render(answer: Answer) -> str:
    """Return a header `name [unit]` and one line for each row of the result's main list."""
    header, rows = flat(answer)
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([safe(column.header) for column in header])
    writer.writerows([[cell(value) for value in row] for row in rows])
    return out.getvalue()


def cell(value: object) -> str:
    """Return a value as the text of a cell."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return safe(value)
    return repr(value)


def safe(text: str) -> str:
    """Keep a text that a spreadsheet would run as a formula from being one.

    >>> safe("=1+1"), safe("llama")
    ("'=1+1", 'llama')
    """
    return "'" + text if text.lstrip().startswith(_FORMULA_STARTS) else text
