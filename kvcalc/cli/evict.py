"""``kvcalc evict rank|simulate``: whom to evict, and what a policy does over time."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from kvcalc.catalog.said import Said
from kvcalc.cli.answer import answer, check_format, explanations
from kvcalc.cli.options import Explain, Format, On, Save, Set, Tiers, keyed, question
from kvcalc.cli.parsing import Command, Group
from kvcalc.cli.progress import progress

if TYPE_CHECKING:
    from kvcalc.eviction.results import SimulateResult


def register(app: typer.Typer) -> None:
    """Add the command group to the application."""
    group = typer.Typer(cls=Group, no_args_is_help=True, help="Whom to evict: rank, simulate.")
    group.command("rank", cls=Command)(rank)
    group.command("simulate", cls=Command)(simulate)
    app.add_typer(group, name="evict")


@keyed("evict rank")
def rank(
    said: Mapping[str, Said],
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="Live sequences: .csv, .json, .jsonl or .yaml.")
    ],
    policy: Annotated[
        str, typer.Option("--policy", metavar="NAME", help="lru, ratio, priority, rules or cost.")
    ] = "cost",
    rules: Annotated[
        str | None, typer.Option("--rules", metavar="FILE", help="A kv_eviction file (.yaml).")
    ] = None,
    need: Annotated[
        str | None, typer.Option("--need", metavar="BYTES", help="Bytes to be freed [rank everybody].")
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", metavar="MODEL", help="A model, for bytes and times.")
    ] = None,
    bytes_per_token: Annotated[
        str | None, typer.Option("--bytes-per-token", metavar="BYTES", help="KV of one token, instead.")
    ] = None,
    on: On = None,
    queue: Annotated[
        str | None,
        typer.Option("--queue", metavar="TIME", help="What the new request would wait [from the models]."),
    ] = None,
    tier: Tiers = None,
    set: Set = None,
    format: Format = "table",
    save: Save = None,
    explain: Explain = False,
) -> None:
    """Tell who goes, in which order and mode, until enough bytes are free, and why.

    Example: kvcalc evict rank sequences.csv --need "2 GB" --model llama-3.1-8b --on l40s
    """
    from kvcalc.eviction.rank_answer import rank_calls

    check_format(format)
    waits = {} if queue is None else {"queue": Said(queue, "--queue")}
    asked = question(model, on, {**said, **waits}, tier, set)
    result, calls = rank_calls(file, asked, policy, rules, need, bytes_per_token)
    answer(result, format, save, explanations(calls) if explain else ())


@keyed("evict simulate")
def simulate(
    said: Mapping[str, Said],
    file: Annotated[str, typer.Argument(metavar="FILE", help="What to simulate (.yaml).")],
    seed: Annotated[
        str | None, typer.Option("--seed", metavar="N", help="Seed of the arrivals, instead of the file's.")
    ] = None,
    requests: Annotated[
        str | None, typer.Option("--requests", metavar="N", help="Requests, instead of the file's.")
    ] = None,
    chart_file: Annotated[
        str | None,
        typer.Option("--chart-file", metavar="FILE", help="Draw goodput and P99 into a .png or .svg file."),
    ] = None,
    format: Format = "table",
    save: Save = None,
    explain: Explain = False,
) -> None:
    """Tell what each policy does to P99, goodput and wasted compute, on the same arrivals.

    Example: kvcalc evict simulate examples/simulate.yaml --chart-file load.png
    """
    from kvcalc.eviction.simulate_answer import simulate_calls

    check_format(format)
    if chart_file is not None:
        from kvcalc.output.chart import check

        check(chart_file, "--chart-file")
    with progress("simulating") as told:
        result, calls = simulate_calls(file, seed, requests, told)
    if chart_file is not None:
        _draw(result, chart_file)
    answer(result, format, save, explanations(calls) if explain else ())


def _draw(result: "SimulateResult", file: str) -> None:
    from kvcalc.documents import write_bytes
    from kvcalc.output.load_picture import picture

    write_bytes(file, picture(result, file))
