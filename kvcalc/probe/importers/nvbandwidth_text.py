"""The text that nvbandwidth prints: a head with version, driver and devices, then a matrix for each test."""

import re
from collections.abc import Iterator, Sequence
from decimal import Decimal, InvalidOperation

from kvcalc.probe.importers.nvbandwidth_matrix import Matrix, cell_of, check, device_name, unit_of
from kvcalc.probe.importers.rows import refuse, word_of
from kvcalc.records import record

_RUNNING = re.compile(r"Running (\w+)\.?$")
_VERSION = re.compile(r"nvbandwidth Version: v?(\S+)")
_DRIVER = re.compile(r"Driver Version: (\S+)$")
_DEVICE = re.compile(r"Device +\d+: .+|Process +\d+ +\(.*\): device \d+: .+")
_SUM = re.compile(r"SUM (\w+) (\S+)$")
_STATUSES = ("Waived", "Error", "ERROR")


@record
class Told:
    """What one file says."""

    version: str
    devices: tuple[str, ...]
    driver: str | None
    buffer: float | None  # size of its buffers [byte]
    matrices: tuple[Matrix, ...]
    notes: tuple[str, ...]  # tests without a matrix


def read(text: str, name: str) -> Told:
    """Return the matrices of a text.

    Raises
    ------
    ProfileError
        If it is broken or cut off; names file and line.
    """
    lines = text.splitlines()
    version = _first(_VERSION, lines)
    if version is None:
        refuse(name, 1, "neither text nor JSON of nvbandwidth: no line begins with 'nvbandwidth Version:'")
    matrices: list[Matrix] = []
    notes: list[str] = []
    at = 0
    while at < len(lines):
        running = _RUNNING.match(lines[at].strip())
        if running is None:
            at += 1
            continue
        at = _one_test(lines, at, running[1], name, matrices, notes)
    check(matrices, name)
    if not matrices and not notes:
        refuse(name, len(lines), "no test has run: no line begins with 'Running'")
    driver = word_of(_first(_DRIVER, lines), "") or None
    return Told(word_of(version, "?"), tuple(_devices(lines)), driver, None, tuple(matrices), tuple(notes))


def _first(pattern: re.Pattern[str], lines: Sequence[str]) -> str | None:
    return next((found[1] for line in lines if (found := pattern.match(line.strip()))), None)


def _devices(lines: Sequence[str]) -> Iterator[str]:
    for line in lines:
        if _DEVICE.fullmatch(line.strip()):
            yield device_name(line)


def _one_test(
    lines: Sequence[str], at: int, test: str, name: str, matrices: list[Matrix], notes: list[str]
) -> int:
    """Read one test from its line `Running`, and return the line after it."""
    start, at = at, _filled(lines, at + 1)
    first = lines[at].strip() if at < len(lines) else ""
    for status in _STATUSES:
        if first.startswith(status):
            notes.append(f"{test}: {status.lower()} by nvbandwidth")
            return at + 1
    if "(row)" not in first and "memcpy local" not in first and "(column)" not in first:
        refuse(name, at + 1, f"{test}: expected a matrix or 'Waived', found {first!r:.60}")
    header = lines[at + 1].split() if at + 1 < len(lines) else []
    if not header or not all(word.isdigit() for word in header):
        refuse(name, at + 2, f"{test}: expected the numbers of the columns")
    words: list[list[str]] = []
    cells: list[tuple[float | None, ...]] = []
    row = at + 2
    while row < len(lines) and lines[row].strip() and lines[row].split()[0].isdigit():
        words.append(lines[row].split()[1:])
        if len(words[-1]) != len(header):
            refuse(name, row + 1, f"{test}: {len(words[-1])} values for {len(header)} columns")
        try:
            cells.append(tuple(map(cell_of, words[-1])))
        except ValueError as error:
            refuse(name, row + 1, str(error))
        row += 1
    if not cells:
        refuse(name, row + 1, f"{test}: the matrix has no rows")
    _check_sum(lines, row, test, words, name)
    matrices.append(Matrix(test, first, tuple(cells), start + 1, unit_of(first, name, at + 1)))
    return row


def _filled(lines: Sequence[str], at: int) -> int:
    """Return the first line from `at` on that is not empty."""
    while at < len(lines) and not lines[at].strip():
        at += 1
    return at


def _check_sum(lines: Sequence[str], row: int, test: str, words: Sequence[Sequence[str]], name: str) -> None:
    """Refuse a matrix that the sum under it does not belong to: the file is cut off, or was edited."""
    at = _filled(lines, row)
    found = _SUM.match(lines[at].strip()) if at < len(lines) else None
    if found is None or found[1] != test:
        here = f"found {lines[at].strip()!r:.60}" if at < len(lines) else "the file ends"
        refuse(name, min(at, len(lines) - 1) + 1, f"{test}: expected the line 'SUM {test}', {here}")
    try:
        said = Decimal(found[2])
        numbers = [Decimal(word) for line in words for word in line if word != "N/A"]
        slack = sum((_half_digit(number) for number in numbers), start=_half_digit(said))
        agrees = said.is_finite() and abs(sum(numbers, start=Decimal(0)) - said) <= slack
    except InvalidOperation:
        refuse(name, at + 1, f"{test}: {found[2]!r:.40} is no sum")
    if not agrees:
        total = sum(numbers, start=Decimal(0))
        refuse(name, at + 1, f"{test}: the cells add up to {total:f}, the line SUM says {found[2]:.40}")


def _half_digit(number: Decimal) -> Decimal:
    """Return how far a printed number may lie from what it was rounded from.

    >>> _half_digit(Decimal("55.31"))
    Decimal('0.005')
    """
    exponent = number.as_tuple().exponent
    return Decimal((0, (5,), exponent - 1)) if isinstance(exponent, int) else Decimal(0)
