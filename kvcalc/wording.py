"""Numbers inside sentences: counts with their noun, sizes and times in the units that people say them in.

For messages of the calculating core, which knows no pages; what stands alone on a page is rounded by
`kvcalc.output.format`.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kvcalc.quantity import Real

GIGABYTE = 1e9
"""The unit in which sizes are said [byte]."""


def counted(count: "Real", one: str, many: str | None = None) -> str:
    """Return a count with its noun, and what goes with it, in the right number.

    >>> counted(1, "request has", "requests have"), counted(1200, "block")
    ('1 request has', '1,200 blocks')
    """
    return f"{count:,.0f} {one if count == 1 else many or one + 's'}"


def size_text(size: float) -> str:
    """Return bytes in three digits; with "/s" behind it a rate.

    >>> size_text(54e9)
    '54 GB'
    """
    return f"{size / GIGABYTE:.3g} GB"


def said_size(size: float) -> str:
    """Return bytes in four digits, as what a user said is repeated.

    >>> said_size(512.5e9)
    '512.5 GB'
    """
    return f"{size / GIGABYTE:.4g} GB"


def part_text(size: float) -> str:
    """Return bytes to a tenth of a gigabyte, so that parts of a memory can be added up.

    >>> part_text(141.04e9)
    '141.0 GB'
    """
    return f"{size / GIGABYTE:.1f} GB"


def time_text(seconds: float) -> str:
    """Return a time in three digits, in seconds or milliseconds.

    >>> time_text(2.5), time_text(0.0123)
    ('2.5 s', '12.3 ms')
    """
    return f"{seconds:.3g} s" if seconds >= 1 else f"{seconds * 1e3:.3g} ms"
