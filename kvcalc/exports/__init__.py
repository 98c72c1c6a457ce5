"""A plan as a file to keep working with: the suffix of the file names its writer.

To add a kind of file, name its module here; the module has `write(question, path)`, which answers the
plan and writes the file whole or not at all (`kvcalc.documents.write_bytes`).
"""

from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from kvcalc.errors import SettingsError, did_you_mean

if TYPE_CHECKING:
    from kvcalc.catalog.scenarios import Question
    from kvcalc.reporting import Progress

WRITERS: Mapping[str, str] = MappingProxyType(
    {
        ".html": "kvcalc.exports.page",  # a report with charts, for people
        ".xlsx": "kvcalc.exports.workbook",  # live formulas over an inputs sheet
    }
)
"""Suffix of a file -> the module that writes it."""

TOLD = (".html", ".xlsx")
"""Suffixes whose writer works for seconds: its `write` also takes `progress`."""

Write = Callable[["Question", str], None]


def writer_of(path: str, progress: "Progress | None" = None) -> Write:
    """Return what writes a file of this suffix; `progress` is told how far long work is.

    Raises
    ------
    SettingsError
        If no writer has the suffix.
    """
    suffix = Path(path).suffix.lower()
    module = WRITERS.get(suffix)
    if module is None:
        known = did_you_mean(suffix, list(WRITERS)) or f"; known are {', '.join(WRITERS)}"
        raise SettingsError(f"-o {path}: unknown kind of file {suffix!r}{known}")
    write = import_module(module).write
    found: Write = partial(write, progress=progress) if suffix in TOLD else write
    return found


def export(model: str, on: str | None = None, *, to: str | Path, **said: Any) -> None:
    """Write a plan to a file that one can go on working with.

    ``plan.xlsx`` has live formulas; ``report.html`` is a page with charts that needs no network.

    Parameters
    ----------
    model, on, said : as `kvcalc.plan` takes them
    to : the file; its suffix says what is written

    Raises
    ------
    SettingsError
        If no writer has the suffix, or the plan cannot be answered.
    """
    from kvcalc.api import question_of

    write = writer_of(str(to))
    write(question_of(model, on, **said), str(to))
