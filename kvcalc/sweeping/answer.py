"""Asks for one plan over a grid of its inputs: `kvcalc sweep`."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kvcalc import __version__
from kvcalc.api import question_of, scenario, with_file
from kvcalc.catalog import hardware as machines
from kvcalc.catalog import models
from kvcalc.catalog.ranges import settle
from kvcalc.catalog.scenarios import Question
from kvcalc.errors import KvcalcError, SettingsError
from kvcalc.planning.notebook import Notebook
from kvcalc.planning.plan import quote_sources
from kvcalc.results import Source
from kvcalc.sweeping.axes import applied, axes_of
from kvcalc.sweeping.choosing import Choice, Goal, goal
from kvcalc.sweeping.chunks import Chunk
from kvcalc.sweeping.computing import columns_of, compute
from kvcalc.sweeping.curve import Curve
from kvcalc.sweeping.grid import Grid
from kvcalc.sweeping.parts import Parts
from kvcalc.sweeping.results import Rows, SweepAxis, SweepColumn, SweepResult

Progress = Callable[[int, int], None]
"""Told how many rows are done, of how many."""

IN_MEMORY = 5_000_000
"""Most rows that are kept in memory [1]; more have to be saved."""

MOST_ROWS = 1_000_000_000
"""Most rows of a sweep [1]."""

MOST_NOTES = 40
"""Warnings and assumptions that an answer lists at most, of each [1]."""

_ONE_BY_ONE = ("draws", "seed", "gpu_layers")
"""Keys that only a plan of its own can answer, as ranges of inputs."""


@dataclass(frozen=True)
class Wanted:
    """What a sweep should tell beside its rows."""

    best: str | None = None
    pareto: Sequence[str] = ()
    chart: str | None = None
    save: str | None = None
    form: str = ""  # of the file; empty: by its suffix
    scheduler: str | None = None


def sweep(
    model: str,
    on: str | None = None,
    *,
    vary: Mapping[str, Any] | Sequence[str],
    best: str | None = None,
    pareto: Sequence[str] = (),
    chart: str | None = None,
    save: str | None = None,
    scheduler: str | None = None,
    progress: Progress | None = None,
    **said: Any,  # noqa: ANN401 - any key's value
) -> SweepResult:
    """Answer one plan over every combination of the values of some inputs.

    Parameters
    ----------
    model : a model's name or path, or a scenario file (`.yaml`)
    on : a hardware profile's name or path
    vary : inputs with their values: ``{"concurrency": range(1, 65), "prompt": "1k..128k*2"}``, or texts
        as the command line has them
    best : column of which to find the best row among those that fit
    pareto : columns of which to find the front among the rows that fit
    chart : column to gather as lines over the first varied input
    save : file for the rows (`.csv`, `.json` or `.parquet`), which then are not kept in memory; a run
        that was killed goes on where it stopped
    scheduler : address of a Dask scheduler whose workers compute the rows
    progress : told how many rows are done, of how many
    said : any key of `kvcalc.keys.KEYS`

    Examples
    --------
    >>> result = sweep("llama-3.1-8b", on="h100-sxm-80gb", vary={"concurrency": [16, 512]}, prompt="8k")
    >>> [(row["concurrency"], row["fits"]) for row in result.rows]
    [(16, True), (512, False)]
    """
    wanted = Wanted(best, tuple(pareto), chart, save, "", scheduler)
    return sweep_answer(question_of(model, on, **said), vary, wanted, progress)


def sweep_answer(
    question: Question,
    vary: Mapping[str, Any] | Sequence[str],
    wanted: Wanted,
    progress: Progress | None = None,
) -> SweepResult:
    """Answer `sweep` for a question."""
    grid = _grid(with_file(question), vary)
    columns = columns_of(grid)
    choice = Choice(*_goals(wanted, columns))
    curve = _curve(grid, wanted, columns)
    watching = (choice.see, curve.see) if curve else (choice.see,)
    if wanted.save is None:
        chunks: list[Chunk] = []
        for chunk in _in_order(_chunks(grid, range(grid.chunks), wanted, progress), grid.chunks):
            for see in watching:
                see(chunk)
            chunks.append(chunk)
        _check_answered(choice)
        return _result(grid, choice, curve, Rows(chunks, grid.count))
    _save(grid, wanted, watching, choice, curve, progress)
    return _result(grid, choice, curve, ())


def _grid(question: Question, vary: Mapping[str, Any] | Sequence[str]) -> Grid:
    axes = axes_of(vary, question)
    names = {axis.key for axis in axes}
    if question.model is None and "model" not in names:
        raise SettingsError("model: missing; name a profile, a config.json or a scenario file")
    if question.hardware is None and "on" not in names:
        raise SettingsError(
            "--on: missing; name the machine, e.g. --on h100-sxm-80gb (`kvcalc hardware list` shows all)"
        )
    ranged = bool(settle(question)[1])
    alone = ranged or any(name in question.said or name in names for name in _ONE_BY_ONE)
    grid = Grid.of(question, axes, alone)
    if grid.count > MOST_ROWS:
        raise SettingsError(
            f"--vary: {grid.count:,} rows are more than the {MOST_ROWS:,} of the largest sweep"
        )
    for model in () if "model" in names else (question.model,):
        models.load(str(model))
    for machine in () if "on" in names else (question.hardware,):
        machines.load(str(machine))
    return grid


def _goals(wanted: Wanted, columns: Sequence[SweepColumn]) -> tuple[Goal | None, tuple[Goal, ...]]:
    names = [item.name for item in columns]
    words = [item.name for item in columns if not item.unit and item.name != "fits"]
    best = None if wanted.best is None else goal(wanted.best, names, [*words, "fits"], "--best")
    front = tuple(goal(text, names, [*words, "fits"], "--pareto") for text in wanted.pareto)
    if len(front) == 1:
        raise SettingsError(
            f"--pareto {wanted.pareto[0]}: a front takes two columns or more; --best takes one"
        )
    return best, front


def _curve(grid: Grid, wanted: Wanted, columns: Sequence[SweepColumn]) -> Curve | None:
    if wanted.chart is None:
        return None
    names, words = [item.name for item in columns], [item.name for item in columns if not item.unit]
    found = goal(wanted.chart, names, words, "--chart")
    return Curve(grid, found.name, next(item.unit for item in columns if item.name == found.name))


def _chunks(
    grid: Grid, numbers: Sequence[int], wanted: Wanted, progress: Progress | None
) -> Iterator[tuple[int, Chunk]]:
    """Yield the chunks of these numbers as they are finished, here or on a cluster."""
    if wanted.save is None and grid.count > IN_MEMORY:
        raise SettingsError(
            f"--vary: {grid.count:,} rows are more than the {IN_MEMORY:,} kept in memory; add --save "
            "FILE.parquet"
        )
    done = grid.count - sum(stop - start for start, stop in map(grid.span, numbers))

    def told(rows: int) -> None:
        nonlocal done
        done += rows
        if progress is not None:
            progress(done, grid.count)

    told(0)
    if wanted.scheduler is None:
        for number in numbers:
            yield number, compute(grid, number, told)
        return
    from kvcalc.sweeping.cluster import computed

    for number, chunk in computed(wanted.scheduler, grid, numbers):
        told(len(chunk))
        yield number, chunk


def _in_order(found: Iterable[tuple[int, Chunk]], count: int) -> Iterator[Chunk]:
    """Yield chunks by their numbers, however they come."""
    waiting: dict[int, Chunk] = {}
    following = 0
    for number, chunk in found:
        waiting[number] = chunk
        while following in waiting:
            yield waiting.pop(following)
            following += 1


def _save(
    grid: Grid,
    wanted: Wanted,
    watching: Sequence[Callable[[Chunk], None]],
    choice: Choice,
    curve: Curve | None,
    progress: Progress | None,
) -> None:
    """Compute what is missing, keep it beside the target, and put the whole file in its place."""
    from kvcalc.output.row_files import form_of, write_rows

    assert wanted.save is not None
    form = form_of(wanted.save, wanted.form)
    parts = Parts.beside(wanted.save, _fingerprint(grid), grid.chunks)
    try:
        for number, chunk in _chunks(grid, parts.missing(), wanted, progress):
            parts.keep(number, chunk)
    except BaseException:
        parts.remove_empty()
        raise

    def seen() -> Iterator[Chunk]:
        for chunk in parts:
            for see in watching:
                see(chunk)
            yield chunk
        _check_answered(choice)

    try:
        columns = _result(grid, choice, curve, ()).known_columns
        write_rows(wanted.save, form, seen(), columns, lambda: _result(grid, choice, curve, ()))
    except SettingsError:
        if choice.count == grid.count and not choice.answered:
            parts.remove()
        raise
    parts.remove()


def _fingerprint(grid: Grid) -> str:
    """Return a text in which everything stands that the rows depend on, contents of files included."""
    named = {axis.key: axis.values for axis in grid.axes}
    shapes = [models.load(str(name)) for name in named.get("model", (grid.question.model,))]
    devices = [machines.load(str(name)) for name in named.get("on", (grid.question.hardware,))]
    calibrated = grid.question.said.get("calibrate")
    points: Any = None
    if calibrated is not None:
        from kvcalc.catalog.measurements import read_points

        points = read_points(str(calibrated.value))
    return repr((__version__, grid, shapes, devices, points))


def _check_answered(choice: Choice) -> None:
    """Refuse a sweep of which no row has an answer, with the reason of the first."""
    if choice.count and not choice.answered:
        raise SettingsError(f"no row of the sweep has an answer; the first says: {choice.first_reason}")


def _result(
    grid: Grid, choice: Choice, curve: Curve | None, rows: Sequence[Mapping[str, Any]]
) -> SweepResult:
    inputs, sources = _asked(grid)
    return SweepResult(
        inputs=inputs,
        sources=sources,
        warnings=tuple(choice.notes[0])[:MOST_NOTES],
        assumptions=tuple(choice.notes[1])[:MOST_NOTES],
        axes=tuple(
            SweepAxis(axis.key, axis.unit, len(axis.values), axis.values[0], axis.values[-1], axis.said)
            for axis in grid.axes
        ),
        count=choice.count,
        answered=choice.answered,
        fitting=choice.fitting,
        best_by=None if choice.best_by is None else choice.best_by.text,
        best=choice.best,
        pareto_by=tuple(item.text for item in choice.front_by),
        pareto=choice.pareto,
        chart=None if curve is None else curve.chart,
        columns=columns_of(grid),
        rows=rows,
    )


def _asked(grid: Grid) -> tuple[dict[str, Any], dict[str, Source]]:
    """Return the inputs that all rows share, defaults included, and the sources of their profile values."""
    varied = {axis.key for axis in grid.axes}
    for row in (0, grid.count - 1):
        question, load = grid.asked(row)
        own = [axis for axis in grid.loads if axis.key in load]
        try:
            first = scenario(applied(question, own, [load[axis.key] for axis in own]))
        except KvcalcError:
            continue
        book = Notebook()
        if not varied & {"model", "on"}:
            quote_sources(first, book)
        sources = {name: source for name, source in book.sources.items() if name not in varied}
        if "max_len" not in grid.question.said:
            varied = {*varied, "max_len"}  # each row has its own
        return _shared(first.inputs, varied | _following(varied, grid.question)), sources
    return {"model": grid.question.model, "on": grid.question.hardware}, {}


_DIVISION = frozenset({"gpus", "tp", "pp", "dp"})
"""Inputs of which each follows from the others where nobody says it."""


def _following(varied: set[str], question: Question) -> set[str]:
    """Return the inputs that differ between rows because others do."""
    found = {"cached"} if varied & {"hit", "cached"} else set()
    return found | (_DIVISION - set(question.said) if varied & _DIVISION else set())


def _shared(inputs: Mapping[str, Any], varied: set[str]) -> dict[str, Any]:
    kept = {name: value for name, value in inputs.items() if name not in varied}
    kept["set"] = {name: value for name, value in inputs["set"].items() if name not in varied}
    kept["tiers"] = {
        tier: {name: value for name, value in values.items() if f"tiers.{tier}.{name}" not in varied}
        for tier, values in inputs["tiers"].items()
    }
    return kept
