"""Which jobs of fio ran at the same time: its JSON lists them one by one, even those that shared a disk.

The clones of one job (`numjobs` without `group_reporting`) start together.  So do all jobs of a file but
those that wait: behind a `stonewall`, which also begins a new group, or for the job that `wait_for` names.
Newer versions tell when each job began and how long it ran, which settles it.
"""

from collections.abc import Sequence

from kvcalc.probe.importers.fio_job import Job, is_on

OVERLAP = 0.5
"""Least share of the shorter of two jobs in which both ran, for them to count as one load [1]: chosen."""


def runs_of(jobs: Sequence[Job]) -> list[list[Job]]:
    """Return the jobs in sets that ran at the same time, in the order of the file."""
    runs: list[list[Job]] = []
    for job in jobs:
        joined = [run for run in runs if any(_together(jobs, other, job) for other in run)]
        runs = [run for run in runs if run not in joined]
        runs.append([other for run in joined for other in run] + [job])
    return sorted(runs, key=lambda run: run[0].place.number)


def is_unsure(jobs: Sequence[Job]) -> bool:
    """Tell whether the file does not say which of its jobs ran at the same time."""
    names = {job.name for job in jobs}
    untold = any(job.group is None and job.ended is None for job in jobs)
    return len(names) > 1 and untold and not any("stonewall" in job.options for job in jobs)


def _together(jobs: Sequence[Job], first: Job, second: Job) -> bool:
    """Tell whether a job ran while an earlier one did."""
    same = first.name == second.name and first.group == second.group
    walls = [
        job.place.number
        for job in jobs
        if is_on(job.own.get("stonewall", "0")) and first.place.number < job.place.number
    ]
    if same and (second.clones > 1 or not walls):
        return True
    if any(number <= second.place.number for number in walls):
        return False
    if str(second.options.get("wait_for", "")) == first.name != "":
        return False
    if None not in (first.started, first.ended, second.started, second.ended):
        return _overlap(first, second) >= OVERLAP
    return first.group is not None and first.group == second.group


def _overlap(first: Job, second: Job) -> float:
    """Return the time in which both ran, over that of the shorter one."""
    begun, left = (float(job.started or 0) for job in (first, second)), (first.ended, second.ended)
    a, b = begun
    ends = [float(end or 0) for end in left]
    shorter = min(ends[0] - a, ends[1] - b)
    return (min(ends) - max(a, b)) / shorter if shorter > 0 else 0.0
