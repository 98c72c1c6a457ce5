"""One matrix of nvbandwidth, whichever way its file is written: its cells and their unit."""

import re
from collections.abc import Sequence

from kvcalc.errors import UnitError
from kvcalc.probe.importers.rows import rate_of, refuse
from kvcalc.records import record
from kvcalc.units import to_base

UNIT = "GB/s"
"""Unit of cells whose matrix names none, that of every version so far."""
_LATENCY = "(ns)"
MOST_RATE = 1e14
"""Rate that no memory reaches [byte/second]: several times that of the fastest stacks."""
_UNIT = re.compile(r"\(([^()]*/s[^()]*)\)\s*$")


@record
class Matrix:
    """One test that ran: rows of cells, and where its text stands."""

    name: str
    description: str
    cells: tuple[tuple[float | None, ...], ...]
    line: int
    unit: float  # of a cell [byte/second]


def unit_of(description: str, name: str, line: int) -> float:
    """Return what one of a cell is [byte/second], as the description of its matrix says."""
    found = _UNIT.search(description)
    unit = found[1].strip() if found else UNIT
    try:
        return to_base(f"1 {unit}", "byte/second")
    except UnitError:
        refuse(name, line, f"{unit!r:.40} is no unit of a bandwidth, such as {UNIT}")


def cell_of(text: str) -> float | None:
    """Return the number of a cell; None for N/A, and for the 0 of a pair that was not measured.

    Raises
    ------
    ValueError
        If it is no bandwidth; says why.
    """
    if text == "N/A":
        return None
    try:
        value = float(text)
    except ValueError:
        raise ValueError(f"{text!r:.40} is neither a bandwidth nor N/A") from None
    if rate_of(value) is None:
        raise ValueError(f"{text!r:.40} is no bandwidth")
    return value if value > 0 else None


def check(matrices: Sequence[Matrix], name: str) -> None:
    """Refuse a test that the file has twice, and a rate that no memory has."""
    seen: dict[str, Matrix] = {}
    for matrix in matrices:
        first = seen.setdefault(matrix.name, matrix)
        if first is not matrix:
            why = f"{matrix.name}: measured twice, first on line {first.line}; keep one run in a file"
            refuse(name, matrix.line, why)
        if not is_bandwidth(matrix):
            continue
        most = max((cell for row in matrix.cells for cell in row if cell is not None), default=0.0)
        if most * matrix.unit > MOST_RATE:
            why = f"{matrix.name}: {most * matrix.unit / 1e9:.6g} GB/s is more than any memory reaches"
            refuse(name, matrix.line, why)


def is_bandwidth(matrix: Matrix) -> bool:
    """Tell whether the cells of a matrix are bandwidths; those of some tests are times."""
    return "latency" not in matrix.name and _LATENCY not in matrix.description


_NUMBER = re.compile(r"^(?:Process +\d+ +\(.*?\): +device +)?(?:Device +)?\d+: *", re.IGNORECASE)


def device_name(text: str) -> str:
    """Return the name of a device alone: what follows it in brackets are bus address and host.

    >>> device_name("0: NVIDIA A100-SXM4-80GB (00000000:18:00): (gpuhost)")
    'NVIDIA A100-SXM4-80GB'
    """
    return _NUMBER.sub("", text.strip()).partition("(")[0].strip().rstrip(":").strip()[:80]
