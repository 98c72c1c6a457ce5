"""Runs the cells of a grid: here, in processes beside this one, or on workers of a Dask cluster.

Cells are independent and their results do not depend on where they ran.
"""

import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from multiprocessing import get_context

from kvcalc.replay import tasks
from kvcalc.replay.outcome import Outcome
from kvcalc.replay.policies import POLICIES
from kvcalc.replay.semantics import Semantics
from kvcalc.replay.stream import Stream
from kvcalc.replay.tasks import Task
from kvcalc.replay.trace import Trace

Told = Callable[[int, int], None]
"""Called with the cells that are done and how many there are."""

SECONDS_PER_BLOCK = 3e-6
"""One block access under a policy of single blocks, for planning alone [second]: 0.8 to 2.8 us were measured
on a core of an AMD EPYC, over 4,000 requests of 5 to 120 blocks in a cache of 5,000."""

SECONDS_PER_REQUEST = 2e-5
"""One request under the other policies, for planning alone [second]: up to 16 us (FIFO) in the same runs."""

WORTH_PROCESSES = 3.0
"""Work from which more processes are started [second]; chosen, since each takes half a second to begin."""


def run_grid(
    cells: Sequence[Task],
    stream: Stream,
    trace: Trace,
    semantics: Semantics,
    workers: int | None = None,
    scheduler: str | None = None,
    told: Told | None = None,
) -> tuple[Outcome, ...]:
    """Return the outcome of each cell, in their order.

    Parameters
    ----------
    cells : what to replay
    stream, trace, semantics : the trace under its semantics, and as it was read
    workers : processes to use; as many as there are cores and enough work for when None
    scheduler : address of a Dask scheduler, whose workers are used instead
    told : called as cells are done
    """
    if scheduler is not None:
        from kvcalc.replay.scheduler import run_on

        done = run_on(scheduler, cells, trace, semantics)
    else:
        count = _workers(cells, stream, workers)
        done = _here(cells, stream, semantics) if count == 1 else _beside(cells, trace, semantics, count)
    found: dict[int, Outcome] = {}
    for index, outcome in done:
        found[index] = outcome
        if told is not None:
            told(len(found), len(cells))
    return tuple(found[index] for index in range(len(cells)))


def _workers(cells: Sequence[Task], stream: Stream, asked: int | None) -> int:
    if asked is not None:
        return max(1, min(asked, len(cells)))
    accesses = int(stream.blocks.sum())
    fast = sum(POLICIES[cell.policy].by_request and cell.tiers is None for cell in cells)
    slow = (len(cells) - fast) * accesses * SECONDS_PER_BLOCK
    if slow + fast * stream.requests * SECONDS_PER_REQUEST < WORTH_PROCESSES:
        return 1
    # Not every system tells which of its cores this process may use.
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(cores, len(cells)))


def _here(cells: Sequence[Task], stream: Stream, semantics: Semantics) -> Iterator[tuple[int, Outcome]]:
    for index, cell in enumerate(cells):
        yield index, tasks.run(cell, stream, semantics)


_GIVEN: list[tuple[Trace, Semantics]] = []
"""What this process was started for; filled in by `_begin`, in worker processes alone."""


def _begin(trace: Trace, semantics: Semantics) -> None:
    _GIVEN[:] = [(trace, semantics)]


@contextmanager
def _deaf() -> Iterator[None]:
    """Start processes that Ctrl-C does not reach: it is for this one, which hears it when all are started.

    A worker has the mask from its first instruction on, so that none is stopped while it still imports; and
    one whose start were interrupted here would be known to nobody, and stay.
    """
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "pthread_sigmask"):
        yield
        return
    heard: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: heard.append(number))
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        signal.signal(signal.SIGINT, before)
    if heard:
        raise KeyboardInterrupt


def _cell(cell: Task) -> Outcome:
    return tasks.run_alone(cell, *_GIVEN[0])


def _stop(pool: ProcessPoolExecutor) -> None:
    """End the processes of a pool at once, whatever they are in the middle of.

    One that ends within an answer leaves half a message, and the pool would read on for the other half as
    long as anybody could still write it: this process holds the last end to write to.
    """
    for process in list((pool._processes or {}).values()):
        process.terminate()
    if (answers := getattr(pool, "_result_queue", None)) is not None:
        answers._writer.close()


def _beside(
    cells: Sequence[Task], trace: Trace, semantics: Semantics, count: int
) -> Iterator[tuple[int, Outcome]]:
    context = get_context("spawn")
    pool = ProcessPoolExecutor(count, context, initializer=_begin, initargs=(trace, semantics))
    try:
        with _deaf():
            waiting = {pool.submit(_cell, cell): index for index, cell in enumerate(cells)}
        for future in as_completed(waiting):
            yield waiting[future], future.result()
    except BaseException:
        _stop(pool)
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
