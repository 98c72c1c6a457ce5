"""How long the search for a division over 64 GPUs takes.

    python benchmarks/layout_search.py [--check]

The fastest of the runs counts, since everything else on the machine only ever adds time.  With
`--check` a time above `LIMIT` is an error.
"""

import sys
import time

from kvcalc import fit

RUNS = 3
LIMIT = 1.0  # second on two cores

QUESTIONS = {
    "llama-3.1-70b, generic": {"model": "llama-3.1-70b", "on": "h100-sxm-80gb", "target_rate": "40 token/s"},
    "llama-3.1-405b, vllm": {"model": "llama-3.1-405b", "on": "p5.48xlarge", "engine": "vllm"},
    "qwen3-235b-a22b, sglang": {"model": "qwen3-235b-a22b", "on": "p5.48xlarge", "engine": "sglang"},
    "deepseek-v3, generic": {"model": "deepseek-v3", "on": "h200-sxm-141gb"},
    "deepseek-v3, vllm": {"model": "deepseek-v3", "on": "h200-sxm-141gb", "engine": "vllm", "rate": "5/s"},
}


def main() -> int:
    """Measure, print a table, and return 1 where `--check` finds a time above the limit."""
    slowest = 0.0
    for name, question in QUESTIONS.items():
        times = []
        for _ in range(RUNS):
            start = time.perf_counter()
            result = fit(max_gpus=64, concurrency=512, prompt="8k", **question)
            times.append(time.perf_counter() - start)
        slowest = max(slowest, min(times))
        best = f"best of {result.best.gpus} GPUs" if result.best else "none meets it"
        print(f"{name:26} {min(times):6.2f} s  {len(result.rows):4} divisions, {best}")
    return int("--check" in sys.argv and slowest > LIMIT)


if __name__ == "__main__":
    sys.exit(main())
