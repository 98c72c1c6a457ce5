r"""The line through copy times, \(t(s) = t_0 + s / B\), and the gates that it must pass to be published.

A link that copies `s` bytes at `B` after a fixed time `t0` is worth two numbers; a link that does not is
worth its table.  No gate is a matter of taste: each stands for a way in which such lines have been
published and were wrong.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from kvcalc.probe.scalars import Bytes, BytesPerSecond, Count, Seconds, Share
from kvcalc.probe.statistics import DRIFT, NO_DRIFT, ORDER_SAMPLES, Drift, Summary, t_quantile
from kvcalc.records import record

LEAST_RUNGS = 5
"""Sizes that a line needs [1]."""
LEAST_SPAN = 100.0
"""Largest size over smallest [1]."""
LEAST_R2 = 0.98
"""Weighted coefficient of determination [1]; without it lines of 1018 and 3763 GB/s have been published."""
LEAST_STREAM = 0.25
"""Least share of the time at the largest size that the term s/B must take [1]; else B is not seen."""
TOP_NEAR = 0.10
"""How far the rate at the largest size may lie from B [1]."""
BOUND_SLACK = 1.03
"""A rate above this multiple of the physical limit is no measurement of the link [1]."""
WIDEST = 0.10
"""Half-width of an interval, relative to its value, up to which the value is published [1]."""
MANY = 1 / 3
"""Share of the sizes with a fault from which on it is the series' own [1]: chosen."""
LEAST_OFF = 0.03
"""Largest residual below which a line is good enough, knee or not [1]."""
KNEE_F = 25.0
"""Ratio of variances from which two pieces are better than one [1]: far in the tail of F(2, 5) and beyond,
since a knee is looked for at every size."""
LEAST_PIECE = 2
"""Sizes that the lower of two pieces needs [1]; the upper one needs one more."""
FLAT = 0.03
"""Share of the time that a fixed part may take at the smallest size of a plateau, as caps have one [1]."""
ALPHA = 0.033
"""Chance at which either of t0 and B may lie outside of its interval [1]: both lie inside in 95 of 100
series, since they err together (`benchmarks/probe_coverage.py` counts it)."""

_ROUNDS = 4  # of weighting by the fitted times


@record
class Rung:
    """One size of a ladder, with what its samples say."""

    size: Bytes
    time: Summary
    trusted: bool = True  # False: its content was wrong, or its samples were launch-bound

    @property
    def bandwidth(self) -> BytesPerSecond:
        """Bytes over the median time."""
        return self.size / self.time.median


@record
class Piece:
    """One straight piece of a series."""

    smallest: Bytes
    largest: Bytes
    t0: Seconds
    bandwidth: BytesPerSecond


@record
class Fit:
    """What a line says of one series, or why none is published."""

    published: bool
    reason: str  # why not; empty where it is
    bandwidth: BytesPerSecond | None  # B
    bandwidth_range: tuple[BytesPerSecond, BytesPerSecond] | None  # 95 %, with t0 together
    t0: Seconds | None  # fixed time before the bytes; null where it is lost in the noise
    t0_range: tuple[Seconds, Seconds] | None  # 95 %, with B together
    half_size: Bytes | None  # size that reaches half of B: t0 B
    r_squared: Share | None  # weighted
    theil_sen: BytesPerSecond | None  # B by the median slope of the upper half of the sizes
    residuals: tuple[Share, ...]  # of each size, relative
    pieces: tuple[Piece, ...]  # two where one line does not hold
    bound: BytesPerSecond | None  # physical limit that B was held against
    flags: tuple[str, ...]  # what is wrong


@record
class _Line:
    t0: float
    slope: float  # seconds a byte
    t0_half: float
    slope_half: float
    residuals: NDArray[np.float64]
    r_squared: float

    @property
    def cost(self) -> float:
        return float(np.sum(self.residuals**2))


def fit_of(rungs: Sequence[Rung], bound: BytesPerSecond | None = None, drift: Drift = NO_DRIFT) -> Fit:
    """Fit a series and hold the line against every gate.

    Parameters
    ----------
    rungs : the sizes, in any order
    bound : rate that the link cannot exceed; None where it is not known
    drift : of all sizes together; a small one widens the intervals by the way that the times went
    """
    used = sorted((rung for rung in rungs if rung.trusted), key=lambda rung: float(rung.size))
    flags = _flags(used, drift)
    early = _too_little(used)
    if early:
        return _refused(early, flags, bound)
    size = np.array([rung.size for rung in used], dtype=float)
    time = np.array([rung.time.median for rung in used], dtype=float)
    noise = _noise(used)
    line = _line(size, time, noise)
    pieces, plateau = _pieces(size, time, noise, line)
    line = replace(
        line,
        t0_half=line.t0_half + drift.half * abs(line.t0),
        slope_half=line.slope_half + drift.half * abs(line.slope),
    )
    flags += ["two_piece"] if pieces else []
    flags += ["capped"] if plateau else []
    return _judged(size, time, line, pieces, flags, bound)


def _judged(
    size: NDArray[np.float64],
    time: NDArray[np.float64],
    line: _Line,
    pieces: tuple[Piece, ...],
    flags: list[str],
    bound: float | None,
) -> Fit:
    bandwidth = 1 / line.slope if line.slope > 0 else math.inf
    if math.isfinite(bandwidth) and bound is not None and bandwidth > bound * BOUND_SLACK:
        flags.append("implausible")
    reason = _objection(size, time, line, flags, bound)
    ends = _ends(line)
    low, high = ends if ends else (math.nan, math.nan)
    if bound is not None and bandwidth > bound:
        # The limit is a nominal one: what lies within the slack above it may be as far below.
        flags.append("cut_to_bound")
        bandwidth, low = bound, min(low, bound / BOUND_SLACK)
    if bound is not None:
        high = min(high, bound)
    t0_known = line.t0 > 0 and line.t0_half <= WIDEST * line.t0
    if reason:
        return _refused(reason, flags, bound, line, pieces, _theil_sen(size, time))
    return Fit(
        published=True,
        reason="" if t0_known else "t0 is lost in the noise of the smallest sizes; B stands alone",
        bandwidth=bandwidth,
        bandwidth_range=(low, high),
        t0=line.t0 if t0_known else None,
        t0_range=(line.t0 - line.t0_half, line.t0 + line.t0_half) if t0_known else None,
        half_size=line.t0 * bandwidth if t0_known else None,
        r_squared=line.r_squared,
        theil_sen=_theil_sen(size, time),
        residuals=tuple(map(float, line.residuals)),
        pieces=pieces,
        bound=bound,
        flags=tuple(dict.fromkeys(flags)),
    )


def _flags(used: Sequence[Rung], common: Drift) -> list[str]:
    """Return what the samples of a series have in common that forbids a line."""
    flags: list[str] = []
    if not used:
        return flags
    if sum(rung.time.bimodal for rung in used) >= MANY * len(used):
        flags.append("bimodal")
    drift = float(np.median([rung.time.drift for rung in used]))
    if max(abs(drift), abs(common.change)) > DRIFT:
        flags.append("drifting")
    if sum("unstable" in rung.time.flags for rung in used) >= MANY * len(used) and "bimodal" not in flags:
        flags.append("unstable")
    return flags


def _too_little(used: Sequence[Rung]) -> str:
    if len(used) < LEAST_RUNGS:
        return f"{len(used)} sizes are too few for a line; it takes {LEAST_RUNGS}"
    fewest = min(float(rung.time.n) for rung in used)
    if fewest < ORDER_SAMPLES:
        return f"{fewest:g} samples of a size are too few to see two groups in; a line takes {ORDER_SAMPLES}"
    span = float(used[-1].size / used[0].size)
    if span < LEAST_SPAN:
        return f"the sizes span a factor of {span:.3g}; a line takes {LEAST_SPAN:g}"
    return ""


_SPOILED = {
    "bimodal": "the samples fall into two groups",
    "drifting": "the samples drift from first to last",
    "unstable": "the samples scatter by more than a twentieth",
    "capped": "the rate stops growing at a cap, which a line would hide in t0",
    "two_piece": "two straight pieces meet at a knee, which one line misses",
}


def _objection(
    size: NDArray[np.float64],
    time: NDArray[np.float64],
    line: _Line,
    flags: Sequence[str],
    bound: float | None,
) -> str:
    """Return the first gate that the line fails; empty where it passes all."""
    for flag, words in _SPOILED.items():
        if flag in flags:
            return words
    if line.slope <= 0:
        return "the time does not grow with the size"
    bandwidth, top = 1 / line.slope, float(size[-1] / time[-1])
    if "implausible" in flags and bound is not None:
        return f"{bandwidth / 1e9:.4g} GB/s is above the {bound / 1e9:.4g} GB/s that is physically there"
    if line.r_squared < LEAST_R2:
        return f"the line explains {line.r_squared:.3f} of the variance; {LEAST_R2} is asked"
    if float(size[-1]) * line.slope < LEAST_STREAM * float(time[-1]):
        return "the bytes take less than a quarter of the time even at the largest size"
    if abs(top / bandwidth - 1) > TOP_NEAR:
        return f"the largest size reaches {top / 1e9:.4g} GB/s, more than a tenth off {bandwidth / 1e9:.4g}"
    if not line.slope_half <= WIDEST * line.slope:
        return "the interval of B is wider than a tenth of it on either side"
    return ""


def _ends(line: _Line) -> tuple[float, float] | None:
    if line.slope_half >= line.slope:
        return None
    return 1 / (line.slope + line.slope_half), 1 / (line.slope - line.slope_half)


def _noise(used: Sequence[Rung]) -> NDArray[np.float64]:
    """Return the scatter of each size relative to the usual one, smoothed over its neighbours; at least 1.

    Small copies jitter more than large ones where a clock ticks coarsely, and count less for that.
    """
    spread = np.array([rung.time.spread for rung in used])
    smooth = np.array([np.median(spread[max(0, at - 2) : at + 3]) for at in range(len(spread))])
    usual = float(np.median(smooth))
    return np.maximum(1.0, smooth / usual) if usual > 0 else np.ones_like(smooth)


def _line(size: NDArray[np.float64], time: NDArray[np.float64], noise: NDArray[np.float64]) -> _Line:
    """Return the line of least relative residuals; the weights are those of the fitted times."""
    scale = float(size.max())
    design = np.column_stack([np.ones_like(size), size / scale])
    solution, weight = _solved(size / scale, time, noise)
    residuals = (time - design @ solution) * weight
    errors = _errors(design * weight[:, None], residuals)
    wide = t_quantile(ALPHA, max(1, len(size) - 2))
    mean = float(np.average(time, weights=weight**2))
    total = float(np.sum(((time - mean) * weight) ** 2))
    return _Line(
        t0=float(solution[0]),
        slope=float(solution[1]) / scale,
        t0_half=wide * float(errors[0]),
        slope_half=wide * float(errors[1]) / scale,
        residuals=residuals * noise,
        r_squared=1 - float(np.sum(residuals**2)) / total if total > 0 else 0.0,
    )


def _solved(
    x: NDArray[np.float64], time: NDArray[np.float64], noise: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return intercept and slope by the normal equations, and the weights that they were found with."""
    fitted = time
    for _ in range(_ROUNDS):
        weight = 1 / np.where(fitted > 0, fitted, time) / noise
        w = weight**2
        total, first, second = w.sum(), (w * x).sum(), (w * x * x).sum()
        plain, crossed = (w * time).sum(), (w * x * time).sum()
        solution = np.array([second * plain - first * crossed, total * crossed - first * plain])
        solution /= total * second - first**2
        fitted = solution[0] + solution[1] * x
    return solution, 1 / np.where(fitted > 0, fitted, time) / noise


def _cost(size: NDArray[np.float64], time: NDArray[np.float64], noise: NDArray[np.float64]) -> float:
    """Return the sum of squared relative residuals of the line through some sizes."""
    x = size / size.max()
    solution, weight = _solved(x, time, noise)
    return float(np.sum(((time - solution[0] - solution[1] * x) * weight * noise) ** 2))


def _errors(weighted: NDArray[np.float64], residuals: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the standard errors: of equal relative noise, or of each size's own where those are larger.

    The second are those of MacKinnon and White (1985), HC3: right where small sizes jitter more than large
    ones, as with a clock of coarse ticks.
    """
    inverse = np.linalg.inv(weighted.T @ weighted)
    freedom = max(1, len(residuals) - 2)
    equal = inverse * float(np.sum(residuals**2)) / freedom
    leverage = np.einsum("ij,jk,ik->i", weighted, inverse, weighted)
    own = residuals / np.maximum(1 - leverage, 1e-3)
    sandwich = inverse @ (weighted.T * own**2) @ weighted @ inverse
    return np.asarray(np.sqrt(np.maximum(np.diag(equal), np.diag(sandwich))))


def _theil_sen(size: NDArray[np.float64], time: NDArray[np.float64]) -> float | None:
    """Return B by the median slope between the upper half of the sizes, which no single size can move."""
    half = max(3, len(size) // 2)
    s, t = size[-half:], time[-half:]
    first, second = np.triu_indices(len(s), k=1)
    slope = float(np.median((t[second] - t[first]) / (s[second] - s[first])))
    return 1 / slope if slope > 0 else None


def _pieces(
    size: NDArray[np.float64], time: NDArray[np.float64], noise: NDArray[np.float64], line: _Line
) -> tuple[tuple[Piece, ...], bool]:
    """Return the two pieces that fit clearly better than one line, and whether the upper one is a cap."""
    freedom = len(size) - 4
    if freedom < 1:
        return (), False
    cost, at = min(
        (_cost(size[:at], time[:at], noise[:at]) + _cost(size[at:], time[at:], noise[at:]), at)
        for at in range(LEAST_PIECE, len(size) - LEAST_PIECE)
    )
    lower, upper = (_line(size[part], time[part], noise[part]) for part in (slice(at), slice(at, None)))
    better = (line.cost - cost) / 2 / max(cost / freedom, 1e-30)
    if better < KNEE_F or float(np.max(np.abs(line.residuals))) < LEAST_OFF:
        return (), False
    if lower.slope <= 0 or upper.slope <= 0:
        return (), False
    ends = ((size[:at], lower), (size[at:], upper))
    found = tuple(Piece(float(s[0]), float(s[-1]), part.t0, 1 / part.slope) for s, part in ends)
    # One rate at all of its sizes, below that of the lower piece: nothing fixed is left in its times.
    flat = upper.t0 <= max(upper.t0_half if upper.t0_half < time[at] / 2 else 0.0, FLAT * float(time[at]))
    return found, flat and upper.slope > lower.slope


def _refused(
    reason: str,
    flags: Sequence[str],
    bound: float | None,
    line: _Line | None = None,
    pieces: tuple[Piece, ...] = (),
    theil_sen: float | None = None,
) -> Fit:
    return Fit(
        published=False,
        reason=reason,
        bandwidth=None,
        bandwidth_range=None,
        t0=None,
        t0_range=None,
        half_size=None,
        r_squared=None if line is None else line.r_squared,
        theil_sen=theil_sen,
        residuals=() if line is None else tuple(map(float, line.residuals)),
        pieces=pieces,
        bound=bound,
        flags=tuple(dict.fromkeys(flags)),
    )


def half_width(ends: tuple[float, float] | None, value: Count | None) -> float:
    """Return the half-width of an interval relative to its value; infinite where there is none."""
    return (ends[1] - ends[0]) / 2 / float(value) if ends and value else math.inf
