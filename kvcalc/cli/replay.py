"""``kvcalc replay``: what a finite, tiered cache would really hit on a trace of requests."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import typer

from kvcalc.catalog.said import Said
from kvcalc.cli.answer import answer, check_format
from kvcalc.cli.options import Format, Save, assignments, grouped, keyed
from kvcalc.cli.parsing import Command
from kvcalc.cli.progress import progress
from kvcalc.cli.replay_options import ChartFile, ReplayOptions, TraceFile
from kvcalc.cli.traces import Describe, TraceOptions
from kvcalc.errors import SettingsError
from kvcalc.replay.semantics import WORDS

if TYPE_CHECKING:
    from kvcalc.replay.question import Words
    from kvcalc.replay.results import ReplayResult
    from kvcalc.replay.trace import Trace


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("replay", cls=Command)(replay)


@keyed("replay")
@grouped("asked", ReplayOptions)
@grouped("reading", TraceOptions)
def replay(
    said: Mapping[str, Said],
    trace: TraceFile,
    asked: ReplayOptions,
    reading: TraceOptions,
    describe: Describe = False,
    chart_file: ChartFile = None,
    format: Format = "table",
    save: Save = None,
) -> None:
    """Tell what caches of each size and policy hit on a trace, and what limits them.

    Example: kvcalc replay trace.jsonl --capacity "5859 blocks" --capacity "10,000,000 tokens" --policy arc
    """
    check_format(format)
    if chart_file is not None:
        from kvcalc.output.chart import check

        check(chart_file, "--chart-file")
    if asked.shared_prefix is not None and asked.refine is None:
        raise SettingsError("--shared-prefix: is of use with --refine alone")
    if describe:
        _refuse_caches(asked, chart_file)
        from kvcalc.replay.describe import describe as described

        answer(described(reading.read(trace)), format, save)
        return
    result = _replayed(said, asked, lambda: reading.read(trace))
    if chart_file is not None:
        _draw(result, chart_file)
    answer(result, format, save)


def _replayed(
    said: Mapping[str, Said], asked: ReplayOptions, read_trace: Callable[[], "Trace"]
) -> "ReplayResult":
    """Replay the trace, which is read when the options have been found sound."""
    from kvcalc.replay.answer import answer as replayed
    from kvcalc.replay.machine import with_machine
    from kvcalc.replay.question import asked_of, on_machine, question_of

    question = question_of(asked.model, asked.on, said, asked.tier or (), assignments(asked.set))
    words, trace = _words(asked), read_trace()
    machine = None if question is None else on_machine(question, trace, words)
    wanted = asked_of(words, trace if machine is None else machine.trace, machine)
    with progress("replaying") as told:
        result, _ = replayed(trace if machine is None else machine.trace, wanted, told)
    if machine is not None and question is not None:
        result = with_machine(result, machine, question)
    return result


def _words(asked: ReplayOptions) -> "Words":
    """Return what was asked of caches, as it was typed."""
    from kvcalc.replay.question import Words

    return Words(
        capacities=tuple(asked.capacity or ()),
        policies=tuple(asked.policy or ()),
        switches={name: getattr(asked, name) for name in WORDS},
        warmup=asked.warmup,
        refine=asked.refine,
        shared_prefix=asked.shared_prefix or "0",
        bytes_per_token=asked.bytes_per_token,
        tiers=tuple(asked.tier or ()),
        inclusion=asked.inclusion,
        write=asked.write,
        quota=asked.quota,
        tenant_quotas=tuple(asked.tenant_quota or ()),
        rules=asked.rules,
        sample=asked.sample,
        workers=asked.workers,
        scheduler=asked.scheduler,
    )


_OF_CACHES = ("capacity", "policy", "tier", "refine", "sample", "model", "on")
"""Options that --describe, which shows no cache, has no use for."""


def _refuse_caches(asked: ReplayOptions, chart_file: str | None) -> None:
    """Refuse what --describe has no use for."""
    for name, said in (("chart_file", chart_file), *((name, getattr(asked, name)) for name in _OF_CACHES)):
        if said:
            option = "--" + name.replace("_", "-")
            raise SettingsError(f"{option}: --describe shows no cache; leave one of them out")


def _draw(result: "ReplayResult", file: str) -> None:
    from kvcalc.documents import write_bytes
    from kvcalc.output.hit_picture import picture

    write_bytes(file, picture(result, file))
