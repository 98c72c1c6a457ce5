"""How often the fit of a probe is right about a device whose t0 and B are known.

    python benchmarks/probe_coverage.py [--write]

Each trial draws t0, B and a seed, measures a simulated device as `kvcalc probe` measures a link, and looks
whether both lie in the intervals that the fit states; devices with a fault are to be refused and flagged.
With `--write` the figures go to docs/probe_coverage.json, which the page on the probe shows.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from kvcalc.probe.backends.simulated import Behaviour, SimulatedDevice
from kvcalc.probe.fit import Fit, half_width
from kvcalc.probe.measurements.link import SIZES
from kvcalc.probe.sweep import Budget, Series, Step, series_of, sweep
from kvcalc.probe.timing import DeviceTimer

TRIALS = 1000
FAULT_TRIALS = 200
RESULT = Path(__file__).resolve().parents[1] / "docs" / "probe_coverage.json"
COPIES = 12  # at most in one sample; a virtual clock needs no more

CASES = [(samples, noise) for samples in (9, 15, 25) for noise in (0.002, 0.01, 0.02)]
FAULTS: dict[str, dict[str, Any]] = {
    "two_piece": {"knee": 2**19, "second_t0": 60e-6, "second_bandwidth": 25e9},
    "capped": {"t0": 2e-6, "bandwidth": 60e9, "cap": 12e9},
    "drifting": {"drift": 0.3},
    "bimodal": {"slow_share": 0.4},
    "implausible": {"bandwidth": 70e9, "bound": 63e9},
}


def fitted(behaviour: Behaviour, samples: int) -> Fit:
    """Return the fit of one direction of a device that behaves so."""
    device, sizes = SimulatedDevice(behaviour), sorted(SIZES)
    host, memory = device.host(sizes[-1], pinned=True), device.memory(sizes[-1])

    def step(size: int) -> Step:
        target, source = device.part(memory, 0, size), device.part(host, 0, size)
        return Step(float(size), lambda: device.copy(target, source), most_repeats=COPIES)

    series = Series("H1", "h2d.pinned", "host-device", "h2d", "one_way", "copy_engine", bound=behaviour.bound)
    budget = Budget(samples, float("inf"), warm=False)
    _, fit = series_of(series, sweep(DeviceTimer(device.queue()), [step(size) for size in sizes], budget))
    assert fit is not None
    return fit


def inside(value: float, ends: tuple[float, float] | None) -> bool:
    """Tell whether a true value lies in a stated interval."""
    return ends is not None and ends[0] <= value <= ends[1]


def coverage() -> Iterator[dict[str, float]]:
    """Yield how often both parameters lie in their intervals, case by case."""
    for samples, noise in CASES:
        rng = np.random.default_rng([samples, int(noise * 1e4)])
        counts = dict.fromkeys(("published", "t0", "bandwidth", "both"), 0)
        widest = 0.0
        for seed in range(TRIALS):
            t0, bandwidth = 10 ** rng.uniform(-5.7, -4.7), 10 ** rng.uniform(9.5, 11)
            fit = fitted(Behaviour(t0=t0, bandwidth=bandwidth, noise=noise, seed=seed), samples)
            found = inside(t0, fit.t0_range), inside(bandwidth, fit.bandwidth_range)
            counts["published"] += fit.published and fit.t0 is not None
            counts["t0"] += found[0]
            counts["bandwidth"] += found[1]
            counts["both"] += all(found)
            widest = max(
                widest, half_width(fit.t0_range, fit.t0), half_width(fit.bandwidth_range, fit.bandwidth)
            )
        shares = {name: count / TRIALS for name, count in counts.items()}
        yield {"samples": samples, "noise": noise, "trials": TRIALS, **shares, "widest": round(widest, 4)}


def faults() -> Iterator[dict[str, object]]:
    """Yield how often a device with a fault is flagged and refused."""
    for flag, behaviour in FAULTS.items():
        flagged = refused = 0
        for seed in range(FAULT_TRIALS):
            fit = fitted(Behaviour(noise=0.01, seed=seed, **behaviour), 15)
            flagged += flag in fit.flags
            refused += not fit.published
        yield {
            "flag": flag,
            "trials": FAULT_TRIALS,
            "flagged": flagged / FAULT_TRIALS,
            "refused": refused / FAULT_TRIALS,
        }


def main() -> None:
    """Measure, print, and write where asked."""
    body: dict[str, list[Any]] = {"coverage": [], "faults": []}
    for name, rows in (("coverage", coverage()), ("faults", faults())):
        for row in rows:
            body[name].append(row)
            print(row, flush=True)
    if "--write" in sys.argv:
        RESULT.write_text(json.dumps(body, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
