"""The best row of a sweep, and its Pareto front, found chunk by chunk."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from kvcalc.errors import SettingsError, did_you_mean
from kvcalc.planning.batch import COLUMNS
from kvcalc.sweeping.chunks import Chunk, Words, joined

Way = Literal["more", "less"]

_INPUTS: Mapping[str, Way] = {
    "concurrency": "more",
    "prompt": "more",
    "generate": "more",
    "rate": "more",
    "hit": "more",
    "cached": "more",
    "hit_rate": "more",
}
"""Inputs of which a planner wants more; of every other one less, as of GPUs and money."""

_PREFIXES: Mapping[str, Way] = {"max": "more", "min": "less"}


@dataclass(frozen=True)
class Goal:
    """A column that should be as large or as small as possible."""

    name: str
    way: Way

    def cost(self, chunk: Chunk) -> NDArray[np.float64]:
        """Return the column so that less is better; NaN where a row has no answer."""
        values = chunk.columns[self.name]
        if isinstance(values, Words):
            raise SettingsError(f"{self.name}: holds words, which have no order")
        return np.asarray(values, dtype=float) * (1.0 if self.way == "less" else -1.0)

    @property
    def text(self) -> str:
        """The goal as it may be typed."""
        return f"{'max' if self.way == 'more' else 'min'}:{self.name}"


def goal(text: str, columns: Sequence[str], words: Sequence[str], option: str) -> Goal:
    """Read ``KEY``, ``min:KEY`` or ``max:KEY``; without a way, the one that a planner wants.

    >>> goal("decode.step_time", ["decode.step_time"], [], "--best").text
    'min:decode.step_time'
    """
    prefix, colon, rest = text.strip().partition(":")
    name = rest.strip() if colon and prefix in _PREFIXES else text.strip()
    if name not in columns:
        raise SettingsError(f"{option} {text}: no such column{did_you_mean(name, list(columns))}")
    if name in words:
        numbers = [column for column in columns if column not in words]
        raise SettingsError(f"{option} {text}: holds words, which have no order{did_you_mean(name, numbers)}")
    if colon and prefix in _PREFIXES:
        return Goal(name, _PREFIXES[prefix])
    known = {item.name: item.better for item in COLUMNS}
    return Goal(name, known.get(name) or _INPUTS.get(name, "less"))


@dataclass
class Choice:
    """What is kept of the rows that were seen so far: counts, the best row and the front."""

    best_by: Goal | None = None
    front_by: tuple[Goal, ...] = ()
    count: int = 0
    answered: int = 0
    fitting: int = 0
    best: dict[str, Any] | None = None
    first_reason: str = ""
    notes: tuple[dict[str, None], dict[str, None]] = field(default_factory=lambda: ({}, {}))
    _least: float = np.inf
    _front: Chunk | None = None

    def see(self, chunk: Chunk) -> None:
        """Take the rows of a chunk into account."""
        reason, fits = chunk.columns["reason"], np.asarray(chunk.columns["fits"], dtype=bool)
        codes = reason.codes if isinstance(reason, Words) else np.zeros(len(chunk), dtype=np.int32)
        self.count += len(chunk)
        self.answered += int((codes == 0).sum())
        self.fitting += int(fits.sum())
        if not self.first_reason and isinstance(reason, Words) and codes.any():
            self.first_reason = reason.words[int(codes[np.flatnonzero(codes)[0]])]
        for kept, texts in zip(self.notes, (chunk.warnings, chunk.assumptions), strict=True):
            kept.update(dict.fromkeys(texts))
        if self.best_by is not None:
            self._see_best(chunk, fits)
        if self.front_by:
            self._see_front(chunk, fits)

    def _see_best(self, chunk: Chunk, fits: NDArray[np.bool_]) -> None:
        assert self.best_by is not None
        cost = np.where(fits, self.best_by.cost(chunk), np.nan)
        if np.isnan(cost).all():
            return
        at = int(np.nanargmin(cost))
        if cost[at] < self._least:
            self._least, self.best = float(cost[at]), chunk.row(at)

    def _see_front(self, chunk: Chunk, fits: NDArray[np.bool_]) -> None:
        own = chunk.only(np.flatnonzero(fits))
        own = own.only(front([item.cost(own) for item in self.front_by]))
        if self._front is not None:
            own = Chunk(0, joined([self._front, own]))
            own = own.only(front([item.cost(own) for item in self.front_by]))
        self._front = own

    @property
    def pareto(self) -> tuple[dict[str, Any], ...]:
        """The rows of the front, the best in the first goal first."""
        if self._front is None or not len(self._front):
            return ()
        order = np.argsort(self.front_by[0].cost(self._front), kind="stable")
        return tuple(self._front.only(order).rows())


def front(costs: Sequence[NDArray[np.float64]]) -> NDArray[np.intp]:
    """Return the rows that no other row beats in every cost; of equal rows the first.

    Rows are taken in the order of their costs, so one that beats another always comes before it.

    >>> front([np.array([1.0, 2.0, 3.0, 2.0]), np.array([3.0, 2.0, 2.5, 2.0])]).tolist()
    [0, 1]
    """
    known = np.flatnonzero(~np.isnan(np.stack(costs)).any(axis=0))
    table = np.stack([cost[known] for cost in costs])
    order = np.lexsort(table[::-1])
    table = table[:, order]
    if len(costs) <= 2:
        last = table[-1]
        lowest = np.minimum.accumulate(last)
        kept = np.ones(len(order), dtype=bool)
        kept[1:] = last[1:] < lowest[:-1]
        return np.sort(known[order[kept]])
    left, found = np.arange(len(order)), []
    while left.size:
        found.append(int(left[0]))
        beaten = (table[:, left] >= table[:, left[:1]]).all(axis=0)
        left = left[~beaten]
    return np.sort(known[order[found]])
