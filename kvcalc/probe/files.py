"""The two files of a probe: evidence after each test, the profile at the end; each whole or not at all."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from kvcalc.documents import write_text
from kvcalc.errors import SettingsError
from kvcalc.probe.profile import MARK
from kvcalc.probe.results import ProbeResult
from kvcalc.records import record

PEEK = 4096
"""Bytes of a file that are looked at, to see whose it is [byte]."""


def evidence_text(result: ProbeResult) -> str:
    """Return the evidence as JSON: everything but the place of the profile."""
    return json.dumps(replace(result, profile=None).to_dict(), indent=1, ensure_ascii=False) + "\n"


def write_evidence(path: str, result: ProbeResult) -> None:
    """Write the evidence so far."""
    write_text(path, evidence_text(result))


def check_apart(targets: Mapping[str, str | None], read: Sequence[str] = ()) -> None:
    """Refuse options that name one file for two things; `targets` are the files by their options.

    `read` are files that the command reads, which it must not write over.

    Raises
    ------
    SettingsError
        If two of them are the same file; names both options.
    """
    inputs = {Path(path).expanduser().resolve() for path in read}
    seen: dict[Path, str] = {}
    for option, path in targets.items():
        if path is None:
            continue
        place = Path(path).resolve()
        if place in inputs:
            raise SettingsError(f"{option}: {path} is the file that is read; name another one")
        other = seen.setdefault(place, option)
        if other != option:
            raise SettingsError(f"{option}: {path} is the file of {other} too; name another one")


@record
class Kind:
    """What one option writes, and by which words a file of that kind is known."""

    mark: str
    title: str


_KINDS = {
    "--evidence": Kind('"kvcalc.probe/', "evidence"),
    "--profile": Kind(MARK, "a profile"),
}


def check_target(path: str, option: str) -> None:
    """Refuse a file that a probe must not write over, and a folder that is not there.

    Raises
    ------
    SettingsError
        If the file is somebody else's or of the other kind, or cannot be written.
    """
    check_folder(path, option)
    target = Path(path)
    if not (target.is_file() and target.stat().st_size):
        return
    with target.open("rb") as file:
        head = file.read(PEEK).decode("utf-8", errors="replace")
    kinds = {name: kind for name, kind in _KINDS.items() if kind.mark in head}
    if not kinds:
        raise SettingsError(
            f"{option}: {path} is there and was not written by kvcalc probe; name another file"
        )
    if option in _KINDS and option not in kinds:
        there = next(iter(kinds.values())).title
        raise SettingsError(
            f"{option}: {path} is {there} of an earlier probe, not {_KINDS[option].title}; name another file"
        )


def check_folder(path: str | None, option: str) -> None:
    """Refuse a file that cannot be written: an empty name, a folder, or one in a folder that is not there.

    Raises
    ------
    SettingsError
        If it is one of these; names the option.
    """
    if path is None:
        return
    target = Path(path)
    if not path.strip():
        raise SettingsError(f"{option}: the name of the file is empty")
    if target.is_dir():
        raise SettingsError(f"{option}: {path} is a folder")
    if not target.parent.is_dir():
        raise SettingsError(f"{option}: {path}: the folder {target.parent} is not there")
