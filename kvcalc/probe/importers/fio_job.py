"""One job of fio: what its options say of how it read, and when it ran."""

from collections.abc import Mapping
from typing import Any, NoReturn

from kvcalc.probe.importers.rows import line_of, refuse
from kvcalc.records import record

_SUFFIXES = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30}
DEFAULT_BLOCK = 4096
"""Block of fio where a job names none [byte]."""

ONE_AT_A_TIME = ("sync", "psync", "vsync", "pvsync", "pvsync2", "mmap")
"""Engines whose request ends before the next begins, whatever `iodepth` says."""
NO_DISK = ("null", "cpuio", "net", "netsplice", "rdma", "filecreate", "filestat", "filedelete")
"""Engines that read and write no disk."""
MIXED = ("bssplit", "bsrange", "blocksize_range")
"""Options by which blocks differ in size."""
HELD_BACK = ("rate", "rate_iops", "thinktime")
"""Options by which a job waits although the disk would be ready."""


@record
class Place:
    """Where a job stands in its file."""

    number: int  # from 1
    line: int
    start: int  # in the text, of the job's name
    text: str
    name: str  # of the file

    def refuse(self, key: str, why: str, after: str = "") -> NoReturn:
        """Refuse a value at its line."""
        start = max(self.start, self.text.find(after, self.start)) if after else self.start
        refuse(self.name, line_of(self.text, f'"{key}"', start=start), why)


@record
class Job:
    """A job as it ran."""

    place: Place
    data: Mapping[str, Any]  # as the file holds it
    options: Mapping[str, Any]  # shared ones and its own
    own: Mapping[str, Any]
    name: str  # never shown: people put users and paths there
    group: int | None
    started: float | None  # [millisecond]
    ended: float | None  # [millisecond]
    clones: int  # entries that one job stands for
    depth: int  # requests under way in each of them
    direct: bool
    random: bool
    files: tuple[str, ...]  # what it reads, as far as the options say


def job_of(data: Mapping[str, Any], shared: Mapping[str, Any], place: Place) -> Job:
    """Return a job of the file."""
    told = data.get("job options")
    own: Mapping[str, Any] = told if isinstance(told, Mapping) else {}
    options = {**shared, **own}
    engine = str(options.get("ioengine", "")).strip().lower()
    if engine in NO_DISK:
        place.refuse("ioengine", f"job {place.number}: ioengine={engine} reads no disk")
    depth = 1 if engine in ONE_AT_A_TIME else _count(options, "iodepth", place)
    started, lasted = (_milliseconds(data.get(key)) for key in ("job_start", "job_runtime"))
    group = data.get("groupid")
    return Job(
        place=place,
        data=data,
        options=options,
        own=own,
        name=str(data.get("jobname", "")),
        group=group if isinstance(group, int) else None,
        started=started,
        ended=started + lasted if started is not None and lasted is not None else None,
        clones=_count(options, "numjobs", place),
        depth=depth,
        direct=engine != "mmap" and _direct(shared, own),
        random=_random(options),
        files=tuple(str(options.get(key, "")) for key in ("filename", "directory")),
    )


def left_out(job: Job) -> str | None:
    """Return why a job's rate tells nothing of a disk; None where it does."""
    if job.data.get("error", 0) not in (0, None):
        return f"fio ended with error {job.data['error']!s:.20}"
    for key in MIXED:
        if key in job.options:
            return f"{key} mixes sizes of blocks, so that no rate, latency or count is of one size"
    for key in HELD_BACK:
        if is_on(job.options.get(key, "0")):
            return f"{key} held it back"
    return None


def depth_unsure(job: Job) -> bool:
    """Tell whether the depth is that of an engine which the file does not name."""
    return job.depth > 1 and "ioengine" not in job.options


def is_on(value: object) -> bool:
    """Tell whether an option is set: fio writes one that was given without a value as an empty text."""
    return str(value).strip().lower() not in ("0", "false", "none")


def block_of(job: Job, side: str) -> float:
    """Return the size of a block; of "64k,128k" the first is that of reads and the second of writes."""
    key = "bs" if "bs" in job.options else "blocksize"
    said = str(job.options.get(key, DEFAULT_BLOCK)).lower().split(",")
    word = said[1] if side == "write" and len(said) > 1 and said[1] else said[0]
    digits = word.rstrip("bi").rstrip("kmg")
    suffix = word.rstrip("bi")[len(digits) :]
    if not (digits.isascii() and digits.isdigit()) or suffix not in _SUFFIXES or int(digits) == 0:
        job.place.refuse(key, f"job options.{key}: {word!r:.40} is no size of a block")
    return float(int(digits) * _SUFFIXES[suffix])


def _direct(shared: Mapping[str, Any], own: Mapping[str, Any]) -> bool:
    """Return whether caches were passed over: the last word of `direct` and of its opposite, `buffered`."""
    found = False
    for options in (shared, own):
        for key, value in options.items():
            if key == "direct":
                found = is_on(value)
            elif key == "buffered":
                found = not is_on(value)
    return found


def _random(options: Mapping[str, Any]) -> bool:
    """Return whether each request has a new place; of `randread:8` only each eighth has."""
    pattern = str(options.get("rw", options.get("readwrite", "read"))).strip().lower()
    kind, _, run = pattern.partition(":")
    return kind.startswith("rand") and run in ("", "1")


def _count(options: Mapping[str, Any], key: str, place: Place) -> int:
    value = str(options.get(key, "1")).strip()
    if not (value.isascii() and value.isdigit() and 0 < len(value) < 7 and int(value) > 0):
        place.refuse(key, f"job options.{key}: {value!r:.40} is no number of requests")
    return int(value)


def _milliseconds(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < 1e15:
        return None
    return float(value)
