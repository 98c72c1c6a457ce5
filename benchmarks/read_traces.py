"""How long traces take to read: `python benchmarks/read_traces.py [TRACE ...]`.

Without a trace two are made up: 50,000 requests of coding agents, 95 million block accesses as runs of ids,
and 5 million as lists of ids.  With and without orjson (extra `fast`), memory as the process's peak.
"""

import json
import random
import resource
import sys
import tempfile
import time
from pathlib import Path

from kvcalc.replay.readers import read_trace, stream


def main(paths: list[str]) -> None:
    """Read each trace with each parser and print the figures."""
    with tempfile.TemporaryDirectory() as folder:
        for path in paths or [_runs(Path(folder)), _lists(Path(folder))]:
            for name, parser in (("installed", stream.parser()), ("json", stream.plain_parser())):
                _measure(path, name, parser)


def _measure(path: str, name: str, parser: object) -> None:
    stream.parser = lambda: parser  # type: ignore[assignment]
    from kvcalc.replay.readers import reading

    reading.parser = stream.parser
    began, busy = time.perf_counter(), time.process_time()
    trace = read_trace(path)
    taken, busy = time.perf_counter() - began, time.process_time() - busy
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{Path(path).name:24} {name:10} {trace.requests:8,} requests {trace.accesses:11,} accesses "
        f"{taken:6.2f} s ({busy:.2f} s CPU) {trace.accesses / taken / 1e6:7.1f} M/s, peak {peak:,.0f} MiB"
    )


def _sessions() -> list[list[tuple[int, int]]]:
    """Return the prompts of 700 sessions as the spans of their ids."""
    random.seed(7)
    requests, free = [], 0
    for _ in range(700):
        spans = [(free, blocks := random.randint(200, 1500))]
        free += blocks
        for _ in range(71):
            requests.append(list(spans))
            spans.append((free, blocks := random.randint(1, 60)))
            free += blocks
    return requests


def _runs(folder: Path) -> str:
    file = folder / "runs.jsonl"
    with file.open("w") as out:
        for place, spans in enumerate(_sessions()):
            blocks = sum(count for _, count in spans)
            row = {"t": float(place), "in": 64 * blocks, "out": 1, "block_size": 64, "hash_ids": spans}
            out.write(json.dumps(row) + "\n")
    return str(file)


def _lists(folder: Path) -> str:
    file = folder / "lists.jsonl"
    with file.open("w") as out:
        for place, spans in enumerate(_sessions()[:3000]):
            ids = [block for first, count in spans for block in range(first, first + count)]
            row = {"timestamp": place, "input_length": 512 * len(ids), "output_length": 1, "hash_ids": ids}
            out.write(json.dumps(row) + "\n")
    return str(file)


if __name__ == "__main__":
    main(sys.argv[1:])
