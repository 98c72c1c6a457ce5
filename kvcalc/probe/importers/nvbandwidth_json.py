"""The JSON of nvbandwidth (``--json``): a list of tests, whose cells are texts."""

import json
import re
from collections.abc import Mapping
from typing import Any

from kvcalc.documents import parse_json
from kvcalc.errors import did_you_mean
from kvcalc.probe.importers.nvbandwidth_matrix import Matrix, cell_of, check, device_name, unit_of
from kvcalc.probe.importers.nvbandwidth_text import Told
from kvcalc.probe.importers.rows import line_of, rate_of, refuse, word_of

MOST_CELLS = 4096
_TEST = re.compile(r"\w{1,100}")
STATUSES = ("Passed", "Waived", "Error", "Not Found", "Running")
DEVICES = ("GPU Device list", "GPU Device info", "device_list")
"""Keys under which versions list their devices; those before 0.7 list none."""


def read(text: str, name: str) -> Told:
    """Return the matrices of a JSON text.

    Raises
    ------
    ProfileError
        If it is broken; names file and line.
    """
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
    at = 0
    for case in cases:
        at = _one_case(case, text, at, name, matrices, notes)
    check(matrices, name)
    return Told(
        word_of(str(top.get("version", "")).removeprefix("v"), "of an unknown version"),
        _devices(top, text, name),
        word_of(top.get("Driver Version"), "") or None,
        _buffer(top, text, name),
        tuple(matrices),
        tuple(notes),
    )


def _devices(top: Mapping[str, Any], text: str, name: str) -> tuple[str, ...]:
    for key in DEVICES:
        if key not in top:
            continue
        listed = top[key]
        if not isinstance(listed, list) or not all(isinstance(item, str) for item in listed):
            refuse(name, line_of(text, f'"{key}"'), f"nvbandwidth.{key}: expected a list of names of devices")
        return tuple(device_name(item) for item in listed)
    return ()


def _buffer(top: Mapping[str, Any], text: str, name: str) -> float | None:
    """Return the size of the buffers [byte], which the file gives in MiB."""
    if "bufferSize" not in top:
        return None
    size = rate_of(top["bufferSize"])
    if not size or size > 2**30:
        why = f"nvbandwidth.bufferSize: {top['bufferSize']!r:.40} is no size in MiB"
        refuse(name, line_of(text, '"bufferSize"'), why)
    return size * 2**20


def _one_case(
    case: Any,  # noqa: ANN401 - as the file holds it
    text: str,
    at: int,
    name: str,
    matrices: list[Matrix],
    notes: list[str],
) -> int:
    """Read one test, and return where in the text the next one is looked for."""
    test = case.get("name") if isinstance(case, Mapping) else None
    if not isinstance(test, str) or not _TEST.fullmatch(test) or not isinstance(case, Mapping):
        refuse(name, line_of(text, '"testcases"'), "nvbandwidth.testcases: a test without a name")
    here = max(text.find(json.dumps(test), at), 0)
    line, status = line_of(text, json.dumps(test), at), case.get("status")
    if status not in STATUSES:
        refuse(name, line, f"{test}: unknown status {status!r:.40}{did_you_mean(str(status), STATUSES)}")
    if status != "Passed":
        notes.append(f"{test}: {status.lower()} by nvbandwidth")
        return here + 1
    rows = case.get("bandwidth_matrix")
    if not isinstance(rows, list) or not rows or not all(isinstance(row, list) for row in rows):
        refuse(name, line, f"{test}: passed, but has no bandwidth_matrix of rows")
    if sum(len(row) for row in rows) > MOST_CELLS or len({len(row) for row in rows}) != 1:
        refuse(name, line, f"{test}: the rows of bandwidth_matrix differ in length, or are too many")
    cells = [tuple(_cell(cell, text, at, name) for cell in row) for row in rows]
    description = str(case.get("bandwidth_description", ""))
    unit = unit_of(description, name, line_of(text, json.dumps(description), at))
    matrices.append(Matrix(test, description, tuple(cells), line, unit))
    _note_sum(case, test, cells, notes)
    return here + 1


def _cell(cell: Any, text: str, at: int, name: str) -> float | None:  # noqa: ANN401 - as the file holds it
    try:
        return cell_of(str(cell))
    except ValueError as error:
        refuse(name, line_of(text, json.dumps(cell), at), str(error))


def _note_sum(
    case: Mapping[str, Any], test: str, cells: list[tuple[float | None, ...]], notes: list[str]
) -> None:
    """Say that the sum of a test is not that of its cells: somebody has changed the file."""
    said = rate_of(case.get("sum"))
    total = sum(cell for row in cells for cell in row if cell is not None)
    if said is not None and abs(said - total) > 1e-4 * max(said, total):  # cells have six digits
        notes.append(
            f"{test}: its cells add up to {total:.6g}, its sum says {said:.6g}; was the file edited?"
        )
