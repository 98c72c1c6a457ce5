"""``kvcalc replay``: what a finite, tiered cache would really hit on a trace of requests."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from kvcalc.cli.answer import answer, check_format
from kvcalc.cli.options import Format, Save
from kvcalc.cli.parsing import Command

if TYPE_CHECKING:
    from kvcalc.replay.grid import Told

PATIENCE = 1.0
"""Seconds of work after which a progress bar is shown [second]."""

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
        "--tier", metavar="NAME=SIZE", help="A slower tier behind the cache, e.g. 'dram=512 GB'. Repeatable."
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


def replay(
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
        str, typer.Option("--shared-prefix", metavar="TOKENS", help="That all requests share, for --refine.")
    ] = "0",
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
    format: Format = "table",
    save: Save = None,
) -> None:
    """Tell what caches of each size and policy hit on a trace, and what limits them.

    Example: kvcalc replay trace.jsonl --capacity "5859 blocks" --capacity "10,000,000 tokens" --policy arc
    """
    from kvcalc.replay.answer import answer as replayed
    from kvcalc.replay.question import Words, asked_of
    from kvcalc.replay.readers import read_trace

    check_format(format)
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
        shared_prefix=shared_prefix,
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
    with progress("reading") as told:
        found = read_trace(trace, told=told)
    asked = asked_of(words, found)
    with progress("replaying") as told:
        result, _ = replayed(found, asked, told)
    answer(result, format, save)


@contextmanager
def progress(work: str) -> "Iterator[Told]":
    """Give what shows a bar on stderr once the work takes long; it is gone when the work is done."""
    from rich.console import Console
    from rich.progress import Progress as Bar

    started = time.monotonic()
    bar = Bar(console=Console(stderr=True), transient=True)
    task = bar.add_task(work, total=None)

    def told(done: int, whole: int) -> None:
        if not bar.live.is_started and time.monotonic() - started > PATIENCE and bar.console.is_terminal:
            bar.start()
        bar.update(task, completed=done, total=whole)

    try:
        yield told
    finally:
        if bar.live.is_started:
            bar.stop()
