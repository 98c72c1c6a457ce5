"""What a list of sample times says: robust figures, an interval of the median, and what is wrong with it.

Nothing is dropped: samples far above the median are counted and kept.
"""

import math
import statistics
from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from kvcalc.probe.scalars import Count, Seconds, Share
from kvcalc.records import record

ROBUST_SIGMA = 1.4826
"""Standard deviation over median absolute deviation of a normal distribution [1]."""

LEVEL = 0.95
"""Confidence of an interval of a median [1]."""

STEADY = 0.02
"""MAD over median up to which samples are good [1]; after the gates of probe practice, as those below."""
USABLE = 0.05
"""MAD over median up to which samples are usable with a note [1]."""
DRIFT = 0.03
"""Change from the first to the last third of the samples that is called a drift [1]."""
CLEAR = 2.0
"""Standard errors from which on a drift is more than noise [1]."""
THIRDS = 1.5
"""Way from the first sample to the last over that from the first third's middle to the last one's [1]."""
LEAST_PASSES = 6
"""Passes without which nothing is said of a drift [1]: two in each third."""
MEDIAN_ERROR = math.sqrt(math.pi / 2)
"""Standard error of a median over that of a mean, of normal samples [1]."""
FAR = 5.0
"""MADs above the median from which a sample is counted as an outlier [1]."""

ORDER_SAMPLES = 9
"""Samples from which order statistics give an interval of the median [1]; fewer are resampled."""
RESAMPLES = 2_000
_SEED = 20_261_129  # of the resampling, so that two looks at one file agree

MODES_APART = 0.05
"""Relative distance of two groups of samples from which they are two modes [1]."""
MODES_CLEAR = ((9, 10.5), (11, 8.1), (15, 6.5), (25, 4.8))
"""Samples, and the distance of the two groups over the spread inside them that counts as clear [1]: one in
a thousand of normal samples, split where they split best, lies as far apart (6,000 draws of each)."""
MODES_SHARE = 0.2
"""Least share of the samples that a mode holds [1]; fewer are outliers."""


@record
class Summary:
    """Sample times of one rung."""

    n: Count
    median: Seconds
    mad: Seconds  # median absolute deviation, without the factor of a normal distribution
    p10: Seconds
    p90: Seconds
    low: Seconds  # of the 95 % interval of the median
    high: Seconds
    least: Seconds
    outliers: Count  # more than five MADs above the median
    drift: Share  # last third over first third, less one
    bimodal: bool

    @property
    def spread(self) -> Share:
        """MAD over median."""
        return self.mad / self.median if self.median else 0.0

    @property
    def flags(self) -> tuple[str, ...]:
        """What is wrong with the samples, by the names of `kvcalc.probe.flags`."""
        found = []
        if self.bimodal:
            found.append("bimodal")
        elif self.spread > USABLE:
            found.append("unstable")
        elif self.spread > STEADY:
            found.append("noisy")
        return tuple(found)


def summary_of(samples: Sequence[float]) -> Summary:
    """Return the robust figures of sample times in the order in which they were taken.

    >>> found = summary_of([1.0, 1.0, 1.1, 0.9, 1.0, 1.0, 1.0, 1.0, 3.0])
    >>> print(found.median, found.outliers, found.low, found.high)
    1.0 2 1.0 1.1
    """
    times = np.asarray(samples, dtype=float)
    median = float(np.median(times))
    mad = float(np.median(np.abs(times - median)))
    low, high = median_interval(times)
    p10, p90 = np.quantile(times, (0.1, 0.9))
    return Summary(
        n=len(times),
        median=median,
        mad=mad,
        p10=float(p10),
        p90=float(p90),
        low=low,
        high=high,
        least=float(times.min()),
        outliers=int(np.sum(times > median + FAR * ROBUST_SIGMA * mad))
        if mad
        else int(np.sum(times > median)),
        drift=drift_of(times),
        bimodal=is_bimodal(times),
    )


def median_interval(times: NDArray[np.float64]) -> tuple[float, float]:
    """Return the 95 % interval of the median: order statistics, or resampling for few samples."""
    ordered = np.sort(times)
    count = len(ordered)
    if count >= ORDER_SAMPLES:
        rank = _rank(count)
        return float(ordered[rank]), float(ordered[count - 1 - rank])
    draws = np.random.default_rng(_SEED).integers(0, count, size=(RESAMPLES, count))
    low, high = np.quantile(np.median(ordered[draws], axis=1), ((1 - LEVEL) / 2, (1 + LEVEL) / 2))
    return float(low), float(high)


@cache
def _rank(count: int) -> int:
    """Return how many samples lie below the lower end of the interval: a binomial tail of 2.5 %."""
    tail, rank = 0.0, 0
    while True:
        tail += math.comb(count, rank) / 2**count
        if tail > (1 - LEVEL) / 2:
            return max(0, rank - 1)
        rank += 1


def drift_of(times: NDArray[np.float64]) -> float:
    """Return by which share the last third of the samples is slower than the first."""
    third = len(times) // 3
    if third == 0:
        return 0.0
    first, last = float(np.median(times[:third])), float(np.median(times[-third:]))
    return last / first - 1 if first > 0 else 0.0


@record
class Drift:
    """How a series as a whole changed while it was sampled."""

    change: Share  # from its beginning to its end, relative; 0 where it is not more than noise
    half: Share  # from the middle to either end, with the standard error of the change


NO_DRIFT = Drift(0.0, 0.0)


def common_drift(series: Sequence[Sequence[float]]) -> Drift:
    """Return the drift that all sizes of a series share, each pass being one sample of every size.

    What all sizes have in common stands out of the noise of each: the median over the sizes of their times
    relative to their own medians.  The last third of the passes is held against the first third, and
    against the first two passes, since a machine that heats up may have done so by then.

    Parameters
    ----------
    series : the sample times of each size [second], in the order in which they were taken
    """
    passes = min((len(times) for times in series), default=0)
    if passes < LEAST_PASSES:
        return NO_DRIFT
    times = np.array([one[:passes] for one in series], dtype=float)
    relative = times / np.median(times, axis=1, keepdims=True) - 1
    common = np.median(relative, axis=0)
    # Successive samples differ by noise alone, however slowly the machine changes.
    noise = ROBUST_SIGMA * float(np.median(np.abs(np.diff(relative, axis=1)))) / math.sqrt(2)
    each = MEDIAN_ERROR * noise / math.sqrt(len(times))
    third = passes // 3
    late = float(np.median(common[-third:]))
    of_third = MEDIAN_ERROR**2 / third
    found = (
        (late - float(np.median(common[:third])), each * math.sqrt(2 * of_third)),
        (late - float(np.mean(common[:2])), each * math.sqrt(of_third + 1 / 2)),
    )
    change, error = max(found, key=lambda one: abs(one[0]))
    if abs(change) <= CLEAR * error:
        return NO_DRIFT
    # A pass takes its large sizes last: their middle lies half a pass behind that of the run.
    return Drift(change, (abs(change) + error) * THIRDS / 2 * (1 + 1 / passes))


def is_bimodal(times: NDArray[np.float64]) -> bool:
    """Tell whether the samples fall into two groups that are clearly apart."""
    ordered, count = np.sort(times), len(times)
    least = max(2, math.ceil(MODES_SHARE * count))
    if count < ORDER_SAMPLES:
        return False
    splits = range(least, count - least + 1)
    inside = [ordered[:at].var() * at + ordered[at:].var() * (count - at) for at in splits]
    at = splits[int(np.argmin(inside))]
    apart = float(ordered[at:].mean() - ordered[:at].mean())
    within = math.sqrt(float(min(inside)) / count)
    counts, distances = zip(*MODES_CLEAR, strict=True)
    clear = float(np.interp(float(count), counts, distances))
    return apart > MODES_APART * float(np.median(ordered)) and apart > clear * within


def agree(medians: Sequence[float], tolerance: float = STEADY) -> bool:
    """Tell whether the last three medians agree, which ends a warm-up."""
    last = medians[-3:]
    return len(last) == 3 and max(last) <= min(last) * (1 + tolerance)


def t_quantile(two_tailed: float, freedom: int) -> float:
    """Return the quantile of Student's t that leaves `two_tailed` outside on both sides together.

    G. W. Hill, Algorithm 396: Student's t-quantiles, Communications of the ACM 13 (1970).

    >>> print(round(t_quantile(0.05, 3), 3), round(t_quantile(0.05, 10), 3))
    3.182 2.228
    """
    n, p = float(freedom), two_tailed
    if freedom == 1:
        return math.cos(p * math.pi / 2) / math.sin(p * math.pi / 2)
    if freedom == 2:
        return math.sqrt(2 / (p * (2 - p)) - 2)
    a = 1 / (n - 0.5)
    b = 48 / (a * a)
    c = ((20700 * a / b - 98) * a - 16) * a + 96.36
    d = ((94.5 / (b + c) - 3) / b + 1) * math.sqrt(a * math.pi / 2) * n
    y = (d * p) ** (2 / n)
    if y > 0.05 + a:
        y = _near_normal(p, n, a, b, c, d)
    else:
        y = ((1 / (((n + 6) / (n * y) - 0.089 * d - 0.822) * (n + 2) * 3) + 0.5 / (n + 4)) * y - 1) * (
            n + 1
        ) / (n + 2) + 1 / y
    return math.sqrt(n * y)


def _near_normal(p: float, n: float, a: float, b: float, c: float, d: float) -> float:
    x = statistics.NormalDist().inv_cdf(p / 2)
    y = x * x
    if n < 5:
        c += 0.3 * (n - 4.5) * (x + 0.6)
    c += (((0.05 * d * x - 5) * x - 7) * x - 2) * x + b
    y = (((((0.4 * y + 6.3) * y + 36) * y + 94.5) / c - y - 3) / b + 1) * x
    y = a * y * y
    return math.expm1(y)
