"""One chunk of a grid -> its columns; what a worker of a cluster runs as well."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kvcalc.api import scenario
from kvcalc.catalog.load import refuse_two_hits
from kvcalc.catalog.scenarios import Question, Said, read_value
from kvcalc.errors import KvcalcError
from kvcalc.frames import as_long, cached_of, lengths_agree, with_loads
from kvcalc.keys import key
from kvcalc.planning.batch import COLUMNS, Launch, Loads, Numbers, PlanColumn, answer_loads, launch_of, row_of
from kvcalc.planning.memory import tell_longest
from kvcalc.planning.plan import Plan
from kvcalc.scenario import Scenario, Workload
from kvcalc.sweeping.axes import Axis, applied
from kvcalc.sweeping.chunks import Chunk, Columns, Values, Words, joined
from kvcalc.sweeping.grid import Grid
from kvcalc.sweeping.results import SweepColumn

WHOLE = ("prompt", "generate", "concurrency")
"""Keys of a load that every row has."""

ABOUT = {"model": "the model", "on": "the machine"}
"""Columns that every row has before those of its axes."""


WHOLE_HITS = "no cached or hit given: offload is judged for a hit of the whole prompt of each row"


def columns_of(grid: Grid) -> tuple[SweepColumn, ...]:
    """Return the columns of a sweep: model and machine, what was varied, and what was answered."""
    varied = [SweepColumn(axis.key, axis.unit, "varied input", axis.is_share) for axis in grid.axes]
    about = [
        SweepColumn(name, "", words)
        for name, words in ABOUT.items()
        if name not in {axis.key for axis in grid.axes}
    ]
    answered = [SweepColumn(item.name, item.unit, item.meaning, item.share) for item in COLUMNS]
    return (*about, *varied, *answered)


def compute(grid: Grid, number: int, told: Callable[[int], None] | None = None) -> Chunk:
    """Return one chunk of a grid; the same wherever and in whichever order chunks are computed.

    `told` is called with the rows of each launch that are done.
    """
    start, stop = grid.span(number)
    pieces = []
    for piece in _pieces(grid, start, stop):
        pieces.append(piece)
        if told is not None:
            told(len(piece))
    warnings = dict.fromkeys(text for piece in pieces for text in piece.warnings)
    assumptions = dict.fromkeys(text for piece in pieces for text in piece.assumptions)
    return Chunk(start, joined(pieces), tuple(warnings), tuple(assumptions))


def _pieces(grid: Grid, start: int, stop: int) -> Iterator[Chunk]:
    """Yield the rows of each launch between two rows."""
    while start < stop:
        end = min(stop, (start // grid.rows_of_launch + 1) * grid.rows_of_launch)
        rows = np.arange(start, end, dtype=np.int64)
        found = _alone(grid, rows) if grid.alone else _launch(grid, rows)
        yield replace(found, columns={**_inputs(grid, rows), **found.columns})
        start = end


def _inputs(grid: Grid, rows: NDArray[np.int64]) -> Columns:
    digits = grid.digits(rows)
    question, _ = grid.asked(int(rows[0]))
    found: Columns = {
        "model": Words.constant(question.model or "", len(rows)),
        "on": Words.constant(question.hardware or "", len(rows)),
    }
    varied = {axis.key: _axis_values(axis, digits[axis.key]) for axis in grid.axes}
    return {**{name: values for name, values in found.items() if name not in varied}, **varied}


def _axis_values(axis: Axis, places: NDArray[np.int64]) -> Values:
    if axis.is_words:
        return Words((places + 1).astype(np.int32), ("", *map(str, axis.values)))
    return np.asarray(axis.values)[places]


def _launch(grid: Grid, rows: NDArray[np.int64]) -> Chunk:
    """Answer rows of one launch together."""
    question, _ = grid.asked(int(rows[0]))
    try:
        asked, loads = _loads(grid, question, rows)
        return _answered(question, asked, loads, _ends(grid, asked))
    except KvcalcError as error:
        return _unanswered(_reason(error), len(rows))


def _loads(grid: Grid, question: Question, rows: NDArray[np.int64]) -> tuple[Scenario, Loads]:
    """Return the scenario of a launch at its largest load, and the loads of some of its rows."""
    digits = grid.digits(rows)
    varied = {axis.key: np.asarray(axis.values, dtype=float)[digits[axis.key]] for axis in grid.loads}
    largest = [max(axis.values) if axis else None for axis in map(_axis_by_key(grid).get, WHOLE)]
    fixed = {name: _said(question, name) for name in WHOLE}
    most = [int(fixed[name] if top is None else top) for name, top in zip(WHOLE, largest, strict=True)]
    refuse_two_hits({*question.said, *varied})
    # How much of the prompt hits is said by each row.
    without = {name: said for name, said in question.said.items() if name not in ("cached", "hit")}
    asked = with_loads(_at_rates(replace(question, said=without), varied), most)
    pictures = asked.workload.prompt - asked.workload.text
    count = len(rows)
    whole = {name: varied.get(name, np.full(count, float(fixed[name]))) for name in WHOLE}
    prompt = whole["prompt"] + pictures
    return asked, Loads(
        prompt=prompt,
        generate=whole["generate"],
        concurrency=whole["concurrency"],
        cached=_cached(question, varied, prompt),
        rate=varied.get("rate"),
        hit_rate=varied.get("hit_rate"),
    )


def _axis_by_key(grid: Grid) -> dict[str, Axis]:
    return {axis.key: axis for axis in grid.loads}


def _at_rates(question: Question, varied: Mapping[str, Numbers]) -> Question:
    """Return the question with a rate and a hit rate in it where rows have some of their own."""
    own = {name: Said(float(varied[name][0]), name, True) for name in ("rate", "hit_rate") if name in varied}
    return replace(question, said={**question.said, **own})


def _cached(question: Question, varied: Mapping[str, Numbers], prompt: Numbers) -> Numbers | None:
    """Return the tokens that hit; a share is one of the whole prompt, as in a plan."""
    if "cached" in varied:
        return varied["cached"]
    if "hit" in varied:
        return np.floor(varied["hit"] * prompt)
    return cached_of(question, prompt)


def _said(question: Question, name: str) -> Any:  # noqa: ANN401 - a value of any key
    if name in question.said:
        return read_value(key(name), question.said[name])
    return getattr(Workload, name)


def _ends(grid: Grid, asked: Scenario) -> tuple[int, int]:
    """Return the shortest and the longest sequence of a launch, over all of its rows."""
    axes, workload = _axis_by_key(grid), asked.workload
    longest = workload.prompt + workload.generate
    shorter = [
        max(axes[name].values) - min(axes[name].values) for name in ("prompt", "generate") if name in axes
    ]
    return longest - sum(shorter), longest


def _answered(question: Question, asked: Scenario, loads: Loads, ends: tuple[int, int]) -> Chunk:
    """Answer loads on a launch that admits the longest of them, or each on one of its own length."""
    if "max_len" in question.said:
        return _chunk(launch_of(asked), loads)
    lengths = loads.prompt + loads.generate
    if ends[0] == ends[1] or lengths_agree(asked, np.array([*ends, *_some(lengths)], dtype=float)):
        return _chunk(launch_of(as_long(asked, ends[1])), loads)
    _, group = np.unique(lengths, return_inverse=True)
    order = np.argsort(group, kind="stable")
    pieces = np.split(order, np.flatnonzero(np.diff(group[order])) + 1)
    found = [_chunk(launch_of(as_long(asked, int(lengths[piece[0]]))), loads.only(piece)) for piece in pieces]
    whole = Chunk(0, joined(found), found[0].warnings, found[0].assumptions)
    return whole.only(np.argsort(order))


def _some(lengths: Numbers) -> Numbers:
    return np.quantile(lengths, (0.25, 0.5, 0.75)).round()


def _chunk(launch: Launch, loads: Loads) -> Chunk:
    found, reason = answer_loads(launch, loads)
    count = len(loads)
    whole = {**launch.constants, **found, "reason": reason}
    if "capacity.shortfall" in found:
        whole["fits"] = found["capacity.shortfall"] <= 0
    columns = {item.name: _column(item, whole.get(item.name), count) for item in COLUMNS}
    tell_longest(launch.speed.scenario, int((loads.prompt + loads.generate).max()), launch.book)
    if loads.cached is None and launch.routes:
        launch.book.assume(WHOLE_HITS)
    return Chunk(0, columns, tuple(launch.book.warnings), tuple(launch.book.assumptions))


def _column(item: PlanColumn, values: Any, count: int) -> Values:  # noqa: ANN401 - an array or one value
    if item.name == "fits":
        return np.zeros(count, dtype=bool) if values is None else np.asarray(values, dtype=bool)
    if not item.unit:
        return Words.constant("", count) if values is None else Words.of(values)
    if values is None or np.ndim(values) == 0:
        return np.full(count, np.nan if values is None else float(values))
    return np.asarray(values, dtype=float)


def _reason(error: KvcalcError) -> str:
    """Return what was wrong with a row; an option is named as a key, since a sweep has none."""
    return str(error).removeprefix("--")


def _unanswered(reason: str, count: int) -> Chunk:
    columns = {item.name: _column(item, None, count) for item in COLUMNS}
    return Chunk(0, {**columns, "reason": Words.constant(reason, count)})


def _alone(grid: Grid, rows: NDArray[np.int64]) -> Chunk:
    """Plan rows one by one, where formulas cannot take them together."""
    found: list[dict[str, Any]] = []
    warnings: dict[str, None] = {}
    assumptions: dict[str, None] = {}
    for row in rows.tolist():
        question, load = grid.asked(row)
        own = [axis for axis in grid.loads if axis.key in load]
        try:
            result = Plan(scenario(applied(question, own, [load[axis.key] for axis in own]))).answer()[0]
        except KvcalcError as error:
            found.append({"reason": _reason(error)})
            continue
        found.append(row_of(result))
        warnings |= dict.fromkeys(result.warnings)
        assumptions |= dict.fromkeys(result.assumptions)
    columns = {item.name: _gathered(item, found) for item in COLUMNS}
    return Chunk(0, columns, tuple(warnings), tuple(assumptions))


def _gathered(item: PlanColumn, rows: list[dict[str, Any]]) -> Values:
    if item.name == "fits":
        return np.array([bool(row.get("fits")) for row in rows])
    if not item.unit:
        return Words.of(np.array([row.get(item.name) or "" for row in rows], dtype=object))
    return np.array([float(row.get(item.name, np.nan)) for row in rows])
