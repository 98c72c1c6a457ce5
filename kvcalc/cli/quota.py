"""``kvcalc quota show|reclaim|import|controls``."""

from typing import Annotated

import typer

from kvcalc.cli.answer import answer, check_format, explanations
from kvcalc.cli.options import Explain, Format, On, Save, Set, Tiers, question
from kvcalc.cli.parsing import Command, Group

Ledger = Annotated[str, typer.Argument(metavar="LEDGER", help="A ledger: .yaml, .json or .parquet.")]
Rule = Annotated[
    str, typer.Option("--rule", metavar="fractional|owner|full", help="How shared blocks are charged.")
]
Tenant = Annotated[
    str | None, typer.Option("--tenant", metavar="TENANT", help="From whom to get bytes back.")
]
Bytes = Annotated[str | None, typer.Option("--bytes", metavar="BYTES", help="How much, e.g. '10 GB'.")]
ToQuota = Annotated[bool, typer.Option("--to-quota", help="As much as it is over its quota.")]
All = Annotated[bool, typer.Option("--all", help="Everything: the tenant is deleted.")]
EvictTail = Annotated[bool, typer.Option("--evict-tail", help="Allow to drop tails of suspended contexts.")]
Keep = Annotated[
    str | None, typer.Option("--keep", metavar="TOKENS", help="Never evict the first so many tokens [0].")
]
Preempt = Annotated[bool, typer.Option("--preempt", help="Allow to preempt running sessions.")]
NoCompress = Annotated[bool, typer.Option("--no-compress", help="Do not compress past the DRAM watermark.")]
Ratio = Annotated[
    str | None, typer.Option("--compress-ratio", metavar="NUMBER", help="How many times smaller [2].")
]
Request = Annotated[
    str | None,
    typer.Option("--request", metavar="TOKENS", help="Length of the request that waits [the ledger's]."),
]
Arrivals = Annotated[
    str | None,
    typer.Option("--arrivals", metavar="RATE", help="Requests that a closed admission holds back."),
]
Model = Annotated[
    str | None, typer.Option("--model", metavar="MODEL", help="Prices by this model, with --on.")
]
Bandwidth = Annotated[
    str | None, typer.Option("--bandwidth", metavar="RATE", help="Rate of the host link, each way.")
]
Setup = Annotated[
    str | None, typer.Option("--setup", metavar="TIME", help="Lookup and submission of a restore.")
]
PrefillRate = Annotated[
    str | None,
    typer.Option("--prefill-rate", metavar="RATE", help="Prefill speed, e.g. '12000 token/s'."),
]
StepTime = Annotated[
    str | None, typer.Option("--step-time", metavar="TIME", help="One decode step, e.g. '20 ms'.")
]
After = Annotated[
    str | None, typer.Option("--after", metavar="FILE", help="Write the ledger after the plan.")
]
Check = Annotated[
    bool, typer.Option("--check", help="Exit with 1 when the bytes are not reached or not usable.")
]


def register(app: typer.Typer) -> None:
    """Add the command group to the application."""
    group = typer.Typer(
        cls=Group, no_args_is_help=True, help="Who holds what of a KV pool, and how to get bytes back."
    )
    group.command("show", cls=Command)(show)
    group.command("reclaim", cls=Command)(reclaim)
    group.command("import", cls=Command)(import_ledger)
    group.command("controls", cls=Command)(controls)
    app.add_typer(group, name="quota")


def show(
    ledger: Ledger,
    rule: Rule = "fractional",
    format: Format = "table",
    save: Save = None,
    explain: Explain = False,
) -> None:
    """Show what each tenant holds, is charged and could give back, against its quota and the pool.

    Example: kvcalc quota show ledger.yaml --rule owner
    """
    from kvcalc.quota.api import show_file

    check_format(format)
    result, calls = show_file(ledger, rule)
    answer(result, format, save, explanations(calls) if explain else ())


def reclaim(
    ledger: Ledger,
    tenant: Tenant = None,
    bytes: Bytes = None,
    to_quota: ToQuota = False,
    all: All = False,
    rule: Rule = "fractional",
    evict_tail: EvictTail = False,
    keep: Keep = None,
    preempt: Preempt = False,
    no_compress: NoCompress = False,
    compress_ratio: Ratio = None,
    request: Request = None,
    arrivals: Arrivals = None,
    model: Model = None,
    on: On = None,
    tier: Tiers = None,
    bandwidth: Bandwidth = None,
    setup: Setup = None,
    prefill_rate: PrefillRate = None,
    step_time: StepTime = None,
    set: Set = None,
    after: After = None,
    check: Check = False,
    format: Format = "table",
    save: Save = None,
    explain: Explain = False,
) -> None:
    """Plan how to get bytes back from a tenant, step by step, with what each step costs.

    Example: kvcalc quota reclaim ledger.yaml --tenant b --bytes "20 MB" --bandwidth "50 GB/s"
    """
    from kvcalc.quota.api import Asked, reclaim_file
    from kvcalc.quota.fixed import Allowed

    check_format(format)
    asked = Asked(
        tenant=tenant,
        bytes=bytes,
        to_quota=to_quota,
        everything=all,
        rule=rule,
        allowed=Allowed(compress=not no_compress, evict_tail=evict_tail, preempt=preempt),
        keep=keep,
        request=request,
        arrivals=arrivals,
        bandwidth=bandwidth,
        setup=setup,
        prefill_rate=prefill_rate,
        step_time=step_time,
        ratio=compress_ratio,
    )
    result, later, calls = reclaim_file(ledger, asked, question(model, on, {}, tier, set))
    if after is not None:
        from kvcalc.quota.writing import write_ledger

        write_ledger(after, later)
    answer(result, format, save, explanations(calls) if explain else ())
    if check and not (result.reached and result.usable_after):
        raise typer.Exit(1)


def import_ledger(
    source: Annotated[
        str, typer.Argument(metavar="FILE", help="KV events (.jsonl) or a trace of requests (.jsonl).")
    ],
    save: Annotated[
        str, typer.Option("--save", metavar="FILE", help="The ledger: .yaml, .json or .parquet.")
    ],
    block_bytes: Annotated[
        str, typer.Option("--block-bytes", metavar="BYTES", help="Bytes of one block, e.g. '917504 B'.")
    ],
    blocks: Annotated[
        str | None, typer.Option("--blocks", metavar="N", help="Blocks of the pool [as many as are used].")
    ] = None,
    block_tokens: Annotated[
        str | None,
        typer.Option("--block-tokens", metavar="N", help="Tokens of one block [the events']."),
    ] = None,
    at: Annotated[
        str | None, typer.Option("--at", metavar="TIME", help="State at this time [after the last].")
    ] = None,
    quota: Annotated[
        str | None, typer.Option("--quota", metavar="BYTES", help="Quota of each tenant [none].")
    ] = None,
) -> None:
    """Make a ledger of KV events (block stored, block removed) or of a trace of requests at a time.

    Example: kvcalc quota import events.jsonl --block-bytes "2 MiB" --save ledger.yaml
    """
    from kvcalc.quota.importing import Wanted, import_file
    from kvcalc.quota.writing import write_ledger

    wanted = Wanted(block_bytes, blocks, block_tokens, at, quota)
    write_ledger(save, import_file(source, wanted))


def controls(format: Format = "table", save: Save = None) -> None:
    """List what each means of a plan is called in LMCache, vLLM, Mooncake and TensorRT-LLM, with its unit.

    Example: kvcalc quota controls
    """
    from kvcalc.quota.controls import controls_table

    check_format(format)
    answer(controls_table(), format, save)
