"""``kvcalc quota show|reclaim|import|controls``."""

from typing import TYPE_CHECKING, Annotated

import typer

from kvcalc.cli.answer import answer, check_format, explanations
from kvcalc.cli.options import Explain, Format, Save, grouped, question
from kvcalc.cli.parsing import Command, Group
from kvcalc.cli.quota_options import After, Check, Ledger, ReclaimOptions, Rule

if TYPE_CHECKING:
    from kvcalc.quota.api import Asked


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


@grouped("options", ReclaimOptions)
def reclaim(
    ledger: Ledger,
    options: ReclaimOptions,
    after: After = None,
    check: Check = False,
    format: Format = "table",
    save: Save = None,
    explain: Explain = False,
) -> None:
    """Plan how to get bytes back from a tenant, step by step, with what each step costs.

    Example: kvcalc quota reclaim ledger.yaml --tenant b --bytes "20 MB" --bandwidth "50 GB/s"
    """
    from kvcalc.quota.api import reclaim_file

    check_format(format)
    priced = question(options.model, options.on, {}, options.tier, options.set)
    result, later, calls = reclaim_file(ledger, _asked(options), priced)
    if after is not None:
        from kvcalc.quota.writing import write_ledger

        write_ledger(after, later)
    answer(result, format, save, explanations(calls) if explain else ())
    if check and not (result.reached and result.usable_after):
        raise typer.Exit(1)


def _asked(options: ReclaimOptions) -> "Asked":
    """Return what a plan is asked, as it was typed."""
    from kvcalc.quota.api import Asked
    from kvcalc.quota.fixed import Allowed

    compress = not options.no_compress
    return Asked(
        tenant=options.tenant,
        bytes=options.bytes,
        to_quota=options.to_quota,
        everything=options.all,
        rule=options.rule,
        allowed=Allowed(compress=compress, evict_tail=options.evict_tail, preempt=options.preempt),
        keep=options.keep,
        request=options.request,
        arrivals=options.arrivals,
        bandwidth=options.bandwidth,
        setup=options.setup,
        prefill_rate=options.prefill_rate,
        step_time=options.step_time,
        ratio=options.compress_ratio,
    )


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
