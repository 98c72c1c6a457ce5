"""How long 100,000 requests take to simulate: `python benchmarks/simulate_requests.py`.

Mean 500 tokens in and 200 out, at most 64 running, one policy, a fixed seed; on one core.  The claim is
under 60 seconds; the figures of a run are printed.
"""

import time

from kvcalc.eviction.load import Generator, Spread
from kvcalc.eviction.simulation import Setup, run
from kvcalc.eviction.steps import StepTimes
from kvcalc.eviction.tactics import Limits, Tactic

MOST = 64
STEPS = StepTimes(
    decode=(0.0, *(0.008 + 5e-5 * batch for batch in range(1, MOST + 1))),
    context=(0.0, *[1e-8] * MOST),
    prefill=(0.0, *(0.002 + 4e-5 * new for new in range(1, 2049))),
    cached=1e-9,
)
LENGTHS = Spread("lognormal", (400, 0.67)), Spread("lognormal", (160, 0.67))


def main() -> None:
    """Simulate a load that is light, one that fills the engine, and one that fills the pool."""
    print("rate  blocks  seconds  evictions  recomputed")
    for rate, blocks in ((4.0, 4000), (16.0, 4000), (16.0, 1000)):
        load = Generator(rate, *LENGTHS, requests=100_000, seed=7).requests_of()
        tactic = Tactic("lru")
        started = time.perf_counter()
        row = run(Setup(load, rate, Limits(blocks, 16), STEPS, (tactic,), 60.0), tactic).row(60.0)
        taken = time.perf_counter() - started
        print(f"{rate:4g}  {blocks:6}  {taken:7.1f}  {row.evictions:9}  {row.recomputed_share:10.1%}")


if __name__ == "__main__":
    main()
