"""`kvcalc probe import`: what other tools measured, as measurements of a probe and as a profile."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kvcalc.catalog import hardware as machines
from kvcalc.catalog.paths import is_path
from kvcalc.documents import read_text, write_text
from kvcalc.errors import KvcalcError, ProfileError, SettingsError
from kvcalc.probe import environment as surroundings
from kvcalc.probe.asked import known_name
from kvcalc.probe.derive import derived_of, link_rate
from kvcalc.probe.files import check_apart, check_target, write_evidence
from kvcalc.probe.fit import BOUND_SLACK
from kvcalc.probe.importers import fio, nvbandwidth
from kvcalc.probe.importers.origin import restated
from kvcalc.probe.importers.rows import Imported
from kvcalc.probe.profile import profile_of, text_of
from kvcalc.probe.profile_disk import why_no_disk
from kvcalc.probe.profile_entries import rate_text
from kvcalc.probe.results import DeviceFacts, Environment, Link, Machine, ProbeResult
from kvcalc.probe.verdicts import Found, checks_of
from kvcalc.profiles import Hardware

MOST_BYTES = 16 * 2**20
"""Largest file that is read [byte]."""
LEAST_SHARE = 0.05
"""Share of a link's rate below which a figure is questioned [1]: chosen; a sixteenth of its lanes."""


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
    check_apart({"--evidence": evidence, "--profile": profile}, [file])
    named = None if base is None else _named(base)
    found = _read(read_text(Path(file).expanduser(), MOST_BYTES), file)
    machine = _machine_of(found, file, base, named)
    result = _result(found)
    if machine is not None:
        result = replace(result, warnings=(*result.warnings, *_unlikely(result, machine)))
    if profile is not None:
        result = _with_profile(result, found, file, profile, machine)
    if evidence is not None:
        write_evidence(evidence, result)
    return result


def _named(base: str) -> Hardware:
    """Return the machine that `--base` names."""
    try:
        return machines.load(base)
    except KvcalcError as error:
        raise SettingsError(f"--base: {error}") from None


def _machine_of(found: Imported, file: str, base: str | None, named: Hardware | None) -> Hardware | None:
    """Return the machine that is calibrated: as it is named, else as the file tells it, if it does."""
    known = known_name(found.devices[0]) if found.devices else None
    if base is None or named is None:
        return None if known is None else machines.load(known)
    if known is not None and not is_path(base) and named.name != known:
        raise SettingsError(f"--base: {file} is of {found.devices[0]}, which is {known}, not {named.name}")
    return named


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
        inputs={"tool": found.tool} | ({} if found.run is None else {"measured": found.run}),
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


def _with_profile(
    result: ProbeResult, found: Imported, file: str, profile: str, machine: Hardware | None
) -> ProbeResult:
    if machine is None:
        raise SettingsError("--base: missing; the file does not tell the machine, e.g. --base h100-sxm-80gb")
    device = result.machine.devices[0] if result.machine.devices else _device(0, machine.title)
    whole = replace(result, machine=replace(result.machine, devices=(device,)))
    try:
        entry = restated(profile_of(whole, machine), found, result.created[:10])
    except ProfileError as error:
        why = why_no_disk(result.measurements)
        told = f"no profile: {why}" if why and all(row.test == "Z1" for row in result.measurements) else error
        raise ProfileError(f"{file}: {told}") from None
    write_text(profile, text_of(entry))
    return replace(result, warnings=(*result.warnings, *_left_out(result)), profile=profile)


def _left_out(result: ProbeResult) -> Iterator[str]:
    """Say why a disk that was measured is not in the profile."""
    why = why_no_disk(result.measurements)
    if why is not None:
        yield f"the profile has no disk: {why}"


def _unlikely(result: ProbeResult, machine: Hardware) -> Iterator[str]:
    """Say that a rate is far below that of the link of such a machine, or above it."""
    links = {"h2d": machine.host_to_device, "d2h": machine.device_to_host}
    for direction, link in links.items():
        rate = link_rate(direction, result.measurements, ())
        if rate is None or LEAST_SHARE * link.nominal <= rate <= BOUND_SLACK * link.nominal:
            continue
        is_slow = rate < link.nominal
        share = f"{rate / link.nominal:.2%} of" if is_slow else "above"
        doubt = "is the unit right?" if is_slow else "it is of another machine"
        yield (
            f"{rate_text(rate)} {direction} are {share} the {rate_text(link.nominal)} of {link.via}, "
            f"the link of {machine.name}: {doubt}"
        )


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
