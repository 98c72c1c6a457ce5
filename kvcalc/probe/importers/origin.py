"""A profile of imported figures says whose they are: the tool, its version and the day of its run."""

from collections.abc import Mapping
from typing import Any

from kvcalc.probe.importers.rows import Imported
from kvcalc.probe.profile import MARK
from kvcalc.probe.profile_disk import disk_reads, large_note
from kvcalc.probe.profile_entries import Entry, is_measured
from kvcalc.profiles import PROBE

LINKS = {"host_to_device": "h2d.pinned", "device_to_host": "d2h.pinned"}
"""Sections of a profile with the series that they are taken from."""


def restated(profile: Entry, file: Imported, today: str) -> Entry:
    """Return a profile with the origin of its measured values.

    `today` is the day of the import, which is not that of the measurement.
    """
    source = {"title": f"{file.tool}, imported by kvcalc probe {_version()}", "retrieved": today}
    if file.run is not None:
        source["measured"] = file.run
    changed: Entry = {
        "note": f"{MARK} on {today}, from what {file.tool} measured",
        "sources": {**profile["sources"], PROBE: source},
    }
    for section, series in LINKS.items():
        row = next((row for row in file.measurements if row.series == series), None)
        if row is not None:
            note = f"copies of {row.chunk_bytes:.0f} B from pinned memory, the only size that was measured"
            changed[section] = _noted(profile[section], note)
    large = disk_reads(file.measurements).large
    if large is not None:
        changed["storage"] = _noted(profile["storage"], large_note(large))
    return {**profile, **changed}


def _noted(section: Mapping[str, Any], note: str) -> Entry:
    """Return a section whose measured rate has another note."""
    rate = section["bandwidth"]
    return {**section, "bandwidth": {**rate, "note": note} if is_measured(rate) else rate}


def _version() -> str:
    from kvcalc import __version__

    return __version__
