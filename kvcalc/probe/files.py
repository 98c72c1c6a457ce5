"""The two files of a probe: evidence after each test, the profile at the end; each whole or not at all."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from kvcalc.documents import write_text
from kvcalc.errors import SettingsError
from kvcalc.probe.profile import MARK
from kvcalc.probe.results import ProbeResult

PEEK = 4096
"""Bytes of a file that are looked at, to see whose it is [byte]."""


def evidence_text(result: ProbeResult) -> str:
    """Return the evidence as JSON: everything but the place of the profile."""
    return json.dumps(replace(result, profile=None).to_dict(), indent=1, ensure_ascii=False) + "\n"


def write_evidence(path: str, result: ProbeResult) -> None:
    """Write the evidence so far."""
    write_text(path, evidence_text(result))


def check_apart(targets: Mapping[str, str | None]) -> None:
    """Refuse options that name one file for two things; `targets` are the files by their options.

    Raises
    ------
    SettingsError
        If two of them are the same file; names both options.
    """
    seen: dict[Path, str] = {}
    for option, path in targets.items():
        if path is None:
            continue
        other = seen.setdefault(Path(path).resolve(), option)
        if other != option:
            raise SettingsError(f"{option}: {path} is the file of {other} too; name another one")


def check_target(path: str, option: str) -> None:
    """Refuse a file that a probe must not write over, and a folder that is not there.

    Raises
    ------
    SettingsError
        If the file is somebody else's, or cannot be written.
    """
    target = Path(path)
    if target.is_dir():
        raise SettingsError(f"{option}: {path} is a folder")
    if not target.parent.is_dir():
        raise SettingsError(f"{option}: {path}: the folder {target.parent} is not there")
    if target.is_file() and target.stat().st_size:
        with target.open("rb") as file:
            head = file.read(PEEK).decode("utf-8", errors="replace")
        if MARK not in head and '"kvcalc.probe/' not in head:
            raise SettingsError(
                f"{option}: {path} is there and was not written by kvcalc probe; name another file"
            )
