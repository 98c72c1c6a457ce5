"""``kvcalc sweep``: the same plan over a grid of its inputs."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from kvcalc.catalog.said import Said
from kvcalc.cli.answer import FORMATS, answer, check_format, to_reader
from kvcalc.cli.options import On, Planned, Save, Set, Tiers, keyed, question
from kvcalc.cli.parsing import Command
from kvcalc.cli.progress import progress
from kvcalc.cli.sweep_options import Best, Chart, ChartFile, Form, Pareto, Scheduler, Vary
from kvcalc.errors import SettingsError

if TYPE_CHECKING:
    from kvcalc.sweeping.answer import Wanted
    from kvcalc.sweeping.results import SweepResult

_DATA = ("csv", "json", "parquet")  # forms for programs, written row by row
_BY_SUFFIX = {**{form: form for form in _DATA}, "txt": "table", "md": "markdown"}


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("sweep", cls=Command)(sweep)


@keyed("sweep")
def sweep(
    said: Mapping[str, Said],
    model: Planned,
    vary: Vary = None,
    on: On = None,
    tier: Tiers = None,
    set: Set = None,
    best: Best = None,
    pareto: Pareto = None,
    chart: Chart = None,
    chart_file: ChartFile = None,
    scheduler: Scheduler = None,
    format: Form = None,
    save: Save = None,
) -> None:
    """Answer the same plan over every combination of some inputs: rows, the best one, a front, a chart.

    KEY is any key of a scenario file, model, on, a value of a tier (tiers.dram.bandwidth) or of the
    machine (device.bandwidth). RANGE is a list (8,16,32), whole numbers one by one (1..64), by a factor
    (1k..128k*2), by a step (10..100 GB/s+10 GB/s), or so many values (0..1/5); a range of quantities
    without any of these has eleven.

    Columns have the names of a plan's JSON, e.g. decode.tokens_per_second; max: or min: before one says
    which way is better. offload.* is the prefix store with the largest speedup, working_set.* the tier
    that streams best what does not fit, .range.low and .range.high are the two ends of a range, and fits
    means no capacity.shortfall; docs/json.md lists all columns. Keys that change the launch vary slowest
    in the rows, prompt, generate, concurrency, cached, hit, rate and hit_rate fastest.

    --save writes .csv, .json or .parquet, or the page as .txt or .md; a saved sweep that was killed goes
    on where it stopped. With --scheduler the workers need kvcalc and the files that the question names.

    Example: kvcalc sweep examples/four-gpus-70b.yaml --vary concurrency=1..64 --best decode.step_time
    Example: kvcalc sweep llama-3.1-8b --on l40s --vary prompt=1k..64k*2 --vary hit=0..1/5 --save rows.csv
    """
    from kvcalc.sweeping.answer import Wanted, sweep_answer

    form = _form(format, save)
    if chart_file is not None:
        from kvcalc.output.chart import check

        check(chart_file, "--chart-file")
        if chart is None:
            raise SettingsError("--chart-file: needs --chart KEY, the column to draw")
    wanted = Wanted(
        best=best,
        pareto=tuple(part.strip() for part in (pareto or "").split(",") if part.strip()),
        chart=chart,
        save=save if form in _DATA else None,
        form=form if form in _DATA else "",
        scheduler=scheduler,
    )
    asked = question(model, on, said, tier, set)
    try:
        with progress("planning") as told:
            result = sweep_answer(asked, vary or (), wanted, told)
    except KeyboardInterrupt:
        if wanted.save is not None:
            sys.stderr.write(f"kvcalc: interrupted; the same command goes on with {save}\n")
        raise
    _write(result, wanted, form, save, chart_file)


def _form(format: str | None, save: str | None) -> str:
    """Return the form of the rows: as asked, else by the name of the file."""
    if format == "parquet" or (format is None and save is not None and _suffix(save) == "parquet"):
        if save is None:
            raise SettingsError("--format parquet: is no text; add --save FILE.parquet")
        return "parquet"
    if format is None:
        suffix = "txt" if save is None else _suffix(save)
        if suffix not in _BY_SUFFIX:
            raise SettingsError(
                f"--save {save}: the name must end in .csv, .json or .parquet for the rows, or in .txt or "
                ".md for the page; or say --format"
            )
        return _BY_SUFFIX[suffix]
    if format not in FORMATS:
        check_format(format)
    return format


def _suffix(file: str) -> str:
    return Path(file).suffix.lower().removeprefix(".")


def _write(
    result: "SweepResult", wanted: "Wanted", form: str, save: str | None, chart_file: str | None
) -> None:
    if chart_file is not None:
        from kvcalc.documents import write_bytes
        from kvcalc.output.sweep_picture import picture

        write_bytes(chart_file, picture(result, chart_file))
    if form not in _DATA:
        answer(result, form, save)
        return
    if wanted.save is None:
        from kvcalc.output.row_files import write_csv, write_json
        from kvcalc.sweeping.results import Rows

        rows = result.rows
        assert isinstance(rows, Rows)
        write = write_csv if form == "csv" else write_json
        with to_reader():
            write(sys.stdout, rows.chunks, result.known_columns, result.without_rows)
    elif wanted.best or wanted.pareto or (wanted.chart and chart_file is None):
        answer(result, "table", None)
    for warning in result.warnings:
        sys.stderr.write(f"kvcalc: warning: {warning}\n")
