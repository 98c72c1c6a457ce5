"""``kvcalc replay``: what a finite, tiered cache would really hit on a trace of requests."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from kvcalc.catalog.said import Said
from kvcalc.cli.answer import answer, check_format
from kvcalc.cli.options import Format, On, Save, Set, assignments, keyed
from kvcalc.cli.parsing import Command
from kvcalc.cli.progress import progress
from kvcalc.cli.traces import (
    Describe,
    Dialect,
    SessionEvery,
    SkipBroken,
    TimeUnit,
    TraceBlock,
    read,
)
from kvcalc.errors import SettingsError

if TYPE_CHECKING:
    from kvcalc.replay.results import ReplayResult

Texts = list[str] | None
Capacities = Annotated[
    Texts,
    typer.Option(
        "--capacity",
        metavar="SIZE",
        help="Of the cache: '5859 blocks', '16Mi tokens', '40 GB', or '10 %' of all blocks. Repeatable.",
    ),
]
Policies = Annotated[
    Texts,
    typer.Option(
        "--policy",
        metavar="NAME",
        help="Beside fifo, lru, belady and infinite: lfu, perfect-lfu, arc, s3fifo, sieve, gdsf, cost, "
        "rules, belady-insert. Repeatable.",
    ),
]
SlowerTiers = Annotated[
    Texts,
    typer.Option(
        "--tier",
        metavar="NAME=SIZE[@RATE]",
        help="A slower tier behind the cache: 'dram=512 GB'; with --on 'dram=512 GB@54 GB/s'. Repeatable.",
    ),
]
Shares = Annotated[
    Texts,
    typer.Option(
        "--tenant-quota", metavar="NAME=SHARE", help="A tenant's part of the cache [equal]. Repeatable."
    ),
]


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("replay", cls=Command)(replay)


@keyed("replay")
def replay(
    said: Mapping[str, Said],
    trace: Annotated[
        str, typer.Argument(metavar="TRACE", help="Requests with block ids: .jsonl, .jsonl.gz, or a folder.")
    ],
    capacity: Capacities = None,
    policy: Policies = None,
    touch: Annotated[str, typer.Option("--touch", metavar="tail|head", help="Block touched first.")] = "tail",
    oversize: Annotated[
        str,
        typer.Option(
            "--oversize", metavar="truncate|thrash|pin|bypass", help="A request longer than the cache."
        ),
    ] = "truncate",
    weight: Annotated[
        str, typer.Option("--weight", metavar="token|block|request", help="What hit rates are shares of.")
    ] = "token",
    partial_block: Annotated[
        str, typer.Option("--partial-block", metavar="keep|drop", help="A last block that is not full.")
    ] = "keep",
    output: Annotated[
        str, typer.Option("--output", metavar="ignored|cached", help="Generated tokens, for the next turn.")
    ] = "ignored",
    warmup: Annotated[
        str, typer.Option("--warmup", metavar="SHARE", help="First requests that are not counted.")
    ] = "0",
    lookup: Annotated[
        str, typer.Option("--lookup", metavar="atomic|sequential", help="A request at once, or by block.")
    ] = "atomic",
    order: Annotated[
        str, typer.Option("--order", metavar="time|file", help="By arrival, or as in the file.")
    ] = "time",
    hits: Annotated[
        str, typer.Option("--hits", metavar="prefix|any", help="Up to the first miss, or all blocks.")
    ] = "prefix",
    refine: Annotated[
        str | None,
        typer.Option("--refine", metavar="TOKENS", help="Upper estimate for finer blocks of so many tokens."),
    ] = None,
    shared_prefix: Annotated[
        str | None,
        typer.Option("--shared-prefix", metavar="TOKENS", help="That all requests share, for --refine [0]."),
    ] = None,
    bytes_per_token: Annotated[
        str | None, typer.Option("--bytes-per-token", metavar="BYTES", help="KV of one token.")
    ] = None,
    tier: SlowerTiers = None,
    inclusion: Annotated[
        str, typer.Option("--inclusion", metavar="inclusive|exclusive", help="Of the tiers.")
    ] = "inclusive",
    write: Annotated[
        str | None,
        typer.Option(
            "--write",
            metavar="write_through|selective|write_back",
            help="When a block goes to the next tier [write_through; exclusive: write_back].",
        ),
    ] = None,
    quota: Annotated[
        str, typer.Option("--quota", metavar="shared|floor|hard", help="How tenants share the cache.")
    ] = "shared",
    tenant_quota: Shares = None,
    rules: Annotated[
        str | None, typer.Option("--rules", metavar="FILE", help="A kv_eviction file, for policy rules.")
    ] = None,
    sample: Annotated[
        str | None,
        typer.Option("--sample", metavar="BLOCKS", help="Follow so many blocks at most, chosen by hash."),
    ] = None,
    workers: Annotated[
        str | None, typer.Option("--workers", metavar="N", help="Processes to use [as the work needs].")
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option("--scheduler", metavar="ADDRESS", help="A Dask scheduler, e.g. tcp://host:8786."),
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", metavar="MODEL", help="A model, whose layout gives the bytes.")
    ] = None,
    on: On = None,
    set: Set = None,
    dialect: Dialect = None,
    trace_block: TraceBlock = None,
    session_every: SessionEvery = None,
    time_unit: TimeUnit = None,
    skip_broken: SkipBroken = False,
    describe: Describe = False,
    chart_file: Annotated[
        str | None,
        typer.Option("--chart-file", metavar="FILE", help="Draw the misses into a .png or .svg file."),
    ] = None,
    format: Format = "table",
    save: Save = None,
) -> None:
    """Tell what caches of each size and policy hit on a trace, and what limits them.

    Example: kvcalc replay trace.jsonl --capacity "5859 blocks" --capacity "10,000,000 tokens" --policy arc
    """
    from kvcalc.replay.answer import answer as replayed
    from kvcalc.replay.machine import with_machine
    from kvcalc.replay.question import Words, asked_of, on_machine, question_of

    check_format(format)
    if chart_file is not None:
        from kvcalc.output.chart import check

        check(chart_file, "--chart-file")
    if shared_prefix is not None and refine is None:
        raise SettingsError("--shared-prefix: is of use with --refine alone")
    if describe:
        unused = {"--chart-file": chart_file, "--capacity": capacity, "--policy": policy, "--tier": tier}
        _refuse_unused({**unused, "--refine": refine, "--sample": sample, "--model": model, "--on": on})
        from kvcalc.replay.describe import describe as described

        read_in = read(trace, dialect, trace_block, skip_broken, session_every, time_unit)
        answer(described(read_in), format, save)
        return
    asked_model = question_of(model, on, said, tier or (), assignments(set))
    words = Words(
        capacities=tuple(capacity or ()),
        policies=tuple(policy or ()),
        switches={
            "touch": touch,
            "oversize": oversize,
            "weight": weight,
            "partial_block": partial_block,
            "output": output,
            "lookup": lookup,
            "order": order,
            "hits": hits,
        },
        warmup=warmup,
        refine=refine,
        shared_prefix=shared_prefix or "0",
        bytes_per_token=bytes_per_token,
        tiers=tuple(tier or ()),
        inclusion=inclusion,
        write=write,
        quota=quota,
        tenant_quotas=tuple(tenant_quota or ()),
        rules=rules,
        sample=sample,
        workers=workers,
        scheduler=scheduler,
    )
    found = read(trace, dialect, trace_block, skip_broken, session_every, time_unit)
    machine = None if asked_model is None else on_machine(asked_model, found, words)
    if machine is not None:
        found = machine.trace
    asked = asked_of(words, found, machine)
    with progress("replaying") as told:
        result, _ = replayed(found, asked, told)
    if machine is not None and asked_model is not None:
        result = with_machine(result, machine, asked_model)
    if chart_file is not None:
        _draw(result, chart_file)
    answer(result, format, save)


def _refuse_unused(options: Mapping[str, object]) -> None:
    """Refuse what --describe has no use for."""
    for option, said in options.items():
        if said:
            raise SettingsError(f"{option}: --describe shows no cache; leave one of them out")


def _draw(result: "ReplayResult", file: str) -> None:
    from kvcalc.documents import write_bytes
    from kvcalc.output.hit_picture import picture

    write_bytes(file, picture(result, file))
