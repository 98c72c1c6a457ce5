"""A plan as a file to keep working with: the suffix of the file names its writer.

To add a kind of file, name its module here; the module has `write(question, path)`, which answers the
plan and writes the file whole or not at all (`kvcalc.documents.write_bytes`).
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from kvcalc.errors import SettingsError, did_you_mean

if TYPE_CHECKING:
    from kvcalc.catalog.scenarios import Question

WRITERS: Mapping[str, str] = MappingProxyType(
    {
        ".xlsx": "kvcalc.exports.workbook",  # live formulas over an inputs sheet
    }
)
"""Suffix of a file -> the module that writes it."""

Write = Callable[["Question", str], None]


def writer_of(path: str) -> Write:
    """Return what writes a file of this suffix.

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
    found: Write = import_module(module).write
    return found


def export(model: str, on: str | None = None, *, to: str | Path, **said: Any) -> None:
    """Write a plan to a file that one can go on working with: ``plan.xlsx`` has live formulas.

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
