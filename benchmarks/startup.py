"""How long kvcalc takes to start, as ratios to ``python -c "import numpy"`` on the same machine.

    python benchmarks/startup.py [--check]

Every command runs in turn, so that a slower moment of the machine hits all alike; the fastest of the
runs counts, since everything else on the machine only ever adds time.  With `--check` a ratio above
its limit is an error.
"""

import os
import subprocess
import sys
import time

RUNS = 15

COMMANDS = {
    "import numpy": (["-c", "import numpy"], None),
    "kvcalc --version": (["-m", "kvcalc", "--version"], 0.5),
    "kvcalc --help": (["-m", "kvcalc", "--help"], 2.0),
    "kvcalc plan --help": (["-m", "kvcalc", "plan", "--help"], 1.0),
    "kvcalc replay --help": (["-m", "kvcalc", "replay", "--help"], 1.0),
    "kvcalc plan llama-3.1-8b --on h100-sxm-80gb": (
        ["-m", "kvcalc", "plan", "llama-3.1-8b", "--on", "h100-sxm-80gb"],
        3.5,
    ),
}
"""Command -> (arguments of the interpreter, largest ratio to the first one)."""


def fastest(arguments: list[str]) -> float:
    """Return the wall time of one run in seconds, with compiled modules cached as pip installs them."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    start = time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True, env=environment)
    return time.perf_counter() - start


def main() -> int:
    """Measure, print a table, and return 1 where `--check` finds a ratio above its limit."""
    best = dict.fromkeys(COMMANDS, float("inf"))
    for _ in range(RUNS):
        for name, (arguments, _limit) in COMMANDS.items():
            best[name] = min(best[name], fastest(arguments))
    base = best["import numpy"]
    slow = 0
    for name, (_arguments, limit) in COMMANDS.items():
        ratio = best[name] / base
        verdict = "" if limit is None else f"limit {limit:g}" + ("  TOO SLOW" if ratio > limit else "")
        slow += limit is not None and ratio > limit
        print(f"{best[name] * 1e3:7.0f} ms  {ratio:5.2f} x  {name}  {verdict}")
    return 1 if slow and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
