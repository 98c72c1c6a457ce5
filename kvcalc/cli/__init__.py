"""The command line: parses, calls the library, writes.  No arithmetic happens here.

Only the module of the called command is imported, so that `--help` and short commands start fast.
Exit status: 0 answered, 1 answered and the plan does not fit (with `--check`), 2 bad input, 130 Ctrl-C.
"""

import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Annotated, Any

from kvcalc import __version__
from kvcalc.errors import KvcalcError

COMMANDS: dict[str, tuple[str, str]] = {
    "plan": ("plan", "Does it fit, what limits it first, is offload worth it, what flips."),
    "sweep": ("sweep", "One plan over a grid of inputs: best row, front, files, chart."),
    "compare": ("compare", "Two plans side by side: which verdicts change, and what decides it."),
    "kv": ("kv", "What one token and one sequence cost, component by component."),
    "restore": ("restore", "One restore against one recompute, as parts, with the break-even."),
    "quota": ("quota", "Who holds what of a KV pool, and how to get bytes back from one."),
    "evict": ("evict", "Whom to evict and why; what a policy does to P99 and waste."),
    "replay": ("replay", "What a finite, tiered cache would really hit on a request trace."),
    "diagnose": ("diagnose", "Policy, layout or too little compute: from metrics, log and GPUs."),
    "probe": ("probe", "What this machine's links really deliver."),
    "export": ("export", "A plan as a page with charts (.html) or a workbook (.xlsx)."),
    "app": ("app", "A planner in the browser: inputs as controls, verdicts live."),
    "models": ("models", "Model profiles: list, show, import."),
    "hardware": ("hardware", "Hardware profiles: list, show."),
    "explain": ("explain", "A formula: its equation, symbols, units and source."),
}
"""Command -> (module in this package, one line of help)."""

_COMPLETION = ("--install-completion", "--show-completion")

OK, DOES_NOT_FIT, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit status; errors are one line on stderr."""
    try:
        status = _application(arguments)(list(arguments), standalone_mode=False, prog_name="kvcalc")
        sys.stdout.flush()
    except KvcalcError as error:
        return _complain(str(error))
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of the pipe has gone, as `| head` does; that is no error of ours.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except Exception as error:
        return _parser_error(error)
    return status if isinstance(status, int) else OK


def _parser_error(error: Exception) -> int:
    """Say what the option parser objected to, in one line; anything else is a bug and stays one."""
    if type(error).__name__ == "Abort":
        return INTERRUPTED
    if type(error).__name__ == "NoArgsIsHelpError":
        sys.stderr.write(f"{error}\n")
        return BAD_INPUT
    message = getattr(error, "format_message", None)
    if message is None:
        if os.environ.get("KVCALC_DEBUG"):
            raise error
        kind = type(error).__name__
        return _complain(f"internal error ({kind}: {error}): a bug of kvcalc; KVCALC_DEBUG=1 shows where")
    path = getattr(getattr(error, "ctx", None), "command_path", "kvcalc")
    return _complain(f"{str(message()).rstrip('.')}; {path} --help shows how")


def _complain(message: str) -> int:
    one_line = " ".join(message.split())
    sys.stderr.write(f"kvcalc: {one_line}\n")
    return BAD_INPUT


def _application(arguments: Sequence[str]) -> Callable[..., Any]:
    import typer

    from kvcalc.cli.parsing import Overview

    called = next((word for word in (*arguments, *_completed()) if not word.startswith("-")), "")
    app = typer.Typer(
        cls=Overview,
        name="kvcalc",
        help="Does a model's KV cache fit a machine, what limits it, is moving it worth it?",
        no_args_is_help=True,
        add_completion=not called or bool(_completed()) or arguments[0] in _COMPLETION,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        epilog="First: kvcalc plan llama-3.1-8b --on h100-sxm-80gb --concurrency 32",
    )

    # `--version` alone never comes here (see `kvcalc.__main__`); this shows it in the help.
    @app.callback()
    def options(
        version: Annotated[bool, typer.Option("--version", help="Show the version.")] = False,
    ) -> None:
        if version:
            sys.stdout.write(f"kvcalc {__version__}\n")
            raise typer.Exit

    for name, (module, summary) in COMMANDS.items():
        if name == called:
            import_module(f"kvcalc.cli.{module}").register(app)
        else:
            app.command(name, help=summary)(_not_called)
    return typer.main.get_command(app)


def _completed() -> list[str]:
    """Return the words after `kvcalc` that a shell asks to complete; none in an ordinary call."""
    if "_KVCALC_COMPLETE" not in os.environ:
        return []
    return (os.environ.get("_TYPER_COMPLETE_ARGS") or os.environ.get("COMP_WORDS", "")).split()[1:]


def _not_called() -> None:
    """Stand for a command in the list of commands; its module is loaded when it is called."""
