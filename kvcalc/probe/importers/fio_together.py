"""Which jobs of fio ran at the same time: its JSON lists them one by one, even those that shared a disk.

The clones of one job (`numjobs` without `group_reporting`) start together.  So do all jobs of a file but
those that wait: behind a `stonewall`, which also begins a new group, or for the job that `wait_for` names.
Newer versions tell when each job began and how long it ran, which settles it.
"""

from bisect import bisect_right
from collections.abc import Sequence

from kvcalc.probe.importers.fio_job import Job, is_on

OVERLAP = 0.5
"""Least share of the shorter of two jobs in which both ran, for them to count as one load [1]: chosen."""


def runs_of(jobs: Sequence[Job]) -> list[list[Job]]:
    """Return the jobs in sets that ran at the same time, in the order of the file."""
    walls = [job.place.number for job in jobs if is_on(job.own.get("stonewall", "0"))]
    runs: list[list[Job]] = []
    for job in jobs:
        whole, apart = [job], []
        for run in runs:
            if any(_together(other, job, walls) for other in run):
                whole = run + whole
            else:
                apart.append(run)
        runs = [*apart, whole]
    return sorted(runs, key=lambda run: run[0].place.number)


def is_unsure(jobs: Sequence[Job]) -> bool:
    """Tell whether the file does not say which of its jobs ran at the same time."""
    names = {job.name for job in jobs}
    untold = any(job.group is None and job.ended is None for job in jobs)
    return len(names) > 1 and untold and not any("stonewall" in job.options for job in jobs)


def _together(first: Job, second: Job, walls: Sequence[int]) -> bool:
    """Tell whether a job ran while an earlier one did; `walls` are the jobs that waited for all before."""
    next_wall = bisect_right(walls, first.place.number)
    walled = next_wall < len(walls) and walls[next_wall] <= second.place.number
    if first.name == second.name and first.group == second.group and (second.clones > 1 or not walled):
        return True
    if walled or str(second.options.get("wait_for", "")) == first.name != "":
        return False
    if None not in (first.started, first.ended, second.started, second.ended):
        return _overlap(first, second) >= OVERLAP
    return first.group is not None and first.group == second.group


def _overlap(first: Job, second: Job) -> float:
    """Return the time in which both ran, over that of the shorter one."""
    spans = [(float(job.started or 0), float(job.ended or 0)) for job in (first, second)]
    shorter = min(end - start for start, end in spans)
    both = min(end for _, end in spans) - max(start for start, _ in spans)
    return both / shorter if shorter > 0 else 0.0
