"""`kvcalc probe import`: what other tools measured, as measurements of a probe and as a profile."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kvcalc.documents import read_text, write_text
from kvcalc.errors import ProfileError, SettingsError
from kvcalc.probe import environment as surroundings
from kvcalc.probe.asked import known_name
from kvcalc.probe.derive import derived_of
from kvcalc.probe.files import check_apart, check_target, write_evidence
from kvcalc.probe.importers import fio, nvbandwidth
from kvcalc.probe.importers.rows import Imported
from kvcalc.probe.profile import profile_of, text_of
from kvcalc.probe.profile_disk import LARGE_READ, disk_reads
from kvcalc.probe.results import DeviceFacts, Environment, Link, Machine, ProbeResult
from kvcalc.probe.verdicts import Found, checks_of

MOST_BYTES = 16 * 2**20
"""Largest file that is read [byte]."""


def probe_import(file: str, profile: str | None = None, base: str | None = None) -> ProbeResult:
    """Answer what nvbandwidth or fio measured, as `kvcalc probe import` does.

    Parameters
    ----------
    file : nvbandwidth's text or JSON, or fio's JSON
    profile : where to write a calibrated profile
    base : built-in profile that is calibrated; by the device's name when None
    """
    return imported(file, None, profile, base)


def imported(
    file: str, evidence: str | None = None, profile: str | None = None, base: str | None = None
) -> ProbeResult:
    """Read a file of nvbandwidth or fio, and write what is asked for.

    Raises
    ------
    ProfileError
        If it is broken, or of neither; names the file and the line.
    SettingsError
        If a profile is asked for and nothing says of which machine.
    """
    for target, option in ((evidence, "--evidence"), (profile, "--profile")):
        if target is not None:
            check_target(target, option)
    check_apart({"--evidence": evidence, "--profile": profile})
    result = _result(_read(read_text(Path(file).expanduser(), MOST_BYTES), file))
    if profile is not None:
        result = _with_profile(result, file, profile, base)
    if evidence is not None:
        write_evidence(evidence, result)
    return result


def _read(text: str, name: str) -> Imported:
    if '"fio version"' in text:
        return fio.read(text, name)
    if "nvbandwidth" in text:
        return nvbandwidth.read(text, name)
    raise ProfileError(f"{name}:1: neither nvbandwidth's text or JSON nor fio's JSON (--output-format=json)")


def _result(found: Imported) -> ProbeResult:
    devices = tuple(_device(index, name) for index, name in enumerate(found.devices))
    machine = Machine(_unknown(found.driver), devices, None, (), ())
    rows = found.measurements
    derived = derived_of(rows, ())
    return ProbeResult(
        inputs={"tool": found.tool},
        sources={},
        warnings=found.notes,
        assumptions=found.assumptions,
        kind="imported",
        created=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        complete=True,
        level="imported",
        measurements=rows,
        fits=(),
        tests=(),
        machine=machine,
        derived=derived,
        checks=checks_of(Found(machine, rows, (), (), derived)),
        profile=None,
    )


def _with_profile(result: ProbeResult, file: str, profile: str, base: str | None) -> ProbeResult:
    from kvcalc.catalog import hardware as machines
    from kvcalc.catalog.paths import is_path

    names = [device.name for device in result.machine.devices]
    known = known_name(names[0]) if names else None
    name = base or known
    if name is None:
        raise SettingsError("--base: missing; the file does not tell the machine, e.g. --base h100-sxm-80gb")
    found = machines.load(name)
    if known is not None and not is_path(name) and found.name != known:
        raise SettingsError(f"--base: {file} is of {names[0]}, which is {known}, not {found.name}")
    device = result.machine.devices[0] if result.machine.devices else _device(0, found.title)
    whole = replace(result, machine=replace(result.machine, devices=(device,)))
    try:
        text = text_of(profile_of(whole, found))
    except ProfileError as error:
        raise ProfileError(f"{file}: {error}") from None
    write_text(profile, text)
    return replace(result, warnings=(*result.warnings, *_left_out(result)), profile=profile)


def _left_out(result: ProbeResult) -> Iterator[str]:
    """Say that a disk was read in blocks that tell no rate."""
    reads = disk_reads(result.measurements)
    if reads.large is None and reads.small is not None:
        least = f"{LARGE_READ // 2**10} KiB"
        yield f"the profile has no disk: reads of less than {least} do not tell its bandwidth"


def _device(index: int, name: str) -> DeviceFacts:
    """Return a device of which the name alone is known."""
    nothing: dict[str, Any] = dict.fromkeys(DeviceFacts.__annotations__)
    link = Link("unknown", None, None, None, None, None, None, (), None)
    told = {"index": index, "backend": "cuda", "name": name, "link": link}
    return DeviceFacts(**{**nothing, **told, "throttle_reasons": (), "flags": ()})


def _unknown(driver: str | None) -> Environment:
    """Return an environment of which nothing is known: the file may be from another machine."""
    here = surroundings.environment_of()
    texts = {"os": "unknown", "kernel": "unknown", "python": "unknown", "numpy": "unknown", "cpu": "unknown"}
    return replace(
        here,
        **texts,
        driver=driver,
        cpus=0.0,
        cpus_allowed=0.0,
        memory=0.0,
        memory_available=0.0,
        last_level_cache=None,
        numa_nodes=(),
        container=False,
        wsl=False,
        hypervisor=False,
        memlock=None,
        cgroup_memory=None,
        huge_pages=None,
    )
