"""A whole probe: every test within its time, the evidence handed over after each of them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import import_module
from time import monotonic
from typing import Any

from kvcalc.probe import environment as surroundings
from kvcalc.probe.backends.protocol import Accelerator, PartlyError, UnavailableError
from kvcalc.probe.derive import derived_of
from kvcalc.probe.measurements import IDS, TESTS, Test
from kvcalc.probe.options import Options
from kvcalc.probe.results import Environment, Machine, ProbeResult, TestRun
from kvcalc.probe.session import Session
from kvcalc.probe.statistics import USABLE
from kvcalc.probe.verdicts import Found, checks_of


def _quiet(_: str, __: float) -> None:
    return None


def _kept(_: ProbeResult) -> None:
    return None


LINK_TESTS = frozenset({"H1", "H2", "H3", "S1", "P1"})
"""Tests of a link that devices which share the host's memory do not have."""


@dataclass
class Run:
    """What a probe is made of besides its options."""

    options: Options
    devices: Sequence[Accelerator] = ()
    missing: tuple[str, ...] = ()  # why there are no devices, or fewer
    torch: Any = None
    driver: str | None = None
    tell: Callable[[str, float], None] = _quiet  # what is being done, and the share that is done
    keep: Callable[[ProbeResult], None] = _kept  # takes the result after each test
    _before: Environment | None = field(default=None, init=False)

    def result(self) -> ProbeResult:
        """Run every test, and return what they found."""
        self.options.check(IDS)
        self._before = surroundings.environment_of(self.torch, self.driver)
        session = Session(self.options, self._before, self.devices)
        chosen = self._chosen()
        until = monotonic() + self.options.seconds
        self.keep(self._so_far(session, complete=False))
        try:
            for at, test in enumerate(chosen):
                session.beat = self._teller(test, at / len(chosen))
                session.beat("")
                session.tests.append(self._one(test, session, until))
                self.keep(self._so_far(session, complete=False))
        except BaseException:  # Ctrl-C and SIGTERM too: what the broken test had measured is kept
            self.keep(self._so_far(session, complete=False))
            raise
        self.tell("done", 1.0)
        return self._so_far(session, complete=True)

    def _teller(self, test: Test, share: float) -> Callable[[str], None]:
        return lambda what: self.tell(f"{test.id} {what or test.title}", share)

    def _chosen(self) -> list[Test]:
        wanted = self.options.tests or IDS
        named = bool(self.options.tests)
        level = self.options.level
        return [test for test in TESTS if test.id in wanted and (named or level in test.seconds)]

    def _one(self, test: Test, session: Session, until: float) -> TestRun:
        """Run one test; whatever goes wrong in it, the others still run."""
        begun = monotonic()

        def told(status: str, reason: str = "") -> TestRun:
            return TestRun(test.id, test.title, status, reason, monotonic() - begun)

        if test.needs in ("device", "devices") and not session.devices:
            return told("skipped", "no device")
        if test.needs == "devices" and len(session.devices) < 2:
            return told("skipped", "one device")
        if test.id in LINK_TESTS and session.device.facts().integrated:
            return told("skipped", "CPU and device share one memory: copying to the host frees nothing")
        if begun >= until:
            return told("skipped", "the time was used up")
        seconds = test.seconds.get(self.options.level) or max(test.seconds.values())
        session.until, session.deadline = min(begun + seconds, until), until
        seen = len(session.measurements)
        try:
            import_module(f"kvcalc.probe.measurements.{test.module}").run(session)
        except UnavailableError as error:
            return told("unsupported", str(error))
        except PartlyError as error:
            some = len(session.measurements) > seen
            return told("ok" if some else "skipped", f"left out: {error}")
        except Exception as error:
            # Whatever a driver or a library does in one test, the others must not be lost.
            return told("failed", _words(error))
        fresh = session.measurements[seen:]
        if fresh and all((row.mad or 0.0) > USABLE * row.median for row in fresh):
            return told("unstable", "samples scatter by more than a twentieth")
        return told("ok")

    def _so_far(self, session: Session, complete: bool) -> ProbeResult:
        """Return the result of the tests that have run."""
        devices = tuple(device.facts() for device in session.devices)
        now = surroundings.environment_of(self.torch, self.driver)
        machine = Machine(
            environment=now,
            devices=devices,
            disk=session.disk,
            missing=self.missing,
            flags=surroundings.flags_of(now, self._before),
        )
        rows, fits = tuple(session.measurements), tuple(session.fits)
        derived = derived_of(rows, fits)
        kinds = {device.kind for device in session.devices}
        return ProbeResult(
            inputs=_inputs(self.options),
            sources={},
            warnings=_warnings(self.missing, devices, session.tests),
            assumptions=(),
            kind="host_only" if not kinds else "simulated" if kinds == {"simulated"} else "device",
            created=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            complete=complete,
            level=self.options.level,
            measurements=rows,
            fits=fits,
            tests=tuple(session.tests),
            machine=machine,
            derived=derived,
            checks=checks_of(Found(machine, rows, fits, session.tests, derived)) if complete else (),
            profile=None,
        )


def _words(error: BaseException) -> str:
    """Return an error in one line without paths, which may hold a user's name."""
    text = str(getattr(error, "strerror", None) or error).strip().splitlines()
    first = text[0] if text else ""
    return f"{type(error).__name__}: {' '.join(word for word in first.split() if '/' not in word)}"[:200]


def _inputs(options: Options) -> dict[str, Any]:
    return {
        "level": options.level,
        "tests": list(options.tests),
        "model": options.model,
        "pieces": {name: float(size) for name, size in options.pieces.items()},
        "max_seconds": options.max_seconds,
        "disk_bytes": options.file_size,
        "seed": options.seed,
    }


def _warnings(missing: Sequence[str], devices: Sequence[Any], tests: Sequence[TestRun]) -> tuple[str, ...]:
    found = list(missing)
    if any("not_verified" in device.flags for device in devices):
        found.append("this back end has not yet been verified on a GPU: take its figures with care")
    found += [
        f"{test.id} {test.status}: {test.reason}" for test in tests if test.status in ("failed", "unstable")
    ]
    return tuple(found)
