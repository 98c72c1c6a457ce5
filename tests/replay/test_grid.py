"""A grid of caches has one answer, wherever it is computed: here, in processes, on a cluster."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest

from kvcalc.errors import SettingsError
from kvcalc.replay import grid
from kvcalc.replay.answer import replay_trace
from kvcalc.replay.grid import run_grid
from kvcalc.replay.semantics import Semantics
from kvcalc.replay.stream import stream_of
from kvcalc.replay.tasks import Task
from kvcalc.replay.trace import build_trace


def small(requests=200):
    """Return sessions that go on turn by turn, a third of them at a time."""
    found = []
    for turn in range(requests):
        session = turn % 37
        found.append([1_000 * session + block for block in range(2 + turn // 37)])
    return build_trace(found, 16)


CELLS = [Task(name, capacity) for capacity in (20, 60, 120) for name in ("fifo", "lru", "lfu", "arc")]


def hits(outcomes):
    return [outcome.hit_blocks.tolist() for outcome in outcomes]


@pytest.fixture(scope="module")
def here():
    trace = small()
    return hits(run_grid(CELLS, stream_of(trace, Semantics()), trace, Semantics(), workers=1))


def test_processes_give_the_same(here):
    trace, told = small(), []
    stream = stream_of(trace, Semantics())
    found = run_grid(CELLS, stream, trace, Semantics(), 2, told=lambda *counts: told.append(counts))
    assert hits(found) == here
    assert told == [(done, len(CELLS)) for done in range(1, len(CELLS) + 1)]


@pytest.fixture(scope="module")
def cluster():
    """Start a scheduler and two worker processes; yield its address and the processes of the workers."""
    distributed = pytest.importorskip("distributed", reason="the extra `distributed` is not installed")
    assert distributed
    env = dict(os.environ, DASK_DISTRIBUTED__WORKER__DAEMON="False")
    command = [sys.executable, "-c"]
    server = subprocess.Popen(
        [*command, SCHEDULER], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=env
    )
    address = server.stdout.readline().strip()
    workers = [
        subprocess.Popen([*command, WORKER, address], stderr=subprocess.DEVNULL, env=env) for _ in range(2)
    ]
    try:
        with distributed.Client(address, set_as_default=False, timeout="60s") as client:
            client.wait_for_workers(2, timeout=60)
        yield address, workers
    finally:
        for process in (*workers, server):
            process.kill()
            process.wait()
        server.stdout.close()


SCHEDULER = """
import asyncio
from distributed import Scheduler

async def main():
    async with Scheduler(host="127.0.0.1", port=0, dashboard_address=None, dashboard=False) as scheduler:
        print(scheduler.address, flush=True)
        await scheduler.finished()

asyncio.run(main())
"""

WORKER = """
import asyncio, sys
from distributed import Worker

async def main():
    async with Worker(sys.argv[1], nthreads=1, dashboard=False) as worker:
        await worker.finished()

asyncio.run(main())
"""


@pytest.mark.filterwarnings("default")
def test_a_cluster_of_two_workers_gives_the_same(cluster, here):
    trace = small()
    stream = stream_of(trace, Semantics())
    assert hits(run_grid(CELLS, stream, trace, Semantics(), scheduler=cluster[0])) == here


@pytest.mark.filterwarnings("default")
def test_a_worker_that_dies_loses_nothing(cluster, here):
    address, workers = cluster
    trace = small()
    stream = stream_of(trace, Semantics())
    done = threading.Event()

    def kill_one(count, _):
        if count >= 2 and not done.is_set():
            done.set()
            workers[0].kill()

    many = CELLS * 12
    found = run_grid(many, stream, trace, Semantics(), scheduler=address, told=kill_one)
    assert done.is_set()
    workers[0].wait(timeout=10)
    assert hits(found) == here * 12


@pytest.mark.filterwarnings("default")
def test_a_scheduler_that_is_not_there_is_named():
    pytest.importorskip("distributed", reason="the extra `distributed` is not installed")
    started = time.monotonic()
    with pytest.raises(SettingsError, match=r"no scheduler answers at 'tcp://127\.0\.0\.1:9'"):
        replay_trace(small(5), [3], scheduler="tcp://127.0.0.1:9")
    assert time.monotonic() - started < 60


def test_without_the_extra_one_line_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(SettingsError, match=r"pip install 'kvcalc\[distributed\]'"):
        replay_trace(small(5), [3], scheduler="tcp://127.0.0.1:9")


def test_an_interrupted_grid_leaves_no_process(monkeypatch):
    trace = small()

    def stop(*_):
        raise KeyboardInterrupt

    with contextlib.suppress(KeyboardInterrupt):
        run_grid(CELLS, stream_of(trace, Semantics()), trace, Semantics(), 2, told=stop)
    import multiprocessing

    deadline = time.monotonic() + 10
    while multiprocessing.active_children() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert multiprocessing.active_children() == []


def half_an_answer(written):
    """Write the first bytes of an answer of 4 KiB where a worker writes its answers, and go no further."""
    answers = sys._getframe(1).f_locals["result_queue"]
    os.write(answers._writer.fileno(), (4096).to_bytes(4, "big") + b"half")
    Path(written).touch()
    time.sleep(600)


def test_a_pool_stopped_within_an_answer_does_not_wait_for_its_other_half(tmp_path):
    pool = ProcessPoolExecutor(2, get_context("spawn"))
    pool.submit(half_an_answer, str(tmp_path / "written"))
    while not (tmp_path / "written").exists():
        time.sleep(0.01)
    answers = pool._result_queue
    grid._stop(pool)
    ended = threading.Thread(target=pool.shutdown, daemon=True)
    ended.start()
    ended.join(timeout=20)
    waits = ended.is_alive()
    answers._writer.close()  # Or this process could not end either.
    assert not waits


INTERRUPTED = """
import sys
from kvcalc.cli import run

if __name__ == "__main__":
    sys.exit(run(["replay", sys.argv[1], "--capacity", "900 blocks", "--workers", "2", *sys.argv[2:]]))
"""


def children(pid):
    """Return the processes that a process has started, as Linux tells."""
    file = Path(f"/proc/{pid}/task/{pid}/children")
    return file.read_text().split() if file.exists() else []


@pytest.mark.skipif(
    not Path("/proc/self/task").exists(), reason="only Linux tells what a process has started"
)
@pytest.mark.parametrize("seconds", [0.0, 0.1, 0.4, 1.5])
def test_ctrl_c_while_workers_start_or_work_leaves_no_word_and_no_process(tmp_path, seconds):
    draw, rows = np.random.default_rng(0), []
    for time_of_request in range(6_000):
        first = 1_000 * int(draw.integers(0, 300))
        ids = list(range(first, first + int(draw.integers(50, 200))))
        row = {"timestamp": time_of_request, "input_length": 512 * len(ids), "output_length": 1}
        rows.append(json.dumps({**row, "hash_ids": ids}) + "\n")
    trace, script = tmp_path / "trace.jsonl", tmp_path / "script.py"
    trace.write_text("".join(rows))
    script.write_text(INTERRUPTED)
    slow = [word for name in ("lfu", "arc", "gdsf", "cost") for word in ("--policy", name)]
    process = subprocess.Popen(
        [sys.executable, str(script), str(trace), *slow],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        # A shell's background jobs ignore Ctrl-C, and what they start does too.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    while process.poll() is None and len(children(process.pid)) < 2:  # the tracker of resources, a worker
        time.sleep(0.01)
    time.sleep(seconds)
    os.killpg(process.pid, signal.SIGINT)
    # Returns when the last process that holds the pipes has gone.
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, b"", b"")
