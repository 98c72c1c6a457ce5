"""How often the fit of a probe is right about a device whose t0 and B are known.

    python benchmarks/probe_coverage.py [--write]

Each trial draws t0, B and a seed, measures a simulated device as `kvcalc probe` measures a link, and looks
whether both lie in the intervals that the fit states; devices with a fault are to be refused and flagged.
A device that slows down by less than the gate is right where the rates of its first and its last copy both
lie in the interval.  With `--write` the figures go to docs/probe_coverage.json, which the page on the probe
shows; a test repeats the first trials of each case and compares.
"""

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
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

HELD = 25  # trials of each case that the test repeats

CASES = [(samples, noise, 0.0) for samples in (9, 15, 25) for noise in (0.002, 0.01, 0.02)]
SLOW = [
    (samples, noise, drift) for drift in (0.02, 0.01) for samples in (9, 15, 25) for noise in (0.002, 0.01)
]
"""Samples, noise, and the drift from the first sample to the last [1]."""
FAULTS: dict[str, dict[str, Any]] = {
    "two_piece": {"knee": 2**19, "second_t0": 60e-6, "second_bandwidth": 25e9},
    "capped": {"t0": 2e-6, "bandwidth": 60e9, "cap": 12e9},
    "drifting": {"drift": 0.1},
    "bimodal": {"slow_share": 0.4},
    "implausible": {"bandwidth": 70e9, "bound": 63e9},
}


def fitted(behaviour: Behaviour, samples: int) -> tuple[Fit, float]:
    """Return the fit of one direction of a device that behaves so, and how long it was measured [second]."""
    device, sizes = SimulatedDevice(behaviour), sorted(SIZES)
    host, memory = device.host(sizes[-1], pinned=True), device.memory(sizes[-1])

    def step(size: int) -> Step:
        target, source = device.part(memory, 0, size), device.part(host, 0, size)
        return Step(float(size), lambda: device.copy(target, source), most_repeats=COPIES)

    series = Series("H1", "h2d.pinned", "host-device", "h2d", "one_way", "copy_engine", bound=behaviour.bound)
    budget = Budget(samples, float("inf"), warm=False)
    _, fit = series_of(series, sweep(DeviceTimer(device.queue()), [step(size) for size in sizes], budget))
    assert fit is not None
    return fit, device.clock


def inside(value: float, ends: tuple[float, float] | None) -> bool:
    """Tell whether a true value lies in a stated interval."""
    return ends is not None and ends[0] <= value <= ends[1]


def trials(samples: int, noise: float, drift: float, count: int) -> Iterator[tuple[Fit, bool, bool]]:
    """Yield each trial's fit, and whether t0 and B lie inside of what it states."""
    rng = np.random.default_rng([samples, int(noise * 1e4)])
    for seed in range(count):
        t0, bandwidth = 10 ** rng.uniform(-5.7, -4.7), 10 ** rng.uniform(9.5, 11)
        told = Behaviour(t0, bandwidth, noise=noise, seed=seed)
        fit, seconds = fitted(told, samples)
        if drift:
            fit, _ = fitted(replace(told, drift=drift, drift_seconds=seconds), samples)
        ends = (1.0, 1 + drift)
        yield (
            fit,
            all(inside(t0 * slower, fit.t0_range) for slower in ends),
            all(inside(bandwidth / slower, fit.bandwidth_range) for slower in ends),
        )


def coverage(cases: list[tuple[int, float, float]]) -> Iterator[dict[str, Any]]:
    """Yield how often both parameters lie in their intervals, case by case."""
    for samples, noise, drift in cases:
        found = list(trials(samples, noise, drift, TRIALS))
        widths = [
            max(half_width(fit.t0_range, fit.t0), half_width(fit.bandwidth_range, fit.bandwidth))
            for fit, _, _ in found
            if fit.published and fit.t0 is not None
        ]
        counts = {
            "published": len(widths),
            "t0": sum(t0 for _, t0, _ in found),
            "bandwidth": sum(bandwidth for _, _, bandwidth in found),
            "both": sum(t0 and bandwidth for _, t0, bandwidth in found),
        }
        yield {
            "samples": samples,
            "noise": noise,
            "drift": drift,
            "trials": TRIALS,
            **{name: count / TRIALS for name, count in counts.items()},
            "widest": round(max(widths), 4),
            "held": [round(float(fit.bandwidth or 0.0)) for fit, _, _ in found[:HELD]],
        }


def faults() -> Iterator[dict[str, object]]:
    """Yield how often a device with a fault is flagged and refused."""
    for flag, behaviour in FAULTS.items():
        flagged = refused = 0
        for seed in range(FAULT_TRIALS):
            fit, _ = fitted(Behaviour(noise=0.01, seed=seed, **behaviour), 15)
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
    body: dict[str, list[Any]] = {"coverage": [], "slow": [], "faults": []}
    for name, rows in (("coverage", coverage(CASES)), ("slow", coverage(SLOW)), ("faults", faults())):
        for row in rows:
            body[name].append(row)
            print(row, flush=True)
    if "--write" in sys.argv:
        RESULT.write_text(json.dumps(body, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
