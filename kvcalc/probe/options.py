"""What a probe was asked to do."""

from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from types import MappingProxyType

from kvcalc.errors import SettingsError, did_you_mean
from kvcalc.records import record

EVIDENCE, PROFILE = "probe.json", "probe.yaml"
"""Files that are written in the current folder unless others are named."""

VERIFIED: frozenset[str] = frozenset()
"""Kinds of device (cuda, rocm, xpu, mps) with evidence under `hardware/probes`; a test holds both equal."""

GPU_NOTE = (
    "The GPU part has run on the GPUs whose evidence lies in hardware/probes; other vendors' are untested."
    if VERIFIED
    else "The GPU part is not yet verified on a GPU: it has run on a simulated device and on torch's CPU."
)
"""Said in the help and on the page of the command."""

LEVELS = ("quick", "default", "full")
MOST_DEVICE, MOST_SEED = 1024, 2**32
"""Numbers above those of any device, and of any seed [1]."""
SAMPLES: Mapping[str, int] = MappingProxyType({"quick": 9, "default": 15, "full": 25})
"""Samples of each size by level [1]."""
SECONDS: Mapping[str, float] = MappingProxyType({"quick": 45.0, "default": 150.0, "full": 300.0})
"""Deadline for all tests together by level, before the start of torch is counted [second]."""
DISK_FILE: Mapping[str, int] = MappingProxyType({"quick": 2**28, "default": 2**30, "full": 2**30})
"""File of the disk test by level [byte], unless another size is asked for."""


@record
class Options:
    """What to measure, for how long, and where to."""

    level: str = "default"
    tests: tuple[str, ...] = ()  # ids; none: all of the level
    device: int | None = None  # number of the one to measure; None: the first, and all in G1
    host_only: bool = False
    disk: Path = Path(".")
    disk_named: bool = False  # whether the folder was named by the user
    disk_bytes: int | None = None
    max_seconds: float | None = None
    seed: int = 1
    pieces: Mapping[str, float] = field(default_factory=dict)  # sizes of a model's chunks, by what they are
    model: str | None = None  # whose they are

    @property
    def samples(self) -> int:
        """Samples of each size."""
        return SAMPLES[self.level]

    @property
    def seconds(self) -> float:
        """Deadline for all tests."""
        return SECONDS[self.level] if self.max_seconds is None else self.max_seconds

    @property
    def file_size(self) -> int:
        """Size of the file of the disk test."""
        return DISK_FILE[self.level] if self.disk_bytes is None else self.disk_bytes

    def check(self, known: tuple[str, ...]) -> None:
        """Refuse what cannot be done."""
        if self.level not in LEVELS:
            raise SettingsError(f"--level: unknown level {self.level!r}{did_you_mean(self.level, LEVELS)}")
        for name in self.tests:
            if name not in known:
                raise SettingsError(f"--test: unknown test {name!r}{did_you_mean(name, known)}")
        if self.max_seconds is not None and not self.max_seconds > 0:
            raise SettingsError(f"--max-seconds: {self.max_seconds:g} is not a positive time")
        if self.disk_bytes is not None and self.disk_bytes < 2**26:
            raise SettingsError("--disk-bytes: less than 64 MiB leave no room for reads of several sizes")
