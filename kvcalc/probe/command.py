"""`kvcalc probe` as both of its doors call it: find devices, measure, write both files."""

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import FrameType

from kvcalc.catalog.scenarios import Question
from kvcalc.errors import KvcalcError
from kvcalc.probe.asked import base_of, model_name, pieces_of
from kvcalc.probe.backends.found import Devices, find
from kvcalc.probe.files import check_target, write_evidence
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
        If an option is invalid, or a file cannot be written; nothing is measured then.
    """
    for path, option in ((places.evidence, "--evidence"), (places.profile, "--profile")):
        if path is not None:
            check_target(path, option)
    if devices is None:
        devices = Devices((), ()) if options.host_only else find()
    chosen = devices.devices
    if options.device is not None:
        chosen = tuple(device for device in chosen if device.index == options.device)
    missing = devices.missing
    if options.device is not None and not chosen:
        missing = (*missing, f"there is no device {options.device}")

    def keep(so_far: ProbeResult) -> None:
        if places.evidence is not None:
            write_evidence(places.evidence, so_far)

    with _terminated():
        run = Run(options, chosen, missing, devices.torch, devices.driver, tell, keep)
        result = run.result()
        keep(result)
        return _with_profile(result, places)


def _with_profile(result: ProbeResult, places: Places) -> ProbeResult:
    """Write the profile, or say why there is none."""
    from kvcalc.documents import write_text

    if places.profile is None:
        return result
    try:
        text = text_of(profile_of(result, base_of(result, places.base)))
    except KvcalcError as error:
        return replace(result, warnings=(*result.warnings, str(error)))
    write_text(places.profile, text)
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


EXIT_OK, EXIT_FAILED, EXIT_NO_DEVICE, EXIT_MISMATCH = 0, 1, 3, 4


def status_of(result: ProbeResult, check: bool, require_device: bool) -> int:
    """Return the exit status: 4 where content was wrong; 3 and 1 only where they were asked for."""
    if any(check.id == "verification" and check.verdict == "fail" for check in result.checks):
        return EXIT_MISMATCH
    if require_device and result.kind == "host_only":
        return EXIT_NO_DEVICE
    return EXIT_FAILED if check and any(one.verdict == "fail" for one in result.checks) else EXIT_OK
