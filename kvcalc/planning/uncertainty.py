"""How sure a verdict is: the gain over the ranges of all inputs, by their ends or by random draws.

A range holds its input nine times out of ten.  A draw takes each input from a normal distribution of
which the range is the central 90 %, on either side of the middle by that side's width, cut off where
the input would be negative, or above what it can be at most; where a distribution was given, from that
one.  Inputs are drawn independently, each
from a stream of its own, so that one more range does not change the draws of the others.
"""

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from kvcalc.formulas.breakeven import NINETY_PERCENT, verdict
from kvcalc.keys import unit_of_key
from kvcalc.offload_results import GainRange, Swing
from kvcalc.planning.offload.rows import settled
from kvcalc.quantity import Real, Seconds
from kvcalc.records import record
from kvcalc.results import Offload
from kvcalc.scenario import SEED, Range

Drawn = Mapping[str, Real]
"""Values of uncertain inputs by key; what is left out keeps its middle."""

PERCENTILES = (0.05, 0.5, 0.95)
"""Of the gain that a result reports [1]: a verdict is called when nine tenths of the draws, with the
tenth on both sides, lie on one side of the break-even."""


@record
class Doubt:
    """How the ranges of a question are to be judged."""

    given: Mapping[str, Range]  # that the user said, by key
    draws: int = 0
    seed: int = SEED


NO_DOUBT = Doubt(MappingProxyType({}))
"""Nothing was given as a range, and nothing is to be drawn."""


@record
class Gains:
    """The rows of an answer with the time that each saves, as a function of what is uncertain."""

    rows: tuple[Offload, ...]
    inputs: tuple[Mapping[str, Range], ...]  # of each row, by key
    of: Callable[[Drawn], Sequence[Seconds]]  # one gain a row, for numbers and arrays of draws

    @property
    def all_inputs(self) -> dict[str, Range]:
        """The inputs of all rows together."""
        return {key: item for inputs in self.inputs for key, item in inputs.items()}


def judged(gains: Gains, doubt: Doubt) -> tuple[tuple[Offload, ...], tuple[Swing, ...]]:
    """Return the rows with their ranges of gain and what follows, and the inputs by their influence."""
    swings = tornado(gains)
    spread = _by_draws(gains, doubt) if doubt.draws else _by_ends(gains)
    rows = tuple(
        _told(row, found, swings)
        if doubt.draws or set(inputs) & set(doubt.given)
        else replace(row, gain=found)
        for row, inputs, found in zip(gains.rows, gains.inputs, spread, strict=True)
    )
    return rows, swings


def draw(inputs: Mapping[str, Range], count: int, seed: int) -> dict[str, NDArray[np.float64]]:
    """Return so many random values of each input, always the same for one seed."""
    return {
        key: _values(item, count, np.random.default_rng([seed, zlib.crc32(key.encode())]))
        for key, item in inputs.items()
    }


def tornado(gains: Gains) -> tuple[Swing, ...]:
    """Return what each input does to each gain by itself, the largest swing first; none that does nothing."""
    found = []
    for key, item in gains.all_inputs.items():
        low, high = gains.of({key: item.low}), gains.of({key: item.high})
        for row, inputs, ends in zip(gains.rows, gains.inputs, zip(low, high, strict=True), strict=True):
            if key in inputs:
                first, last = map(float, ends)
                found.append(_swing(key, item, row, first, last))
    moving = [swing for swing in found if 0 < float(swing.swing) < np.inf]
    return tuple(sorted(moving, key=lambda swing: -float(swing.swing)))


def _swing(key: str, item: Range, row: Offload, first: float, last: float) -> Swing:
    return Swing(
        key=key,
        tier=row.tier,
        mode=row.mode,
        unit=unit_of_key(key),
        low=item.low,
        high=item.high,
        gain_low=first,
        gain_high=last,
        # Where restores wait without end, both gains are.
        swing=0.0 if first == last else abs(last - first),
        decides=(first > 0) != (last > 0),
    )


def _values(item: Range, count: int, generator: "np.random.Generator") -> NDArray[np.float64]:
    values = np.full(count, item.middle)
    if item.low == item.high:
        return values
    missing = np.ones(count, dtype=bool)
    while missing.any():
        values[missing] = _drawn(item, int(missing.sum()), generator)
        missing = (values <= 0) | (values > item.most)
    return values


def _drawn(item: Range, count: int, generator: "np.random.Generator") -> NDArray[np.float64]:
    """Return values of a range by its distribution, before those that cannot be are drawn again."""
    first, second = item.parameters
    if item.spread == "uniform":
        return generator.uniform(first, second, count)
    z = generator.standard_normal(count)
    if item.spread == "normal":
        return first + second * z
    if item.spread == "lognormal":
        return first * np.exp(second * z)
    below, above = item.middle - item.low, item.high - item.middle
    return item.middle + z / NINETY_PERCENT * np.where(z < 0, below, above)


def _by_draws(gains: Gains, doubt: Doubt) -> list[GainRange]:
    """Return the percentiles of each gain."""
    drawn = draw(gains.all_inputs, doubt.draws, doubt.seed)
    found = []
    for gain in gains.of(drawn):
        every = np.broadcast_to(gain, doubt.draws)
        # Some draws may never end: a percentile is one of the draws, never a mean of two.
        low, middle, high = np.quantile(every, PERCENTILES, method="inverted_cdf")
        found.append(GainRange(float(low), float(middle), float(high), float(np.mean(every > 0))))
    return found


def _by_ends(gains: Gains) -> list[GainRange]:
    """Return the gain with all ranges at their worse ends together, in the middle, and at the better."""
    inputs = gains.all_inputs
    lows = {key: gains.of({key: item.low}) for key, item in inputs.items()}
    highs = {key: gains.of({key: item.high}) for key, item in inputs.items()}
    middle = gains.of({})
    found = []
    for index, known in enumerate(gains.inputs):
        worse = {
            key: item.low if lows[key][index] <= highs[key][index] else item.high
            for key, item in known.items()
        }
        better = {key: item.high if worse[key] == item.low else item.low for key, item in known.items()}
        ends = [float(gains.of(chosen)[index]) for chosen in (worse, better)]
        found.append(GainRange(min(ends), float(middle[index]), max(ends), None))
    return found


def _told(row: Offload, gain: GainRange, swings: tuple[Swing, ...]) -> Offload:
    """Return the row with the verdict, the confidence and the words that its range of gain deserves."""
    word = str(verdict(gain.low, gain.high))
    reason = row.reason if word == row.verdict else _reason(row, word, swings)
    return replace(row, gain=gain, verdict=word, confidence=_settled(gain), reason=reason)


def _settled(gain: GainRange) -> float:
    """Return how much likelier the verdict is than its opposite, by the draws or as if they were normal."""
    if gain.faster is None:
        return float(settled(gain.low, gain.high))
    return float(np.abs(2 * gain.faster - 1))


def _reason(row: Offload, word: str, swings: tuple[Swing, ...]) -> str:
    own = [swing for swing in swings if (swing.tier, swing.mode) == (row.tier, row.mode)]
    if word == "too_close":
        named = [swing.key for swing in own if swing.decides] or [swing.key for swing in own[:2]]
        return f"the range of {' and of '.join(named)} straddles the break-even"
    side = "faster" if word == "restore" else "slower"
    return f"{side} than recomputing over at least nine tenths of all ranges"
