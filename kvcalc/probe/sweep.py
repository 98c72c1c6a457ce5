"""A ladder of sizes, sampled in turns: each pass takes one sample of every size.

Taken in turns, a machine that slows down over time shows a drift at every size, and cannot be mistaken for
one that is slow at large sizes.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import field, replace

from kvcalc.probe.fit import BOUND_SLACK, Fit, Rung, fit_of
from kvcalc.probe.results import Measurement
from kvcalc.probe.scalars import BytesPerSecond
from kvcalc.probe.statistics import DRIFT, Summary, agree, common_drift, summary_of
from kvcalc.probe.timing import Sample, Timer, Work
from kvcalc.records import record

WARM_SECONDS = 0.3
"""Least warm-up [second]: links leave their idle speed and clocks ramp."""
WARM_LONGEST = 3.0
"""Longest warm-up [second]; what has not settled by then is measured as it is."""
WARM_SHARE = 0.3
"""Share of the time of a series that its warm-up may take [1]."""
SAMPLE_SECONDS = 0.005
"""Least length of a sample [second], against the resolution of events (about 0.5 us)."""
MOST_REPEATS = 1000
"""Most operations in one sample [1]: a full queue blocks the host."""
LEAST_SAMPLES = 5
"""Samples without which a size is left out [1]."""


@record
class Budget:
    """How much a series may take."""

    samples: int
    until: float  # the timer's clock at which no new pass starts
    sample_seconds: float = SAMPLE_SECONDS
    warm: bool = True


@record
class Step:
    """One size: what is timed, and what is said of it."""

    chunk: float  # bytes of one piece; 0 where no bytes move
    work: Work
    chunks: int = 1  # pieces that one operation moves
    operations: float | None = None  # that one operation computes
    per: int = 1  # operations that one call of `work` does
    counted: float | None = None  # bytes that the bandwidth counts; None: chunk times chunks
    verify: Callable[[], bool] | None = None
    clear: Callable[[], None] | None = None  # spoils the target before verification
    most_repeats: int = MOST_REPEATS


@record
class Series:
    """What all sizes of a series share."""

    test: str
    name: str
    path: str
    direction: str
    counted: str
    mechanism: str
    device: int | None = None
    pinned: bool | None = None
    order: str = ""
    in_flight: int = 1
    bound: BytesPerSecond | None = None
    flags: tuple[str, ...] = ()
    fitted: bool = True


@record
class Taken:
    """Samples of one step."""

    step: Step
    repeats: int
    samples: tuple[Sample, ...]
    verified: bool | None = None
    flags: tuple[str, ...] = field(default=())


def sweep(timer: Timer, steps: Sequence[Step], budget: Budget) -> list[Taken]:
    """Return the samples of every step, taken in turns after a warm-up on the largest."""
    if not steps:
        return []
    if budget.warm:
        warm_up(timer, max(steps, key=lambda step: step.chunk * step.chunks), budget)
    repeats = [_repeats(timer, step, budget) for step in steps]
    samples: list[list[Sample]] = [[] for _ in steps]
    for taken in range(budget.samples):
        if taken >= LEAST_SAMPLES and timer.now() > budget.until:
            break
        for at, step in enumerate(steps):
            samples[at].append(_sample(timer, step, repeats[at]))
    return [
        Taken(step, count * step.per, tuple(found), verified(step), _taken_flags(found, budget))
        for step, count, found in zip(steps, repeats, samples, strict=True)
    ]


def warm_up(timer: Timer, step: Step, budget: Budget) -> None:
    """Run a step until enough time has passed and three medians agree."""
    begun, medians = timer.now(), list[float]()
    longest = min(WARM_LONGEST, WARM_SHARE * max(0.0, budget.until - begun))
    while timer.now() - begun < longest:
        three = sorted(_sample(timer, step, 1).seconds for _ in range(3))
        medians.append(three[1])
        if timer.now() - begun >= WARM_SECONDS and agree(medians):
            return


def verified(step: Step) -> bool | None:
    """Spoil the target, do the work once more, and compare; None where nothing can be compared."""
    if step.verify is None:
        return None
    if step.clear is not None:
        step.clear()
    step.work()
    return step.verify()


def _sample(timer: Timer, step: Step, repeats: int) -> Sample:
    found = timer.sample(step.work, repeats)
    if step.per == 1:
        return found
    enqueue = None if found.enqueue is None else found.enqueue / step.per
    return Sample(found.seconds / step.per, enqueue, found.launch_bound)


def _repeats(timer: Timer, step: Step, budget: Budget) -> int:
    once = timer.sample(step.work, 1).seconds
    wanted = math.ceil(budget.sample_seconds / once) if once > 0 else step.most_repeats
    return max(1, min(step.most_repeats, wanted))


def _taken_flags(samples: Sequence[Sample], budget: Budget) -> tuple[str, ...]:
    flags = []
    if len(samples) < budget.samples:
        flags.append("few_samples")
    if sum(sample.launch_bound for sample in samples) * 2 > len(samples):
        flags.append("launch_bound")
    return tuple(flags)


def series_of(series: Series, taken: Sequence[Taken]) -> tuple[list[Measurement], Fit | None]:
    """Return the measurements of a series, and its fit where a line is looked for."""
    summaries = [summary_of([sample.seconds for sample in one.samples]) for one in taken]
    spoiled = [
        tuple(name for name in ("launch_bound",) if name in one.flags)
        + (("verification",) if one.verified is False else ())
        for one in taken
    ]
    fit = None
    if series.fitted:
        rungs = [
            Rung(one.step.chunk * one.step.chunks, summary, not bad)
            for one, summary, bad in zip(taken, summaries, spoiled, strict=True)
        ]
        good = [one for one, bad in zip(taken, spoiled, strict=True) if not bad]
        drift = common_drift([[sample.seconds for sample in one.samples] for one in good])
        fit = fit_of(rungs, series.bound, drift)
    t0 = fit.t0 if fit is not None and fit.published else None
    rows = [
        _measurement(series, one, summary, bad, t0)
        for one, summary, bad in zip(taken, summaries, spoiled, strict=True)
    ]
    beyond = any("implausible" in row.flags for row in rows) or (
        fit is not None and "implausible" in fit.flags
    )
    # Whatever made one size too fast, a wrong clock or copies that were not made, spoils the others too.
    return [_flagged(row, "implausible") for row in rows] if beyond else rows, fit


def _flagged(row: Measurement, flag: str) -> Measurement:
    return row if flag in row.flags else replace(row, flags=(*row.flags, flag))


def _measurement(
    series: Series, one: Taken, summary: Summary, spoiled: tuple[str, ...], t0: float | None
) -> Measurement:
    step = one.step
    counted = step.chunk * step.chunks if step.counted is None else step.counted
    rate = counted / summary.median if counted and summary.median > 0 else None
    flags = [*series.flags, *summary.flags, *one.flags, *spoiled]
    if abs(summary.drift) > DRIFT and abs(summary.drift) * summary.median > 4 * summary.mad:
        flags.append("drifting")
    if series.bound is not None and rate is not None and rate > series.bound * BOUND_SLACK:
        flags.append("implausible")
    return Measurement(
        test=series.test,
        series=series.name,
        device=series.device,
        path=series.path,
        direction=series.direction,
        pinned=series.pinned,
        mechanism=series.mechanism,
        order=series.order,
        counted=series.counted,
        chunk_bytes=step.chunk,
        n_chunks=step.chunks,
        operations=step.operations,
        in_flight=series.in_flight,
        bandwidth=rate,
        bandwidth_range=(counted / summary.high, counted / summary.low) if rate else None,
        t0=t0,
        median=summary.median,
        mad=summary.mad,
        p10=summary.p10,
        p90=summary.p90,
        median_range=(summary.low, summary.high),
        outliers=summary.outliers,
        enqueue=_enqueue(one.samples),
        repeats=one.repeats,
        samples=tuple(float(sample.seconds) for sample in one.samples),
        verified=one.verified,
        flags=tuple(dict.fromkeys(flags)),
    )


def _enqueue(samples: Sequence[Sample]) -> float | None:
    known = sorted(float(sample.enqueue) for sample in samples if sample.enqueue is not None)
    return known[len(known) // 2] if known else None
