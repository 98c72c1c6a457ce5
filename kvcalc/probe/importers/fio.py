"""JSON of fio (``--output-format=json``): reads and writes of each job, whether past the cache, how deep."""

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

from kvcalc.documents import parse_json
from kvcalc.probe.importers.rows import Imported, line_of, refuse, told
from kvcalc.probe.results import Measurement

_SUFFIXES = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30}
_SIDES = ("read", "write")
DEFAULT_BLOCK = 4096
"""Block of fio where a job names none [byte]."""

MOST_TOLD = 3
"""Jobs that failed, of those that a message names [1]."""


def read(text: str, name: str) -> Imported:
    """Return the measurements of a file; lines that fio prints before its JSON are passed over.

    Raises
    ------
    ProfileError
        If it is broken; names file and line.
    """
    lines = text.splitlines()
    skipped = next((at for at, line in enumerate(lines) if line.startswith("{")), 0)
    padded = "\n" * skipped + "\n".join(lines[skipped:])
    data = parse_json(padded, name)
    version = data.get("fio version") if isinstance(data, Mapping) else None
    if not isinstance(version, str):
        refuse(name, 1, "no JSON of fio: the key 'fio version' is missing")
    jobs = data.get("jobs")
    if not isinstance(jobs, list) or not jobs:
        refuse(name, line_of(text, '"fio version"'), "jobs: expected a list of jobs")
    shared = data.get("global options")
    rows: list[Measurement] = []
    notes: list[str] = []
    for at, job in enumerate(jobs):
        rows += _job(job, shared if isinstance(shared, Mapping) else {}, at, text, name, notes)
    if not rows:
        why = "; ".join(notes[:MOST_TOLD]) or "none of them has read or written anything"
        refuse(name, line_of(text, '"jobs"'), f"jobs: {why}")
    return Imported(version, tuple(rows), notes=tuple(notes))


def _job(
    job: Any,  # noqa: ANN401 - as the file holds it
    shared: Mapping[str, Any],
    at: int,
    text: str,
    name: str,
    notes: list[str],
) -> Iterator[Measurement]:
    if not isinstance(job, Mapping):
        refuse(name, line_of(text, '"jobs"'), f"jobs[{at}]: expected keys with values")
    title = str(job.get("jobname", at))
    line = line_of(text, json.dumps(job.get("jobname")), '"jobs"') if "jobname" in job else 1
    if job.get("error", 0) not in (0, None):
        notes.append(f"{title:.60}: fio ended with error {job['error']}; left out")
        return
    own = job.get("job options")
    options = {**shared, **(own if isinstance(own, Mapping) else {})}
    depth = _count(options, "iodepth", name, line, text) * _count(options, "numjobs", name, line, text)
    direct = str(options.get("direct", "0")).strip() == "1"
    for side in _SIDES:
        part = job.get(side)
        if not isinstance(part, Mapping):
            continue
        rate = _rate(part, side, name, line, text)
        if rate <= 0:
            continue
        size = _block(options, side, name, line, text)
        yield told(
            test="Z1",
            series=f"disk.{side}.depth{depth}" if direct else f"disk.{side}.buffered.depth{depth}",
            path="disk",
            direction=side,
            counted=side,
            mechanism="direct" if direct else "buffered",
            size=size,
            rate=rate,
            in_flight=depth,
            flags=() if direct else ("buffered",),
        )


def _rate(part: Mapping[str, Any], side: str, name: str, line: int, text: str) -> float:
    """Return bytes per second: fio's `bw` counts KiB, newer files have `bw_bytes` as well."""
    for key, factor in (("bw_bytes", 1.0), ("bw", 1024.0)):
        if key in part:
            value = part[key]
            if (
                isinstance(value, bool)
                or not isinstance(value, (int, float))
                or not math.isfinite(value)
                or value < 0
            ):
                where = line_of(text, f'"{key}"', f'"{side}"')
                refuse(name, where, f"{side}.{key}: {value!r:.40} is no bandwidth")
            return float(value) * factor
    return 0.0


def _count(options: Mapping[str, Any], key: str, name: str, line: int, text: str) -> int:
    value = str(options.get(key, "1")).strip()
    if not (value.isascii() and value.isdigit() and 0 < int(value) < 10**6):
        refuse(name, line_of(text, f'"{key}"'), f"job options.{key}: {value!r:.40} is no number of requests")
    return int(value)


def _block(options: Mapping[str, Any], side: str, name: str, line: int, text: str) -> float:
    """Return the size of a block; of "64k,128k" the first is that of reads and the second of writes."""
    said = str(options.get("bs", options.get("blocksize", DEFAULT_BLOCK))).lower().split(",")
    word = said[1] if side == "write" and len(said) > 1 and said[1] else said[0]
    digits = word.rstrip("bi").rstrip("kmg")
    suffix = word.rstrip("bi")[len(digits) :]
    if not digits.isdigit() or suffix not in _SUFFIXES or int(digits) == 0:
        refuse(name, line_of(text, '"bs"'), f"job options.bs: {word!r:.40} is no size of a block")
    return float(int(digits) * _SUFFIXES[suffix])
