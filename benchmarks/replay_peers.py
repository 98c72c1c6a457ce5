"""Replays against two cache simulators: equal results where semantics agree, and block accesses a second.

    pip install libcachesim==0.3.5 kvcache-simulator==0.1.3    # for this script alone
    python benchmarks/replay_peers.py TRACE [--capacity BLOCKS]... [--accesses N] [--check]

libcachesim (GPL-3, never a dependency) counts hits of any block, looked up one by one, head first;
kvcache-simulator counts prefix hit tokens of the last half of the requests.  Each runs under the semantics
that it has, and `kvcalc` under the same.  A trace with more accesses than `--accesses` is cut to its first
requests.
With `--check` a difference, or a speed below the targets, is an error.  The fastest of the runs counts.
"""

import argparse
import struct
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from kvcalc.replay.curve import curve_of
from kvcalc.replay.depths import depths_of
from kvcalc.replay.outcome import Case
from kvcalc.replay.policies import policy
from kvcalc.replay.readers import read_trace
from kvcalc.replay.semantics import Semantics
from kvcalc.replay.stream import stream_of, take

RUNS = 5
TIMES_FASTER = 10  # target: one capacity of LRU against each peer, in block accesses a second
NEVER = np.iinfo(np.int64).max
LIBCACHESIM = {
    "lru": "LRU",
    "fifo": "FIFO",
    "lfu": "LFU",
    "sieve": "Sieve",
    "gdsf": "GDSF",
    "arc": "ARC",
    "s3fifo": "S3FIFO",
    "belady-insert": "Belady",
}
VARIANTS = {"arc", "s3fifo", "gdsf"}
"""Policies of which libcachesim has variants of its own: their difference is shown and no error."""

ANY = Semantics(touch="head", oversize="thrash", lookup="sequential", hits="any")
LAST_HALF = Semantics(warmup=0.5)
LAST_HALF_HEAD = Semantics(touch="head", oversize="thrash", warmup=0.5)


def main() -> int:
    """Compare, print tables, and return 1 where `--check` finds a difference or a target that is missed."""
    said = _arguments()
    trace = _cut(read_trace(said.trace), said.accesses)
    accesses = trace.accesses
    print(f"{trace.name}: {trace.requests:,} requests, {accesses:,} block accesses")
    failures = []
    with tempfile.TemporaryDirectory() as folder:
        reader = _written(trace, Path(folder))
        for capacity in said.capacity:
            failures += _against_libcachesim(trace, reader, capacity, said.slow)
            failures += _against_kvcache_simulator(trace, capacity)
            failures += _speeds(trace, reader, capacity)
    for line in failures:
        print(f"missed: {line}")
    return 1 if failures and said.check else 0


def _arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("trace")
    parser.add_argument("--capacity", type=int, action="append")
    parser.add_argument("--accesses", type=int, default=10_000_000)
    parser.add_argument("--slow", action="store_true", help="all policies also where they take minutes")
    parser.add_argument("--check", action="store_true")
    said = parser.parse_args()
    said.capacity = said.capacity or [5_859, 19_531]
    return said


def _cut(trace, accesses):
    requests = int(np.searchsorted(np.cumsum(trace.request_blocks), accesses, side="right"))
    return trace if requests >= trace.requests else take(trace, np.arange(requests))


def _ids(trace):
    runs = zip(trace.run_first.tolist(), trace.run_blocks.tolist(), strict=True)
    return np.concatenate([np.arange(first, first + blocks) for first, blocks in runs])


def _written(trace, folder):
    """Write the accesses in libcachesim's binary form with the next access of each, for Belady."""
    import libcachesim as peer

    ids = _ids(trace)
    order = np.argsort(ids, kind="stable")
    following = np.full(len(ids), NEVER, np.int64)
    same = ids[order][1:] == ids[order][:-1]
    following[order[:-1][same]] = order[1:][same]
    rows = np.zeros(len(ids), np.dtype([("time", "<u4"), ("id", "<u8"), ("size", "<u4"), ("next", "<i8")]))
    assert rows.dtype.itemsize == struct.calcsize("<IQIq")
    rows["time"], rows["id"], rows["size"], rows["next"] = np.arange(len(ids)), ids + 1, 1, following
    file = folder / "trace.oracleGeneral"
    rows.tofile(file)
    return lambda: peer.TraceReader(str(file), peer.TraceType.ORACLE_GENERAL_TRACE)


def _hits(trace, capacity, name, said):
    stream = stream_of(trace, said)
    found = policy(name)(Case(stream, capacity, said))
    return int(found.hit_blocks[stream.counted].sum()), int(found.hit_tokens[stream.counted].sum())


def _against_libcachesim(trace, reader, capacity, slow):
    import libcachesim as peer

    failures = []
    print(f"\n{capacity:,} blocks: hits of any block, one by one    kvcalc   libcachesim")
    for name, other in LIBCACHESIM.items():
        if name not in ("lru", "fifo") and trace.accesses > 1_000_000 and not slow:
            continue
        miss, _ = getattr(peer, other)(capacity).process_trace(reader())
        own = _hits(trace, capacity, name, ANY)[0] / trace.accesses
        equal = abs(own - (1 - miss)) < 1e-6
        note = "equal" if equal else f"{own - 1 + miss:+.6f}" + (" (a variant)" if name in VARIANTS else "")
        print(f"  {name:44} {own:.6f}  {1 - miss:.6f}  {note}")
        if not equal and name not in VARIANTS:
            failures.append(f"{name} at {capacity} blocks differs from libcachesim")
    return failures


def _peer_trace(trace):
    from kvcache_sim.trace import TraceData

    starts = np.concatenate(([0], np.cumsum(trace.request_blocks)))
    tokens = np.full(starts[-1], trace.block_tokens)
    last = starts[1:][trace.request_blocks > 0] - 1
    rest = trace.input_tokens - (trace.request_blocks - 1) * trace.block_tokens
    tokens[last] = np.minimum(trace.block_tokens, rest[trace.request_blocks > 0])
    total = int(trace.input_tokens.sum())
    return TraceData(
        _ids(trace).tolist(), tokens.tolist(), starts.tolist(), trace.block_tokens, trace.requests,
        trace.unique_blocks, total, total / trace.requests, 0, 0,
    )  # fmt: skip


def _against_kvcache_simulator(trace, capacity):
    from kvcache_sim.cpp_backend import run_cpp_sweep

    warmup = int(0.5 * trace.requests)
    found = run_cpp_sweep(
        _peer_trace(trace), capacities=[capacity], policies=["fifo", "lru", "optimal"], warmup_requests=warmup
    )
    failures = []
    print(f"\n{capacity:,} blocks: hit tokens of the last half           kvcalc   kvcache-simulator")
    own = {
        "fifo": _hits(trace, capacity, "fifo", LAST_HALF_HEAD)[1],
        "lru": _hits(trace, capacity, "lru", LAST_HALF)[1],
        "optimal": _hits(trace, capacity, "belady", LAST_HALF)[1],
    }
    for name, tokens in own.items():
        other = found.results[name, capacity].hitTokens
        note = "equal" if tokens == other else f"{tokens - other:+,}"
        print(f"  {name:40} {tokens:14,} {other:14,}  {note}")
        if tokens != other and name != "optimal":
            failures.append(f"{name} at {capacity} blocks differs from kvcache-simulator")
    return failures


def _best(work, runs=RUNS):
    times = []
    for _ in range(runs):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return min(times)


def _speeds(trace, reader, capacity):
    import libcachesim as peer
    from kvcache_sim.cpp_backend import run_cpp_sweep
    from kvcache_sim.plan import build_execution_plan
    from kvcache_sim.policies import simulate_policy

    few = RUNS if trace.accesses < 1_000_000 else 2
    data = _peer_trace(trace)
    start = {"warmup_requests": int(0.5 * trace.requests)}
    said = Semantics()
    kept = stream_of(trace, said)
    _ = kept.groups
    lru = policy("lru")
    times = {
        "libcachesim, LRU, C++": _best(lambda: peer.LRU(capacity).process_trace(reader()), few),
        "kvcache-simulator, lru, C++": _best(
            lambda: run_cpp_sweep(data, capacities=[capacity], policies=["lru"], **start), few
        ),
        "kvcalc, lru, Python, from the trace": _best(
            lambda: lru(Case(stream_of(trace, said), capacity, said)), few
        ),
        "kvcalc, lru, Python, another capacity": _best(lambda: lru(Case(kept, capacity, said)), few),
        "kvcalc, every capacity, from the trace": _best(
            lambda: curve_of(depths_of(stream_of(trace, said), said)), few
        ),
    }
    if trace.accesses < 1_000_000:
        plan = build_execution_plan(data)
        times["kvcache-simulator, lru, Python"] = _best(lambda: simulate_policy(plan, "lru", capacity), 2)
    print(f"\n{capacity:,} blocks: time and block accesses a second")
    for name, taken in times.items():
        print(f"  {name:40} {taken:8.4f} s {trace.accesses / taken / 1e6:10.1f} M/s")
    peers = [taken for name, taken in times.items() if not name.startswith("kvcalc")]
    failures = []
    one, every = times["kvcalc, lru, Python, from the trace"], times["kvcalc, every capacity, from the trace"]
    if min(peers) / one < TIMES_FASTER:
        failures.append(f"one capacity from the trace is {min(peers) / one:.1f} times faster than the peers")
    if every > times["libcachesim, LRU, C++"]:
        failures.append("the curve takes longer than one capacity of libcachesim")
    return failures


if __name__ == "__main__":
    sys.exit(main())
