"""Small traces of every dialect, written by hand."""

import gzip
import json

import pytest

from kvcalc.replay.readers import Asked, read_trace


@pytest.fixture
def read(tmp_path):
    """Write lines (objects become JSON) into a file and read it as a trace."""

    def reading(lines, name="trace.jsonl", dialect=None, **asked):
        texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
        content = "".join(f"{text}\n" for text in texts).encode()
        file = tmp_path / name
        file.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
        return read_trace(str(file), dialect, Asked(**asked))

    return reading


def row(ids, tokens, time=0, output=0, **more):
    """Return a line of a Mooncake trace."""
    return {"timestamp": time, "input_length": tokens, "output_length": output, "hash_ids": ids, **more}


def expanded(trace):
    """Return the requests of a trace as lists of ids."""
    runs = [
        list(range(first, first + blocks))
        for first, blocks in zip(trace.run_first.tolist(), trace.run_blocks.tolist(), strict=True)
    ]
    spans = zip(trace.run_start[:-1], trace.run_start[1:], strict=True)
    return [[block for run in runs[a:b] for block in run] for a, b in spans]


def found(trace, name):
    """Return the finding of this name, or None."""
    return next((one for one in trace.findings if one.name == name), None)
