"""How long a plan with five tiers takes with 100,000 Monte Carlo draws: `python benchmarks/draws.py`.

Prints one line a model: the best of three runs without draws and with them, in seconds.
"""

import time

import kvcalc

DRAWS = 100_000
TIERS = {
    name: {"bandwidth": f"{0.7 * rate}..{1.3 * rate} GB/s", "setup": "5..20 ms"}
    for name, rate in zip("abcde", (54, 20, 6.5, 3, 1), strict=True)
}
CASES = (("llama-3.1-70b", 4), ("deepseek-v3", 8), ("gpt-oss-120b", 1))


def seconds(model: str, gpus: int, draws: int) -> float:
    """Return the best time of three plans."""
    best = float("inf")
    for _ in range(3):
        began = time.perf_counter()
        kvcalc.plan(
            model,
            on="h200-sxm-141gb",
            gpus=gpus,
            engine="vllm",
            prompt="16k",
            hit="0.4..0.7",
            queue="1..5 ms",
            tiers=TIERS,
            draws=draws,
        )
        best = min(best, time.perf_counter() - began)
    return best


def main() -> None:
    """Print the times."""
    for model, gpus in CASES:
        alone, drawn = seconds(model, gpus, 0), seconds(model, gpus, DRAWS)
        print(f"{model}: {alone:.3f} s, with {DRAWS:,} draws {drawn:.3f} s")


if __name__ == "__main__":
    main()
