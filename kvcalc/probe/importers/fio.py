"""JSON of fio (``--output-format=json``): reads and writes of each job, whether past the cache, how deep."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from kvcalc.documents import parse_json
from kvcalc.probe.importers.fio_job import Job, Place, block_of, depth_unsure, job_of, left_out
from kvcalc.probe.importers.fio_together import is_unsure, runs_of
from kvcalc.probe.importers.rows import Imported, line_of, rate_of, refuse, told, word_of
from kvcalc.probe.measurements.disk_reads import CACHE_RATE
from kvcalc.probe.profile_disk import BESIDE, RANDOM, SEQUENTIAL
from kvcalc.probe.results import Measurement
from kvcalc.records import record

_SIDES = ("read", "write")
MOST_JOBS = 2048
"""Jobs of one file [1]: fio itself takes 4096 at most, and clones can be grouped."""
MOST_TOLD = 3
"""Reasons for leaving jobs out, of those that a message gives [1]."""
MOST_LISTED = 8
"""Jobs that a message lists one by one [1]."""
MOST_RATE = 1e12
"""Rate that no storage of one machine reaches [byte/second]: 50 times that of the fastest single disk."""
MOST_SECONDS = 10.0
"""Time that no disk takes for one request [second]: operating systems give up after 30."""


Said = dict[str, list[int]]
"""What there is to say, and of which jobs."""


@record
class Part:
    """What one job read, or wrote."""

    job: Job
    side: str
    size: float  # of a block [byte]
    rate: float  # [byte/second]
    lasted: float  # [millisecond]; 0 where the file does not say

    @property
    def kind(self) -> tuple[object, ...]:
        """What must be alike in two parts for their rates to be those of one load."""
        return self.side, self.size, self.job.direct, self.job.random, self.job.files


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
    listed = data.get("jobs")
    if not isinstance(listed, list) or not listed:
        refuse(name, line_of(text, '"fio version"'), "jobs: expected a list of jobs")
    jobs = _jobs(listed, data.get("global options"), padded, name)
    said: Said = {}
    rows = _repeated(list(_rows(jobs, said)), said)
    notes = [f"{_listed(numbers)}: {why}" if numbers else why for why, numbers in said.items()]
    if not rows:
        why = "; ".join(notes[:MOST_TOLD]) or "none of them has read or written anything"
        refuse(name, line_of(text, '"jobs"'), f"jobs: {why}")
    return Imported(
        word_of(version, "fio of an unknown version"), tuple(rows), notes=tuple(notes), run=_day(data)
    )


def _jobs(listed: Sequence[Any], shared: object, text: str, name: str) -> list[Job]:
    if len(listed) > MOST_JOBS:
        refuse(name, line_of(text, '"jobs"'), f"jobs: {len(listed)} are more than {MOST_JOBS}")
    found = []
    start = max(0, text.find('"jobs"'))
    line = text.count("\n", 0, start) + 1
    for at, data in enumerate(listed):
        if not isinstance(data, Mapping):
            refuse(name, line_of(text, '"jobs"'), f"jobs[{at}]: expected keys with values")
        if "jobname" in data:
            before, start = start, max(start, text.find('"jobname"', start + 1))
            line += text.count("\n", before, start)
        place = Place(at + 1, line, start, text, name)
        found.append(job_of(data, shared if isinstance(shared, Mapping) else {}, place))
    return found


def _rows(jobs: Sequence[Job], said: Said) -> Iterator[tuple[Part, Measurement]]:
    if is_unsure(jobs):
        said["fio's file does not say which jobs ran at the same time; each is taken as alone"] = []
    for run in runs_of(jobs):
        ran = [job for job in run if job.data.get("error", 0) in (0, None)]
        parts = [part for job in run for part in _parts(job, said)]
        alike: dict[tuple[object, ...], list[Part]] = {}
        for part in parts:
            alike.setdefault(part.kind, []).append(part)
        counts = [len(group) for group in alike.values()]
        mixed = any(count != len(ran) for count in counts)
        if mixed:
            names = _listed([job.place.number for job in ran])
            said[f"{names} ran at the same time: none tells a latency, and each may be faster alone"] = []
        for group in alike.values():
            yield group[0], _row(group, sum(_depth(part.job, run) for part in group), mixed)


def _parts(job: Job, said: Said) -> Iterator[Part]:
    why = left_out(job)
    if why is not None:
        said.setdefault(f"{why}; left out", []).append(job.place.number)
        return
    found = False
    for side in _SIDES:
        part = job.data.get(side)
        if not isinstance(part, Mapping):
            continue
        key, rate = _rate(part, side, job.place)
        if rate <= 0:
            continue
        found = True
        size = block_of(job, side)
        _check(job, f"{side}.{key}", rate, size)
        yield Part(job, side, size, rate, _number(part.get("runtime")))
    if found and depth_unsure(job):
        why = "no ioengine is named; fio's own has one request under way, whatever iodepth says"
        said.setdefault(why, []).append(job.place.number)


def _row(group: Sequence[Part], depth: int, beside: bool) -> Measurement:
    """Return the rate of jobs that were one load: all bytes over the longest time, as fio adds them."""
    part, job = group[0], group[0].job
    longest = max(one.lasted for one in group)
    rate = sum(one.rate for one in group)
    if all(one.lasted > 0 for one in group):
        rate = sum(one.rate * one.lasted for one in group) / longest
    order = RANDOM if job.random else SEQUENTIAL
    mechanism = "direct" if job.direct else "buffered"
    words = {SEQUENTIAL: not job.random, BESIDE: beside, "buffered": not job.direct}
    flags = {"buffered": not job.direct, "cache_hit": job.direct and rate > CACHE_RATE}
    return told(
        test="Z1",
        series=".".join(["disk", part.side, *_true(words), f"depth{depth}"]),
        path="disk",
        direction=part.side,
        counted=part.side,
        mechanism=f"{mechanism}_{BESIDE}" if beside else mechanism,
        order=order,
        size=part.size,
        rate=rate,
        in_flight=depth,
        flags=_true(flags),
    )


def _true(words: Mapping[str, bool]) -> list[str]:
    return [word for word, is_true in words.items() if is_true]


def _depth(job: Job, run: Sequence[Job]) -> int:
    """Return the requests under way in one entry: of all clones, unless they have entries of their own."""
    entries = sum(other.name == job.name and other.group == job.group for other in run)
    return job.depth * (1 if entries > 1 else job.clones)


def _repeated(found: Sequence[tuple[Part, Measurement]], said: Said) -> list[Measurement]:
    """Return one measurement of each series and size: the fastest, as among series."""
    alike: dict[tuple[str, float], list[tuple[Part, Measurement]]] = {}
    for part, row in found:
        alike.setdefault((row.series, float(row.chunk_bytes)), []).append((part, row))
    for (series, size), group in alike.items():
        if len(group) > 1:
            why = f"all measure {series} at {size:.0f} B; the fastest is taken"
            said[why] = [part.job.place.number for part, _ in group]
    return [max((row for _, row in group), key=_bandwidth) for group in alike.values()]


def _bandwidth(row: Measurement) -> float:
    return float(row.bandwidth or 0)


def _listed(numbers: Sequence[int]) -> str:
    """Return jobs as a text.

    >>> _listed([1]), _listed([1, 2, 3]), _listed(range(1, 2049))
    ('job 1', 'jobs 1, 2 and 3', '2048 jobs from job 1 to job 2048')
    """
    if len(numbers) > MOST_LISTED:
        return f"{len(numbers)} jobs from job {numbers[0]} to job {numbers[-1]}"
    if len(numbers) == 1:
        return f"job {numbers[0]}"
    return f"jobs {', '.join(map(str, numbers[:-1]))} and {numbers[-1]}"


def _rate(part: Mapping[str, Any], side: str, place: Place) -> tuple[str, float]:
    """Return bytes per second: fio's `bw` counts KiB, newer files have `bw_bytes` as well."""
    for key, factor in (("bw_bytes", 1.0), ("bw", 1024.0)):
        if key in part:
            rate = rate_of(part[key])
            if rate is None:
                place.refuse(key, f"{side}.{key}: {part[key]!r:.40} is no bandwidth", f'"{side}"')
            return key, rate * factor
    return "", 0.0


def _check(job: Job, key: str, rate: float, size: float) -> None:
    """Refuse a rate that no disk has."""
    side, _, last = key.partition(".")
    after = f'"{side}"'
    if rate > MOST_RATE:
        job.place.refuse(last, f"{key}: {rate:.6g} B/s is more than any disk reaches", after)
    seconds = job.depth * size / rate
    if seconds > MOST_SECONDS:
        why = f"{rate:.6g} B/s is less than any disk reaches: {seconds:.3g} s for one block of {size:.0f} B"
        job.place.refuse(last, f"{key}: {why}", after)


def _number(value: object) -> float:
    return rate_of(value) or 0.0


def _day(data: Mapping[str, Any]) -> str | None:
    """Return the date of the run, in UTC; None where the file does not tell a plausible one."""
    stamp = _number(data.get("timestamp"))
    if not 1e9 < stamp < 1e10:
        return None
    return datetime.fromtimestamp(stamp, UTC).strftime("%Y-%m-%d")
