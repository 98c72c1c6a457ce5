"""One run of the probe: what is measured so far, and how much time is left."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from time import monotonic
from typing import Any

from kvcalc.probe.backends.protocol import Accelerator, UnavailableError
from kvcalc.probe.fit import Fit
from kvcalc.probe.options import Options
from kvcalc.probe.results import DiskFacts, Environment, Measurement, PieceOfFit, SeriesFit, TestRun
from kvcalc.probe.sweep import Budget, Series, Step, Taken, series_of, sweep
from kvcalc.probe.timing import Timer

GIB, MIB, KIB = 2**30, 2**20, 2**10


def _silent(_: str) -> None:
    return None


@dataclass
class Session:
    """What the tests share; they add to it."""

    options: Options
    environment: Environment
    devices: Sequence[Accelerator] = ()
    beat: Callable[[str], None] = _silent  # told of each series, for the display of progress
    measurements: list[Measurement] = field(default_factory=list)
    fits: list[SeriesFit] = field(default_factory=list)
    tests: list[TestRun] = field(default_factory=list)
    disk: DiskFacts | None = None
    until: float = float("inf")  # of the running test, by this module's clock
    deadline: float = float("inf")  # of all tests together

    @property
    def device(self) -> Accelerator:
        """The device that is measured."""
        return self.devices[0]

    @property
    def quick(self) -> bool:
        """Whether little time is to be taken."""
        return self.options.level == "quick"

    @property
    def full(self) -> bool:
        """Whether everything is to be measured."""
        return self.options.level == "full"

    def left(self) -> float:
        """Return the time that the running test still has [second]."""
        return self.until - monotonic()

    def prepared(self, seconds: float) -> None:
        """Do not count what a test took to prepare, such as to write a file, against its own time."""
        self.until = min(self.until + seconds, self.deadline)

    def in_time(self) -> None:
        """Refuse to go on where the time of all tests is used up.

        Raises
        ------
        UnavailableError
            If it is.
        """
        if monotonic() > self.deadline:
            raise UnavailableError("the time was used up before anything was measured")

    def host_memory(self, wanted: int) -> int:
        """Return so many bytes, or a tenth of the available memory where that is less; a power of two."""
        most = int(float(self.environment.memory_available) / 10)
        while wanted > most:
            wanted //= 2
        return wanted

    def measure(
        self, series: Series, timer: Timer, steps: Sequence[Step], share: float = 1.0
    ) -> list[Measurement]:
        """Sample a series within `share` of the time that the test has left, and keep what it says."""
        self.beat(series.name)
        until = timer.now() + max(0.0, self.left()) * share
        return self.keep(series, sweep(timer, steps, Budget(self.options.samples, until)))

    def keep(self, series: Series, taken: Sequence[Taken]) -> list[Measurement]:
        """Keep samples that were taken."""
        rows, fit = series_of(series, taken)
        self.measurements += rows
        if fit is not None:
            self.fits.append(_series_fit(series, fit))
        return rows

    def found(self, series: str) -> list[Measurement]:
        """Return the measurements of a series that may be used, smallest first."""
        rows = [row for row in self.measurements if row.series == series and usable(row)]
        return sorted(rows, key=lambda row: row.chunk_bytes * row.n_chunks)


def usable(row: Measurement) -> bool:
    """Tell whether a measurement may be used: its content arrived, and it is physically possible."""
    return row.verified is not False and not {"implausible", "cache_hit", "buffered"} & set(row.flags)


def _series_fit(series: Series, fit: Fit) -> SeriesFit:
    same: dict[str, Any] = {
        name: getattr(fit, name) for name in Fit.__annotations__ if name not in ("pieces",)
    }
    pieces = tuple(PieceOfFit(**_plain(piece)) for piece in fit.pieces)
    return SeriesFit(series=series.name, device=series.device, pieces=pieces, **same)


def _plain(piece: Any) -> dict[str, Any]:  # noqa: ANN401
    return asdict(piece)
