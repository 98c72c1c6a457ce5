"""Writes one answer to stdout or to a file, whole or not at all."""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

from kvcalc.errors import SettingsError, did_you_mean

if TYPE_CHECKING:
    from kvcalc.explain import Explanation
    from kvcalc.planning.notebook import Call

FORMATS = ("table", "json", "csv", "markdown")
_WITH_WARNINGS = ("table", "markdown")  # formats that people read, which hold the warnings themselves


def check_format(name: str) -> None:
    """Refuse an unknown format before any work is done."""
    if name not in FORMATS:
        raise SettingsError(f"--format: unknown format {name!r}{did_you_mean(name, FORMATS)}")


def answer(result: Any, form: str, save: str | None, explained: Sequence["Explanation"] = ()) -> None:  # noqa: ANN401
    """Write `result` in the chosen form, with the formulas that `--explain` asks for.

    Warnings go to stderr where the form is one for programs.
    """
    from kvcalc.output import render

    terminal = None
    if form == "table" and save is None:
        from kvcalc.output.table import Terminal

        terminal = Terminal.of_stdout()
    text = render(result, cast(Any, form), explanations=explained, terminal=terminal)
    write(text, save)
    if form not in _WITH_WARNINGS:
        for warning in getattr(result, "warnings", ()):
            sys.stderr.write(f"kvcalc: warning: {warning}\n")


def write(text: str, save: str | None) -> None:
    """Write a text to stdout, or to the file that `--save` names."""
    if not text.endswith("\n"):
        text += "\n"
    if save is None:
        with to_reader():
            sys.stdout.write(text)
    else:
        from kvcalc.documents import write_text

        write_text(save, text)


@contextmanager
def to_reader() -> Iterator[None]:
    """Let the reader of stdout go away before the end, as `| head` does; that is no error of ours."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def explanations(calls: Sequence["Call"]) -> list["Explanation"]:
    """Return each formula with the numbers of this run; a call that repeats another is left out."""
    from kvcalc import formulas
    from kvcalc.explain import explain_call

    seen: list[Call] = []
    for call in calls:
        if call not in seen:
            seen.append(call)
    return [explain_call(getattr(formulas, call.formula), call.arguments, call.result) for call in seen]
