"""Output of NVIDIA's nvbandwidth, as text or JSON, versions 0.4 to 0.10.

Cells are in the unit that the description of their matrix ends with, GB/s of 10^9 bytes; N/A stands where a
pair has no path.  Tests that the machine cannot do are waived and have no matrix.  The bidirectional tests
report the one direction that their name begins with, while the other one is busy.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kvcalc.documents import parse_json
from kvcalc.errors import UnitError, did_you_mean
from kvcalc.probe.importers.rows import FASTEST_LINK, Imported, line_of, refuse, told
from kvcalc.probe.results import Measurement
from kvcalc.records import record
from kvcalc.units import to_base

BUFFER = 512 * 2**20
"""Size of nvbandwidth's buffers where the file does not tell another [byte]."""
MOST_CELLS = 4096
UNIT = "GB/s"
"""Unit of cells whose matrix names none, that of every version so far."""
STATUSES = ("Passed", "Waived", "Error", "Not Found", "Running")


@record
class Kind:
    """What one of its tests measures."""

    series: str
    path: str
    direction: str
    test: str
    counted: str = "one_way"


_KINDS: Mapping[str, Kind] = {
    "host_to_device_memcpy": Kind("h2d.pinned", "host-device", "h2d", "H1"),
    "device_to_host_memcpy": Kind("d2h.pinned", "host-device", "d2h", "H1"),
    "host_to_device_bidirectional_memcpy": Kind("duplex.h2d", "host-device", "h2d", "H3"),
    "device_to_host_bidirectional_memcpy": Kind("duplex.d2h", "host-device", "d2h", "H3"),
    "all_to_host_memcpy": Kind("d2h.under_load", "host-device", "d2h", "G1"),
    "host_to_all_memcpy": Kind("h2d.under_load", "host-device", "h2d", "G1"),
    "all_to_host_bidirectional_memcpy": Kind("d2h.under_load.duplex", "host-device", "d2h", "G1"),
    "host_to_all_bidirectional_memcpy": Kind("h2d.under_load.duplex", "host-device", "h2d", "G1"),
    "device_to_device_memcpy_read": Kind("peer.read", "device-device", "read", "G1"),
    "device_to_device_memcpy_write": Kind("peer.write", "device-device", "write", "G1"),
    "device_to_device_bidirectional_memcpy_read": Kind("peer.duplex.read", "device-device", "read", "G1"),
    "device_to_device_bidirectional_memcpy_write": Kind("peer.duplex.write", "device-device", "write", "G1"),
    "device_local_copy": Kind("memory.local_copy", "device", "copy", "D1"),
}
"""Test without its last word, which is the mechanism -> what it is here."""
_MECHANISMS = {"ce": "copy_engine", "sm": "kernel", "tma": "kernel_tma"}


@record
class Matrix:
    """One test that ran: rows of cells, and where its text stands."""

    name: str
    description: str
    cells: tuple[tuple[float | None, ...], ...]
    line: int
    unit: float  # of a cell [byte/second]


def read(text: str, name: str) -> Imported:
    """Return the measurements of a file.

    Raises
    ------
    ProfileError
        If it is broken; names file and line.
    """
    if text.lstrip().startswith("{"):
        return _json(text, name)
    return _text(text, name)


def _imported(
    version: str,
    matrices: Sequence[Matrix],
    notes: Sequence[str],
    devices: Sequence[str],
    driver: str | None,
    buffer: float | None,
) -> Imported:
    rows: list[Measurement] = []
    left = list(notes)
    for matrix in matrices:
        kind, mechanism = _kind(matrix.name)
        if kind is None or "latency" in matrix.name or _LATENCY in matrix.description:
            left.append(f"{matrix.name}: not a bandwidth that a plan uses; left out")
            continue
        rows += _rows(matrix, kind, mechanism, buffer or BUFFER)
    assumed = (
        () if buffer else (f"buffers of {BUFFER // 2**20} MiB, nvbandwidth's default; the file does not say",)
    )
    return Imported(f"nvbandwidth {version}", tuple(rows), tuple(devices), tuple(left), driver, assumed)


def _kind(name: str) -> tuple[Kind | None, str]:
    stem, _, last = name.rpartition("_")
    if last in _MECHANISMS:
        return _KINDS.get(stem), _MECHANISMS[last]
    return _KINDS.get(name), _MECHANISMS["ce"]


def _rows(matrix: Matrix, kind: Kind, mechanism: str, size: float) -> Iterator[Measurement]:
    suffix = "" if mechanism == "copy_engine" else f".{mechanism}"
    for row, cells in enumerate(matrix.cells):
        for column, cell in enumerate(cells):
            if cell is None:
                continue
            place = f".cpu{row}" if kind.path == "host-device" and row else ""
            place = f".from{row}" if kind.path == "device-device" else place
            beyond = kind.path == "host-device" and cell * matrix.unit > FASTEST_LINK
            yield told(
                test=kind.test,
                series=f"{kind.series}{suffix}{place}",
                path=kind.path,
                direction=kind.direction,
                counted=kind.counted,
                mechanism=mechanism,
                size=size,
                rate=cell * matrix.unit,
                device=column,
                pinned=True if kind.path == "host-device" else None,
                in_flight=2 if "duplex" in kind.series else 1,
                flags=("implausible",) if beyond else (),
            )


_UNIT = re.compile(r"\(([^()]*/s[^()]*)\)\s*$")
_LATENCY = "(ns)"


def _unit(description: str, name: str, line: int) -> float:
    """Return what one of a cell is [byte/second], as the description of its matrix says."""
    found = _UNIT.search(description)
    unit = found[1].strip() if found else UNIT
    try:
        return to_base(f"1 {unit}", "byte/second")
    except UnitError:
        refuse(name, line, f"{unit!r:.40} is no unit of a bandwidth, such as {UNIT}")


def _cell(text: str, name: str, line: int) -> float | None:
    if text == "N/A":
        return None
    try:
        value = float(text)
    except ValueError:
        refuse(name, line, f"{text!r:.40} is neither a bandwidth nor N/A")
    if not (math.isfinite(value) and value >= 0):
        refuse(name, line, f"{text!r:.40} is no bandwidth")
    return value if value > 0 else None


# text

_RUNNING = re.compile(r"Running (\w+)\.?$")
_VERSION = re.compile(r"nvbandwidth Version: v?(\S+)")
_DRIVER = re.compile(r"Driver Version: (\S+)$")
_DEVICE = re.compile(r"Device (\d+): (.+?)(?: \([0-9a-fA-F:.]+\))?$")
_SKIPPED = re.compile(r"(?:SUM|MIN|MAX|AVG|COEFFICIENT_OF_VARIATION) \w+ .*|\s*")


def _text(text: str, name: str) -> Imported:
    lines = text.splitlines()
    version = next((found[1] for line in lines if (found := _VERSION.match(line.strip()))), None)
    if version is None:
        refuse(name, 1, "neither text nor JSON of nvbandwidth: no line begins with 'nvbandwidth Version:'")
    driver = next((found[1] for line in lines if (found := _DRIVER.match(line.strip()))), None)
    devices = [found[2] for line in lines if (found := _DEVICE.match(line.strip()))]
    matrices: list[Matrix] = []
    notes: list[str] = []
    at = 0
    while at < len(lines):
        running = _RUNNING.match(lines[at].strip())
        if running is None:
            at += 1
            continue
        at = _one_test(lines, at, running[1], name, matrices, notes)
    if not matrices and not notes:
        refuse(name, len(lines), "no test has run: no line begins with 'Running'")
    return _imported(version, matrices, notes, devices, driver, None)


def _one_test(
    lines: Sequence[str], at: int, test: str, name: str, matrices: list[Matrix], notes: list[str]
) -> int:
    """Read one test from its line `Running`, and return the line after it."""
    start, at = at, at + 1
    while at < len(lines) and not lines[at].strip():
        at += 1
    first = lines[at].strip() if at < len(lines) else ""
    described = at + 1
    for status in ("Waived", "Error", "ERROR"):
        if first.startswith(status):
            notes.append(f"{test}: {status.lower()} by nvbandwidth")
            return at + 1
    if "(row)" not in first and "memcpy local" not in first and "(column)" not in first:
        refuse(name, at + 1, f"{test}: expected a matrix or 'Waived', found {first!r:.60}")
    header = lines[at + 1].split() if at + 1 < len(lines) else []
    if not header or not all(word.isdigit() for word in header):
        refuse(name, at + 2, f"{test}: expected the numbers of the columns")
    cells: list[tuple[float | None, ...]] = []
    row = at + 2
    while row < len(lines) and lines[row].strip() and lines[row].split()[0].isdigit():
        words = lines[row].split()
        if len(words) != len(header) + 1:
            refuse(name, row + 1, f"{test}: {len(words) - 1} values for {len(header)} columns")
        cells.append(tuple(_cell(word, name, row + 1) for word in words[1:]))
        row += 1
    if not cells:
        refuse(name, row + 1, f"{test}: the matrix has no rows")
    if row < len(lines) and not _SKIPPED.fullmatch(lines[row]) and not lines[row].startswith("Running"):
        refuse(name, row + 1, f"{test}: {lines[row].strip()!r:.60} is no row of the matrix")
    matrices.append(Matrix(test, first, tuple(cells), start + 1, _unit(first, name, described)))
    return row


# JSON


def _json(text: str, name: str) -> Imported:
    data = parse_json(text, name)
    top = data.get("nvbandwidth") if isinstance(data, Mapping) else None
    if not isinstance(top, Mapping):
        keys = list(data) if isinstance(data, Mapping) else []
        refuse(name, 1, f"no key 'nvbandwidth'{did_you_mean('nvbandwidth', keys) if keys else ''}")
    cases = top.get("testcases")
    if not isinstance(cases, list):
        error = f": {top['error']!s:.80}" if "error" in top else ""
        refuse(name, line_of(text, '"nvbandwidth"'), f"nvbandwidth.testcases: expected a list{error}")
    if not cases:
        refuse(name, line_of(text, '"testcases"'), "nvbandwidth.testcases: empty; no test has run")
    matrices: list[Matrix] = []
    notes: list[str] = []
    for case in cases:
        _one_case(case, text, name, matrices, notes)
    size = top.get("bufferSize")
    return _imported(
        str(top.get("version", "of an unknown version")).removeprefix("v"),
        matrices,
        notes,
        [str(item) for item in top.get("device_list", ()) if isinstance(item, str)],
        str(top["Driver Version"]) if "Driver Version" in top else None,
        float(size) * 2**20 if isinstance(size, (int, float)) and not isinstance(size, bool) else None,
    )


def _one_case(case: Any, text: str, name: str, matrices: list[Matrix], notes: list[str]) -> None:  # noqa: ANN401
    if not isinstance(case, Mapping) or not isinstance(case.get("name"), str):
        refuse(name, line_of(text, '"testcases"'), "nvbandwidth.testcases: a test without a name")
    test = case["name"]
    line, status = line_of(text, json.dumps(test)), case.get("status")
    if status not in STATUSES:
        refuse(name, line, f"{test}: unknown status {status!r:.40}{did_you_mean(str(status), STATUSES)}")
    if status != "Passed":
        notes.append(f"{test}: {status.lower()} by nvbandwidth")
        return
    rows = case.get("bandwidth_matrix")
    if not isinstance(rows, list) or not rows or not all(isinstance(row, list) for row in rows):
        refuse(name, line, f"{test}: passed, but has no bandwidth_matrix of rows")
    if sum(len(row) for row in rows) > MOST_CELLS or len({len(row) for row in rows}) != 1:
        refuse(name, line, f"{test}: the rows of bandwidth_matrix differ in length, or are too many")
    cells = []
    for row in rows:
        cells.append(tuple(_cell(str(cell), name, line_of(text, json.dumps(cell))) for cell in row))
    description = str(case.get("bandwidth_description", ""))
    unit = _unit(description, name, line_of(text, json.dumps(description)))
    matrices.append(Matrix(test, description, tuple(cells), line, unit))
