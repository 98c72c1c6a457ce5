"""Figures that follow from several measurements, such as how much pageable memory costs."""

from collections.abc import Sequence

from kvcalc.probe.results import Derived, Measurement, SeriesFit
from kvcalc.probe.session import usable

HALF = 0.5


def derived_of(rows: Sequence[Measurement], fits: Sequence[SeriesFit]) -> Derived:
    """Return what the measurements give together; None for what they do not."""
    rate = _Rates(rows)
    up, down = link_rate("h2d", rows, fits), link_rate("d2h", rows, fits)
    bound = next((fit.bound for fit in fits if fit.series == "h2d.pinned"), None)
    pinned = {series: rate.top(series) for series in ("h2d.pinned", "d2h.pinned")}
    both = rate.top("duplex.both")
    return Derived(
        link_efficiency=_over(up, bound),
        duplex_factor=_over(both, up + down) if up and down else None,
        pageable_share=_over(rate.top("h2d.pageable"), pinned["h2d.pinned"]),
        scattered_share=_over(_smallest_scattered(rows), pinned["h2d.pinned"]),
        coalescing_bytes=_coalescing(rows, pinned["h2d.pinned"]),
        pin_seconds_per_gb=_pinning(rows),
        remote_share=_remote(rows),
        together_share=_together(rows),
        copy_slowdown=_beside(rows, "copy"),
        compute_slowdown=_beside(rows, "gemm"),
    )


class _Rates:
    """The rate at the largest size of each series."""

    def __init__(self, rows: Sequence[Measurement]) -> None:
        self._rows = rows

    def top(self, series: str) -> float | None:
        found = [row for row in self._rows if row.series == series and usable(row)]
        if not found:
            return None
        largest = max(found, key=lambda row: row.chunk_bytes * row.n_chunks)
        return None if largest.bandwidth is None else float(largest.bandwidth)


def link_rate(direction: str, rows: Sequence[Measurement], fits: Sequence[SeriesFit]) -> float | None:
    """Return B of a direction where its line is published, else the rate at the largest size."""
    name = f"{direction}.pinned"
    for fit in fits:
        if fit.series == name and fit.published and fit.bandwidth is not None:
            return float(fit.bandwidth)
    return _Rates(rows).top(name)


def _over(part: float | None, whole: object) -> float | None:
    return float(part) / float(whole) if part and isinstance(whole, (int, float)) and whole else None


def _scattered(rows: Sequence[Measurement]) -> list[Measurement]:
    found = [row for row in rows if row.test == "S1" and row.direction == "h2d" and usable(row)]
    return [row for row in found if row.bandwidth is not None]


def _smallest_scattered(rows: Sequence[Measurement]) -> float | None:
    found = _scattered(rows)
    if not found:
        return None
    least = min(row.chunk_bytes for row in found)
    return max(float(row.bandwidth or 0.0) for row in found if row.chunk_bytes == least)


def _coalescing(rows: Sequence[Measurement], contiguous: float | None) -> float | None:
    """Return the smallest chunk that some call-by-call mechanism moves at half of the contiguous rate."""
    if contiguous is None:
        return None
    reached = [
        float(row.chunk_bytes)
        for row in _scattered(rows)
        if row.mechanism.startswith("percall") and float(row.bandwidth or 0) >= HALF * contiguous
    ]
    return min(reached, default=None)


def _pinning(rows: Sequence[Measurement]) -> float | None:
    found = [row for row in rows if row.series == "pin.alloc"]
    if not found:
        return None
    largest = max(found, key=lambda row: row.chunk_bytes)
    return float(largest.median) / float(largest.chunk_bytes) if largest.chunk_bytes else None


def _remote(rows: Sequence[Measurement]) -> float | None:
    """Return the slowest node over the fastest, of copies to the device or else of the CPU's own."""
    for prefix in ("h2d.node", "host.copy.node"):
        rates = [float(row.bandwidth) for row in rows if row.series.startswith(prefix) and row.bandwidth]
        if len(rates) > 1:
            return min(rates) / max(rates)
    return None


def _together(rows: Sequence[Measurement]) -> float | None:
    found = {
        row.series.rpartition(".")[2]: float(row.bandwidth)
        for row in rows
        if row.series.startswith("h2d.together.") and row.bandwidth
    }
    if not found:
        return None
    most = max(found, key=lambda names: names.count("+"))
    alone = sum(found.get(name, 0.0) for name in most.split("+"))
    return found[most] / alone if "+" in most and alone else None


def _beside(rows: Sequence[Measurement], side: str) -> float | None:
    times = {row.series: float(row.median) for row in rows if row.test == "K1"}
    alone, beside = times.get(f"{side}.alone_gemm"), times.get(f"{side}.beside_gemm")
    return alone / beside if alone and beside else None
