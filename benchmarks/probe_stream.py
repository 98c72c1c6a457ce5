"""The probe's copy of host memory against STREAM's copy loop, compiled from C, in one run.

    python benchmarks/probe_stream.py [--check]

Needs gcc.  Both copy buffers of the same size with the same number of threads and count what they read
and write, and passes are taken in turns.  With `--check` a difference of more than a tenth between the
medians is an error: medians are what a probe publishes, and other programs that copy meanwhile slow both down
alike.  The fastest passes, which STREAM reports, are shown beside.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from kvcalc.probe.backends.host import PASSES, HostCopies, buffer_size
from kvcalc.probe.environment import allowed_cpus, last_level_cache, memory_info
from kvcalc.probe.timing import HostTimer

ROUNDS, FRESH = 17, 3
"""Passes between one pair of buffers, and pairs that are allocated anew [1]: where the kernel puts
their pages moves either program by a tenth."""
LARGEST = 0.10

# STREAM's copy (John D. McCalpin, https://www.cs.virginia.edu/stream/): c[i] = a[i] over static arrays of
# doubles, first touched in parallel.  OFFSET, as there, keeps arrays of 2^n bytes from beginning at the same
# places of a cache.  One line of input asks for one timed pass, so that both programs take turns.
SOURCE = r"""
#include <stdio.h>
#include <time.h>
static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}
#define OFFSET 1000
static double a[N + OFFSET], b[N + OFFSET], c[N + OFFSET];
int main(void) {
    char line[8];
#pragma omp parallel for
    for (long i = 0; i < N; i++) { a[i] = 1.0; b[i] = 2.0; c[i] = 0.0; }
    while (fgets(line, sizeof line, stdin)) {
        double begun = now();
#pragma omp parallel for
        for (long i = 0; i < N; i++) c[i] = a[i];
        printf("%.9f\n", now() - begun);
        fflush(stdout);
        if (c[N - 1] != a[N - 1] || b[N - 1] != 2.0) return 1;
    }
    return 0;
}
"""


def compiled(folder: str, size: int) -> str:
    """Return the loop over arrays of so many bytes, compiled as STREAM's page says."""
    source, program = Path(folder) / "copy.c", Path(folder) / "copy"
    source.write_text(SOURCE, encoding="utf-8")
    count = f"-DN={size // 8}"
    subprocess.run(["gcc", "-O3", "-fopenmp", count, str(source), "-o", str(program)], check=True)
    return str(program)


def both(program: str, size: int, threads: int) -> tuple[list[float], list[float]]:
    """Return the passes of each [second], the fastest first."""
    copies, timer = HostCopies(size, threads), HostTimer()
    work, ours, theirs = copies.copy(), [], []
    # Threads of OpenMP that spin while they wait would take a CPU from the other program's turn.
    settings = {**os.environ, "OMP_NUM_THREADS": str(threads), "OMP_WAIT_POLICY": "passive"}
    with subprocess.Popen(
        [program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=settings
    ) as stream:
        assert stream.stdin is not None
        assert stream.stdout is not None
        for _ in range(ROUNDS):
            ours.append(timer.sample(work, 1).seconds / PASSES)
            stream.stdin.write("\n")
            stream.stdin.flush()
            theirs.append(float(stream.stdout.readline()))
        stream.stdin.close()
    copies.close()
    return sorted(ours), sorted(theirs)


def main() -> int:
    """Compare with one thread and with all; return 1 where `--check` finds more than a tenth."""
    size = buffer_size(last_level_cache(), memory_info()["MemAvailable"])
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        program = compiled(folder, size)
        for threads in sorted({1, allowed_cpus()}):
            pairs = [both(program, size, threads) for _ in range(FRESH)]
            ours, theirs = (sorted(passed for pair in pairs for passed in pair[side]) for side in (0, 1))
            middle = ROUNDS * FRESH // 2
            off, fastest = theirs[middle] / ours[middle] - 1, theirs[0] / ours[0] - 1
            wrong += abs(off) > LARGEST
            rates = [2 * size / at / 1e9 for side in (ours, theirs) for at in (side[middle], side[0])]
            print(
                f"{threads:2} threads, {size // 2**20} MiB: medians of kvcalc {rates[0]:.2f} GB/s, of STREAM "
                f"{rates[2]:.2f} GB/s, {off:+.1%}; fastest {rates[1]:.2f} and {rates[3]:.2f}, {fastest:+.1%}"
            )
    return 1 if wrong and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
