"""Kinds of tier as data (kinds.json): latency, operations in flight, who shares them, wear, price."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np

from kvcalc.quantity import BytesPerSecond, PerSecond
from kvcalc.tiers.figures import Figure, data_of, figures_of, named

_FIGURES = (
    *("latency", "iops", "drive_bandwidth", "queue_depth", "streams"),
    *("write_share", "drive_writes", "remote_share", "price"),
)


@dataclass(frozen=True)
class TierKind:
    """What tiers of one kind have in common where a question does not say it."""

    name: str
    title: str
    called: tuple[str, ...]  # names of tiers that are taken for this kind
    shared: str  # what the GPUs that read it at once have in common
    waits: bool = False  # whether a restore waits for the latency of its first operation, as on drives
    latency: Figure | None = None  # second, of one operation
    iops: Figure | None = None  # operations a second of one drive
    drive_bandwidth: Figure | None = None  # byte/second that one drive reads
    queue_depth: Figure | None = None  # operations in flight that the device takes
    streams: Figure | None = None  # operations in flight that one request keeps
    write_share: Figure | None = None  # of the read bandwidth
    drive_writes: Figure | None = None  # times its capacity that a drive may be written each day
    remote_share: Figure | None = None  # of the bandwidth that a remote socket leaves
    price: Figure | None = None  # USD/byte/second

    def number(self, name: str, otherwise: float) -> float:
        """Return a figure's value, or `otherwise` where the kind has none."""
        found: Figure | None = getattr(self, name)
        return otherwise if found is None else found.value

    @property
    def in_flight(self) -> float:
        """Operations of one request in flight: as many as it keeps and the device takes."""
        return min(self.number("streams", math.inf), self.number("queue_depth", math.inf))

    def operations(self, bandwidth: BytesPerSecond) -> PerSecond:
        """Return the operations a second of as many drives as read at `bandwidth` together."""
        drives = np.maximum(1.0, bandwidth / self.number("drive_bandwidth", math.inf))
        most: PerSecond = self.number("iops", math.inf) * drives
        return most


@cache
def tier_kinds() -> Mapping[str, TierKind]:
    """Return all kinds by name."""
    data = data_of("kinds.json")
    return {
        entry["name"]: TierKind(
            name=entry["name"],
            title=entry["title"],
            called=tuple(entry["called"]),
            shared=entry["shared"],
            waits=entry.get("waits", False),
            **figures_of(entry, _FIGURES, data["sources"]),
        )
        for entry in data["kinds"]
    }


def tier_kind(name: str) -> TierKind:
    """Return one kind.

    Raises
    ------
    SettingsError
        If there is none of this name.
    """
    return named(tier_kinds(), name, "kind of tier")


def kind_called(name: str) -> TierKind | None:
    """Return the kind that a tier's own name tells, None where it tells none.

    >>> kind_called("NVMe").name
    'nvme'
    """
    word = name.strip().lower()
    return next((kind for kind in tier_kinds().values() if word in kind.called), None)
