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

ROUNDS = 4
"""Rounds of so many runs at most: one more where a ratio is above its limit, since a busy machine leaves few
moments as long as a plan undisturbed, and more as short as an import."""

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


def slower(best: dict[str, float]) -> list[str]:
    """Return the commands whose ratio to the first one is above its limit."""
    base = best["import numpy"]
    return [name for name, (_, limit) in COMMANDS.items() if limit is not None and best[name] / base > limit]


def main() -> int:
    """Measure, print a table, and return 1 where `--check` finds a ratio above its limit."""
    best = dict.fromkeys(COMMANDS, float("inf"))
    for _ in range(ROUNDS):
        for _ in range(RUNS):
            for name, (arguments, _limit) in COMMANDS.items():
                best[name] = min(best[name], fastest(arguments))
        slow = slower(best)
        if not slow:
            break
    base = best["import numpy"]
    for name, (_arguments, limit) in COMMANDS.items():
        ratio = best[name] / base
        verdict = "" if limit is None else f"limit {limit:g}" + ("  TOO SLOW" if name in slow else "")
        print(f"{best[name] * 1e3:7.0f} ms  {ratio:5.2f} x  {name}  {verdict}")
    return 1 if slow and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
