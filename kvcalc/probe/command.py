"""`kvcalc probe` as both of its doors call it: find devices, measure, write both files."""

import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from types import FrameType

from kvcalc.catalog import hardware as machines
from kvcalc.catalog.scenarios import Question
from kvcalc.errors import KvcalcError, SettingsError
from kvcalc.probe.asked import base_of, model_name, pieces_of
from kvcalc.probe.backends.disk import check_disk
from kvcalc.probe.backends.found import Devices, find
from kvcalc.probe.backends.protocol import Accelerator
from kvcalc.probe.files import check_apart, check_target, write_evidence
from kvcalc.probe.measurements import IDS
from kvcalc.probe.options import EVIDENCE, PROFILE, Options
from kvcalc.probe.profile import profile_of, text_of
from kvcalc.probe.results import ProbeResult
from kvcalc.probe.run import Run
from kvcalc.records import record


@record
class Places:
    """Where the files go; None writes none."""

    evidence: str | None = EVIDENCE
    profile: str | None = PROFILE
    base: str | None = None  # built-in profile that is calibrated; None: by the device's name


class UnwrittenError(KvcalcError):
    """A file cannot be written after the machine was measured."""

    def __init__(self, message: str, result: ProbeResult) -> None:
        super().__init__(message)
        self.result = result


def probe(
    options: Options,
    places: Places,
    tell: Callable[[str, float], None] = lambda what, share: None,
    devices: Devices | None = None,
) -> ProbeResult:
    """Measure this machine and write evidence and profile.

    Raises
    ------
    SettingsError
        If an option is invalid, or a file could not be written; nothing is measured then.
    UnwrittenError
        If a file cannot be written after all; has what was measured.
    """
    _check(options, places)
    if devices is None:
        devices = Devices((), ()) if options.host_only else find()
    chosen, missing = _chosen(options, devices), devices.missing

    kept: list[str] = []

    def keep(so_far: ProbeResult) -> None:
        if places.evidence is None:
            return
        # A place that takes no file now may take one at the end, where a failure is told.
        with suppress(KvcalcError):
            write_evidence(places.evidence, so_far)
            kept[:] = [places.evidence]

    with _terminated(), _told_partial(kept):
        run = Run(options, chosen, missing, devices.torch, devices.driver, tell, keep)
        result = run.result()
        if options.model is not None and not chosen:
            told = f"--model {options.model} changed nothing: its pieces move to a GPU, and none was measured"
            result = replace(result, warnings=(*result.warnings, told))
        try:
            if places.evidence is not None:
                write_evidence(places.evidence, result)
            return _with_profile(result, places)
        except KvcalcError as error:
            raise UnwrittenError(str(error), result) from error


def _check(options: Options, places: Places) -> None:
    """Refuse what is known to be wrong before devices are looked for, which takes seconds."""
    targets = {"--evidence": places.evidence, "--profile": places.profile}
    for option, path in targets.items():
        if path is not None:
            check_target(path, option)
    check_apart(targets)
    options.check(IDS)
    if options.disk_named or options.disk_bytes is not None:
        check_disk(options.disk, options.disk_bytes)
    if options.host_only:
        for option, said in (("--device", options.device), ("--base", places.base)):
            if said is not None:
                raise SettingsError(f"{option} and --host-only say two different things: it is of a GPU")
    if places.base is not None:
        try:
            machines.load(places.base)
        except KvcalcError as error:
            raise SettingsError(f"--base: {error}") from None


def _chosen(options: Options, devices: Devices) -> tuple[Accelerator, ...]:
    """Return the devices to measure."""
    if options.device is None:
        return devices.devices
    found = tuple(device for device in devices.devices if device.index == options.device)
    if not found:
        there = ", ".join(str(device.index) for device in devices.devices)
        why = f"there are {there}" if there else "; ".join(devices.missing) or "no GPU was found"
        raise SettingsError(f"--device: there is no device {options.device}: {why}")
    return found


def _with_profile(result: ProbeResult, places: Places) -> ProbeResult:
    """Write the profile, or say why there is none."""
    from kvcalc.documents import write_text

    if places.profile is None:
        return result
    try:
        text = text_of(profile_of(result, base_of(result, places.base)))
    except KvcalcError as error:
        told = [str(error)]
        if Path(places.profile).exists():
            told.append(f"{places.profile} is of an earlier probe, not of this one, and stays as it was")
        return replace(result, warnings=(*result.warnings, *told))
    write_text(places.profile, text)
    if places.base is not None and not result.machine.devices:
        told = [f"--base {places.base} was not used: no GPU was measured"]
        result = replace(result, warnings=(*result.warnings, *told))
    return replace(result, profile=places.profile)


def probe_machine(
    level: str = "default",
    *,
    tests: Sequence[str] = (),
    model: str | None = None,
    host_only: bool = False,
    disk: str | None = None,
    evidence: str | None = None,
    profile: str | None = None,
) -> ProbeResult:
    """Answer what this machine's links really deliver, as `kvcalc probe` does; writes only what is named.

    Parameters
    ----------
    level : quick, default or full
    tests : ids such as H1; all of the level when empty
    model : whose pieces of KV are moved in S1: a name or a path
    host_only : whether to leave GPUs alone
    disk : folder of the disk test; the current one when None
    evidence, profile : files to write
    """
    options = Options(
        level=level,
        tests=tuple(tests),
        host_only=host_only,
        disk=Path(disk or "."),
        disk_named=disk is not None,
        pieces=pieces_of(Question(model, None, {}, {}, {})),
        model=model_name(model),
    )
    return probe(options, Places(evidence, profile))


@contextmanager
def _terminated() -> Iterator[None]:
    """Turn SIGTERM into an exception, so that what was measured is written before the process ends."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(number: int, _: FrameType | None) -> None:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _told_partial(kept: Sequence[str]) -> Iterator[None]:
    """Say on stderr, where a probe is ended early, that its file is only a part."""
    try:
        yield
    except (KeyboardInterrupt, SystemExit):
        if sys.stderr is not None:
            after = "\n" if sys.stderr.isatty() else ""  # of the line that shows progress
            for path in kept:
                sys.stderr.write(f"{after}kvcalc: ended early; {path} is partial (complete: false)\n")
        raise


EXIT_OK, EXIT_FAILED, EXIT_NO_DEVICE, EXIT_MISMATCH = 0, 1, 3, 4


def status_of(result: ProbeResult, check: bool, require_device: bool) -> int:
    """Return the exit status: 4 where content was wrong; 3 and 1 only where they were asked for."""
    if any(check.id == "verification" and check.verdict == "fail" for check in result.checks):
        return EXIT_MISMATCH
    if require_device and result.kind == "host_only":
        return EXIT_NO_DEVICE
    return EXIT_FAILED if check and any(one.verdict == "fail" for one in result.checks) else EXIT_OK
