"""How long a million rows of a plan take with all columns, written as Parquet, and in how much memory.

    python benchmarks/sweep.py [--check]

Each case is a process of its own, whose peak of memory the system counts.  With `--check` a time above
`SECONDS` or a peak above `BYTES` is an error.
"""

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROWS = 1_000_000
"""Rows of each case [1]: the size that the targets below are stated for."""

SECONDS = 15.0
"""Longest that a case may take with all columns, on two cores [second]: the target of sweeps."""

KIBI = 1024
"""Bytes in which Linux counts the peak of a process [byte]: getrusage(2)."""

BYTES = 1.5e9
"""Most memory that a case may take [byte]: the target of sweeps."""

GIGA, MEGA = 1e9, 1e6
"""Bytes of a gigabyte and of a megabyte, in which they are printed [byte]."""

CASES = {
    "llama-3.1-70b, vllm, two tiers, hits": [
        *("examples/four-gpus-70b.yaml", "prompt=100..100000+100", "concurrency=1..100", "hit=0..0.9/10"),
    ],
    "deepseek-v3, vllm, DRAM, 100 bandwidths": [
        *("examples/eight-gpus-mla.yaml", "prompt=500..50000+500", "concurrency=1..100"),
        "tiers.dram.bandwidth=1..100 GB/s/100",
    ],
    "llama-3.1-8b, 100 machines": [
        *("examples/one-gpu-7b.yaml", "device.bandwidth=0.5..4 TB/s/100", "concurrency=1..10000"),
    ],
}
"""What is swept -> the scenario, then what is varied: a million rows each."""


def sweep(file: str, vary: list[str], target: str) -> None:
    """Answer one case in this process, and print seconds and bytes."""
    import kvcalc

    start = time.perf_counter()
    result = kvcalc.sweep(file, vary=vary, save=target)
    seconds = time.perf_counter() - start
    assert result.count == ROWS, result.count
    print(seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * KIBI)


def main() -> int:
    """Measure, print a table, and return 1 where `--check` finds a case above a limit."""
    if sys.argv[1:2] == ["--one"]:
        sweep(sys.argv[2], sys.argv[3:-1], sys.argv[-1])
        return 0
    over = 0
    for name, (file, *vary) in CASES.items():
        with tempfile.TemporaryDirectory() as folder:
            target = str(Path(folder) / "rows.parquet")
            command = [sys.executable, __file__, "--one", file, *vary, target]
            told = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
            size = Path(target).stat().st_size
        seconds, memory = map(float, told)
        over += seconds > SECONDS or memory > BYTES
        sizes = f"{memory / GIGA:5.2f} GB of memory  {size / MEGA:5.0f} MB of Parquet"
        print(f"{seconds:6.2f} s  {sizes}  {name}")
    return 1 if over and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
