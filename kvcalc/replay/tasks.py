"""One cell of the grid of capacities and policies: what a process, or a worker elsewhere, is given to do."""

from typing import TYPE_CHECKING

from kvcalc.records import record
from kvcalc.replay.outcome import Case, Outcome
from kvcalc.replay.policies import policy
from kvcalc.replay.semantics import Semantics
from kvcalc.replay.stream import Stream, stream_of
from kvcalc.replay.trace import Trace

if TYPE_CHECKING:
    from kvcalc.replay.tenants import Quotas
    from kvcalc.replay.tiers import Stack


@record
class Task:
    """One cache to replay."""

    policy: str
    capacity: int  # blocks, or tokens where blocks differ
    options: object = None
    tiers: "Stack | None" = None
    quotas: "Quotas | None" = None


def run(task: Task, stream: Stream, semantics: Semantics) -> Outcome:
    """Replay one cell."""
    case = Case(stream, task.capacity, semantics, task.options)
    if task.tiers is not None:
        from kvcalc.replay import tiers

        return tiers.replay(case, task.tiers)
    if task.quotas is not None:
        from kvcalc.replay import tenants

        return tenants.replay(case, task.quotas)
    return policy(task.policy)(case)


_STREAMS: dict[Semantics, tuple[Trace, Stream]] = {}
"""The stream of the trace that this process was last given: cells of one grid share it."""


def run_alone(task: Task, trace: Trace, semantics: Semantics) -> Outcome:
    """Replay one cell in a process that may have done others of the same trace before."""
    known = _STREAMS.get(semantics)
    if known is None or known[0] is not trace:
        _STREAMS.clear()
        known = _STREAMS[semantics] = trace, stream_of(trace, semantics)
    return run(task, known[1], semantics)
