"""``--check-config`` and ``--emit`` of ``kvcalc plan``: launches read, and launches written."""

from typing import TYPE_CHECKING, Annotated

import typer

from kvcalc.catalog.said import Question
from kvcalc.cli.answer import write
from kvcalc.cli.traces import TraceOptions
from kvcalc.errors import SettingsError

if TYPE_CHECKING:
    from kvcalc.planning.notebook import Call
    from kvcalc.results import PlanResult

CheckConfig = Annotated[
    str | None,
    typer.Option(
        "--check-config",
        metavar="FILE",
        help="Plan with a launch of vLLM, LMCache, SGLang or llama.cpp (script, flags, YAML, compose file, "
        "Kubernetes manifest) and check it.",
    ),
]
Emit = Annotated[
    str | None,
    typer.Option("--emit", metavar="ENGINE", help="Print the launch: vllm, sglang, lmcache or llama.cpp."),
]

Trace = Annotated[
    str | None,
    typer.Option(
        "--trace", metavar="FILE", help="Replay a trace of requests: hits at the plan's own pool and tiers."
    ),
]


def planned(
    asked: Question, config: str | None, trace: str | None, reading: TraceOptions
) -> "tuple[PlanResult, tuple[Call, ...]]":
    """Answer the plan, with the checks of the launch file or the hits of the trace if one is named."""
    if trace is not None:
        if config is not None:
            raise SettingsError("--trace: replays one plan; leave --check-config out")
        from kvcalc.replay.planned import plan_with_trace

        return plan_with_trace(asked, trace, reading.read)
    if config is None:
        from kvcalc.api import plan_calls

        return plan_calls(asked)
    from kvcalc.launch.planning import checked_plan

    return checked_plan(asked, config)


def starts(result: "PlanResult") -> bool:
    """Whether the launch that was checked, if any, does what it asks."""
    return all(item.severity != "error" for item in result.config_checks)


def write_launch(asked: Question, engine: str, config: str | None, save: str | None) -> None:
    """Write the launch that realises the plan."""
    from kvcalc.launch.planning import emitted

    if config is not None:
        raise SettingsError("--emit: writes a launch of its own; leave --check-config out")
    write(emitted(asked, engine), save)
