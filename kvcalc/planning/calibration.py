"""Measured prefill times of the user's own machine -> what its prefills reach, with a narrow range."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from kvcalc.errors import SettingsError
from kvcalc.planning.pace import Pace, Paces
from kvcalc.quantity import Seconds, Tokens
from kvcalc.scenario import Measurements, PrefillPoint

LEAST_SPREAD = 0.05
"""Relative uncertainty [1] of a calibrated time however well the points are met: repeated runs of one
prefill differ by a few percent; assumed."""

NINE_IN_TEN = 1.645
"""Standard deviations [1] on either side of a normal distribution's middle that hold nine tenths of it."""

FREE = 3
"""Points of different length that it takes to fit both efficiencies and the fixed cost [1]."""

UnitTimes = Callable[[Tokens, Tokens], tuple[Seconds, Seconds, Seconds]]
"""New and cached tokens -> seconds of products and of attention at their full peaks, and of all-reduces."""

Time = Callable[[Tokens, Tokens, Pace], Seconds]
"""New and cached tokens at a pace -> seconds, floors included."""

_Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Calibration:
    """What measured points say, and how well it meets them."""

    paces: Paces
    measured: Measurements
    fitted: str  # what was fitted, in words
    errors: tuple[float, ...]  # relative, of each point
    spread: float  # relative uncertainty of times

    @property
    def told(self) -> str:
        """One sentence about the fit."""
        middle, points = self.paces.middle, self.measured.points
        lengths = [point.tokens + point.cached for point in points]
        count = f"{len(points)} point" + ("s" if len(points) > 1 else "")
        return (
            f"prefill is calibrated on {count} of {self.measured.file} ({min(lengths):,} to "
            f"{max(lengths):,} tokens), {self.fitted} fitted: {middle.products:.0%} of the dense peak, "
            f"{middle.attention:.0%} in attention, {middle.fixed * 1e3:.1f} ms fixed; the points are met "
            f"within {np.sqrt(np.mean(np.square(self.errors))):.1%} on average and "
            f"{max(map(abs, self.errors)):.1%} at worst, the range is {self.spread:.0%} both ways"
        )


def calibrated(measurements: Measurements, prior: Pace, unit_times: UnitTimes, time: Time) -> Calibration:
    """Fit a pace to measured points by least squares of the relative error.

    Three points of different length give both efficiencies and the fixed cost; fewer, or points that
    those cannot meet, give the level of the prior alone.

    Raises
    ------
    SettingsError
        If a point is faster than the machine's peak allows.
    """
    points = measurements.points
    new, cached, measured = (
        np.array([getattr(point, name) for point in points], dtype=float)
        for name in ("tokens", "cached", "seconds")
    )
    products, attention, waiting = (np.broadcast_to(part, new.shape) for part in unit_times(new, cached))
    _refuse_impossible(points, products + attention + waiting, measured)
    lengths = len(set(zip(new, cached, strict=True)))
    pace, fitted, free = _fit(products, attention, measured - waiting, measured, prior, lengths)
    errors = np.asarray(time(new, cached, pace), dtype=float) / measured - 1
    # Each fitted number takes one point's freedom to differ.
    deviation = float(np.sqrt(np.sum(np.square(errors)) / max(1, len(points) - free)))
    spread = max(LEAST_SPREAD, NINE_IN_TEN * deviation)
    return Calibration(Paces.around(pace, spread), measurements, fitted, tuple(errors.tolist()), spread)


def _refuse_impossible(points: tuple[PrefillPoint, ...], least: _Numbers, measured: _Numbers) -> None:
    worst = int(np.argmax(least / measured))
    if least[worst] > measured[worst]:
        point = points[worst]
        raise SettingsError(
            f"{point.where}: {point.tokens:,} tokens in {point.seconds:g} s is "
            f"{least[worst] / measured[worst]:.1f} times what the peak of the machine allows; was the prompt "
            "cached, or is it another machine?"
        )


def _fit(
    products: _Numbers,
    attention: _Numbers,
    computing: _Numbers,
    measured: _Numbers,
    prior: Pace,
    lengths: int,
) -> tuple[Pace, str, int]:
    """Return the pace, what was fitted, and how many numbers that are."""
    if lengths >= FREE:
        ones = np.ones_like(measured)
        for fixed, words in ((True, "both efficiencies and a fixed cost"), (False, "both efficiencies")):
            columns = [products, attention, *([ones] if fixed else [])]
            solved = _least_squares(columns, computing, measured)
            if solved.min() >= 0 and solved[:2].min() >= 1:
                pace = replace(
                    prior,
                    products=float(1 / solved[0]),
                    attention=float(1 / solved[1]),
                    fixed=float(solved[2]) if fixed else 0.0,
                )
                return pace, words, len(columns)
    modelled = products / prior.products + attention / prior.attention + prior.fixed
    (level,) = _least_squares([modelled], computing, measured)
    return prior.times(float(1 / level)), "the level", 1


def _least_squares(columns: list[_Numbers], target: _Numbers, measured: _Numbers) -> _Numbers:
    """Return the factors of the columns whose sum misses the target by least, relative to the measured."""
    matrix = np.stack(columns, axis=1) / measured[:, None]
    return np.asarray(np.linalg.lstsq(matrix, target / measured, rcond=None)[0], dtype=np.float64)
