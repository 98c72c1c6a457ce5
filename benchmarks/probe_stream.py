"""The probe's copy of host memory against STREAM's copy loop, compiled from C, in one run.

    python benchmarks/probe_stream.py [--check]

Needs gcc.  Both copy buffers of the same size with the same number of threads and count what they read
and write; samples are taken in turns, and the fastest of each counts, as in STREAM.  With `--check` a
difference of more than a tenth is an error.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from kvcalc.probe.backends.host import HostCopies, buffer_size
from kvcalc.probe.environment import allowed_cpus, last_level_cache, memory_info
from kvcalc.probe.timing import HostTimer

ROUNDS = 25
LARGEST = 0.10

# STREAM's copy (John D. McCalpin, https://www.cs.virginia.edu/stream/): c[i] = a[i] over doubles, first
# touched in parallel.  One line of input asks for one timed pass, so that both programs take turns.
SOURCE = r"""
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}
int main(int argc, char **argv) {
    (void)argc;
    long n = atol(argv[1]) / (long)sizeof(double);
    double *a = malloc(n * sizeof(double)), *c = malloc(n * sizeof(double));
    char line[8];
#pragma omp parallel for
    for (long i = 0; i < n; i++) { a[i] = 1.0 + i; c[i] = 0.0; }
    while (fgets(line, sizeof line, stdin)) {
        double begun = now();
#pragma omp parallel for
        for (long i = 0; i < n; i++) c[i] = a[i];
        printf("%.9f\n", now() - begun);
        fflush(stdout);
        if (c[n - 1] != a[n - 1]) return 1;
    }
    return 0;
}
"""


def compiled(folder: str) -> str:
    """Return the compiled loop."""
    source, program = Path(folder) / "copy.c", Path(folder) / "copy"
    source.write_text(SOURCE, encoding="utf-8")
    subprocess.run(["gcc", "-O3", "-fopenmp", str(source), "-o", str(program)], check=True)
    return str(program)


def both(program: str, size: int, threads: int) -> tuple[float, float]:
    """Return the fastest pass of each [second]."""
    copies, timer = HostCopies(size, threads), HostTimer()
    work, ours, theirs = copies.copy(), [], []
    settings = {**os.environ, "OMP_NUM_THREADS": str(threads)}
    with subprocess.Popen(
        [program, str(size)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=settings
    ) as stream:
        assert stream.stdin is not None
        assert stream.stdout is not None
        for _ in range(ROUNDS):
            ours.append(timer.sample(work, 1).seconds)
            stream.stdin.write("\n")
            stream.stdin.flush()
            theirs.append(float(stream.stdout.readline()))
        stream.stdin.close()
    copies.close()
    return min(ours), min(theirs)


def main() -> int:
    """Compare with one thread and with all; return 1 where `--check` finds more than a tenth."""
    size = buffer_size(last_level_cache(), memory_info()["MemAvailable"])
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        program = compiled(folder)
        for threads in sorted({1, allowed_cpus()}):
            ours, theirs = both(program, size, threads)
            off = theirs / ours - 1
            wrong += abs(off) > LARGEST
            print(
                f"{threads:2} threads, {size // 2**20} MiB: kvcalc {2 * size / ours / 1e9:6.2f} GB/s, "
                f"STREAM {2 * size / theirs / 1e9:6.2f} GB/s, {off:+.1%}"
            )
    return 1 if wrong and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
