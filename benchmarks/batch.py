"""How long a million loads take through memory, prefill and decode.

    python benchmarks/batch.py [--check]

Each deployment answers a million rows of prompt, generation and concurrency; the fastest of the runs
counts, since everything else on the machine only ever adds time.  With `--check` a time above
`LIMIT` is an error.
"""

import sys
import time

import numpy as np

from kvcalc.api import plan_batch

ROWS = 1_000_000
RUNS = 3
LIMIT = 5.0  # seconds on two cores

DEPLOYMENTS = {
    "llama-3.1-8b, generic": {"model": "llama-3.1-8b", "on": "h100-sxm-80gb"},
    "llama-3.1-70b, vllm, tp 4": {"model": "llama-3.1-70b", "on": "h100-sxm-80gb", "engine": "vllm", "tp": 4},
    "qwen3-30b-a3b, vllm": {"model": "qwen3-30b-a3b", "on": "h200-sxm-141gb", "engine": "vllm"},
    "gpt-oss-120b, sglang, tp 2": {
        "model": "gpt-oss-120b",
        "on": "h100-sxm-80gb",
        "engine": "sglang",
        "tp": 2,
    },
    "deepseek-v3, vllm, tp 8": {"model": "deepseek-v3", "on": "h200-sxm-141gb", "engine": "vllm", "tp": 8},
}


def main() -> int:
    """Measure, print a table, and return 1 where `--check` finds a time above the limit."""
    draw = np.random.default_rng(7)
    loads = {
        "prompt": draw.integers(1, 100_000, ROWS),
        "generate": draw.integers(1, 4_000, ROWS),
        "concurrency": draw.integers(1, 512, ROWS),
    }
    slow = 0
    for name, deployment in DEPLOYMENTS.items():
        best = float("inf")
        for _ in range(RUNS):
            start = time.perf_counter()
            plan_batch(**deployment, **loads)
            best = min(best, time.perf_counter() - start)
        slow += best > LIMIT
        print(f"{best:6.2f} s  {ROWS / best / 1e6:5.2f} million rows/s  {name}")
    return 1 if slow and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
