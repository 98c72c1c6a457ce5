"""The page of `kvcalc probe`: each figure beside what is usual, then what did not run, and where it lies."""

from collections.abc import Iterator
from dataclasses import replace

from kvcalc.output.fields import text
from kvcalc.output.format import bytes_text, human, range_text
from kvcalc.output.page import Cell, Grid, Lines, Page, Style, grid
from kvcalc.output.pages.footer import remarks
from kvcalc.probe.results import Check, Measurement, ProbeResult, SeriesFit

_STYLES: dict[str, Style] = {"pass": "good", "warn": "warn", "fail": "bad", "skip": "dim"}
_STATUS: dict[str, Style] = {"ok": "good", "unstable": "warn", "failed": "bad"}
_MOST_FLAGS = 3


def page(result: ProbeResult) -> Page:
    """Return the figures, the checks, and the tests that have something to say."""
    blocks: list[Grid | Lines] = [
        *_lines_of_fits(result),
        _figures(result),
        *_scattered(result),
        *_derived(result),
        *_checks(result),
        *_tests(result),
        *_where(result),
        *remarks(result),
    ]
    return Page(_title(result), tuple(blocks))


def _title(result: ProbeResult) -> str:
    if result.kind == "imported":
        return f"What {result.inputs['tool']} measured"
    names = " and ".join(dict.fromkeys(device.name for device in result.machine.devices))
    what = names or f"{result.machine.environment.cpu}, host and disk only"
    return f"Probe of {what} ({result.level} level, {result.created[:10]})"


def _lines_of_fits(result: ProbeResult) -> tuple[Grid, ...]:
    rows: list[tuple[Cell | str, ...]] = [_fit(fit) for fit in result.fits]
    if not rows:
        return ()
    header = ("series", "rate", "95 %", "fixed time", "95 %", "half speed at", "")
    found = grid("Time of one copy = fixed time + bytes / rate", header, "lrrrrrl", rows)
    return (replace(found, wide="under"),)


def _fit(fit: SeriesFit) -> tuple[Cell | str, ...]:
    if not fit.published or fit.bandwidth is None or fit.bandwidth_range is None:
        return (fit.series, "no line", "", "", "", "", Cell(fit.reason, "warn"))
    low, high = map(float, fit.bandwidth_range)
    return (
        fit.series,
        Cell(human(float(fit.bandwidth), "byte/second"), "bold"),
        range_text(low, high, "byte/second"),
        "" if fit.t0 is None else human(float(fit.t0), "second"),
        "" if fit.t0_range is None else range_text(float(fit.t0_range[0]), float(fit.t0_range[1]), "second"),
        "" if fit.half_size is None else bytes_text(float(fit.half_size)),
        fit.reason,
    )


def _figures(result: ProbeResult) -> Grid:
    """Return one row a series: its largest size, and of scattered chunks every size."""
    chosen: dict[tuple[str, int | None, float], Measurement] = {}
    for row in result.measurements:
        if row.test == "S1":
            continue
        key = row.series, row.device, float(row.chunk_bytes) if row.test == "Z1" else 0.0
        if (
            key not in chosen
            or row.chunk_bytes * row.n_chunks > chosen[key].chunk_bytes * chosen[key].n_chunks
        ):
            chosen[key] = row
    rows: list[tuple[Cell | str, ...]] = [
        (
            row.series if row.device in (None, 0) else f"{row.series} (device {row.device})",
            "" if not row.chunk_bytes else bytes_text(float(row.chunk_bytes)),
            "" if row.n_chunks == 1 else human(float(row.n_chunks), "1"),
            Cell("" if row.bandwidth is None else human(float(row.bandwidth), "byte/second"), "bold"),
            _median(row),
            "" if not row.median or row.mad is None else human(float(row.mad / row.median), "1", share=True),
            "" if row.counted in ("none", "one_way") else row.counted.replace("_", " "),
            ", ".join(row.flags[:_MOST_FLAGS]),
        )
        for row in chosen.values()
    ]
    header = ("series", "size", "pieces", "rate", "median", "scatter", "counted", "flags")
    return replace(
        grid(
            "Measured, at the largest size of each series, of a disk at every size", header, "lrrrrrll", rows
        ),
        wide="under",
    )


def _median(row: Measurement) -> str:
    """Return the time of one operation; of many reads at once, which none of them took, how many a second."""
    if row.test == "Z1" and float(row.in_flight) > 1:
        return f"{human(1 / float(row.median), '1')} a second" if row.median else ""
    return human(float(row.median), "second")


_WAYS = {"h2d": "host to device", "d2h": "device to host"}


def _scattered(result: ProbeResult) -> Iterator[Grid]:
    """Yield one grid a direction: chunk sizes down, mechanisms across."""
    for direction, way in _WAYS.items():
        found = [row for row in result.measurements if row.test == "S1" and row.direction == direction]
        names = list(dict.fromkeys(_mechanism(row) for row in found))
        rates = {(row.chunk_bytes, _mechanism(row)): row.bandwidth for row in found}
        rows: list[tuple[Cell | str, ...]] = [
            (bytes_text(float(size)), *(_rate(rates.get((size, name))) for name in names))
            for size in sorted({row.chunk_bytes for row in found})
        ]
        if rows:
            note = "By the host's clock, with what queueing the copies costs."
            header = ("chunk", *names)
            yield grid(f"Scattered chunks, {way}", header, "r" * len(header), rows, (note,))


def _mechanism(row: Measurement) -> str:
    return f"{row.mechanism.replace('_', ' ')}, {row.order}"


def _rate(value: float | None) -> str:
    return "" if value is None else human(float(value), "byte/second")


_DERIVED = {
    "link_efficiency": "of what the link carries, large copies reach",
    "duplex_factor": "of both one-way rates together, copies both ways at once reach",
    "pageable_share": "of the pinned rate, pageable memory reaches",
    "scattered_share": "of the contiguous rate, the smallest chunks reach by the best mechanism",
    "coalescing_bytes": "is the smallest chunk that single copies move at half of the contiguous rate",
    "remote_share": "of the nearer node's rate, the farther one reaches",
    "together_share": "of their rates alone, all devices keep together",
    "copy_slowdown": "of its rate alone, a copy keeps beside matrix products",
    "compute_slowdown": "of their rate alone, matrix products keep beside a copy",
}


def _derived(result: ProbeResult) -> Iterator[Lines]:
    lines = [
        f"{text(result.derived, name)} {words}."
        for name, words in _DERIVED.items()
        if getattr(result.derived, name) is not None
    ]
    if lines:
        yield Lines("What follows", tuple(lines), bullet=True)


def _checks(result: ProbeResult) -> tuple[Grid, ...]:
    rows: list[tuple[Cell | str, ...]] = [
        (Cell(check.verdict, _STYLES[check.verdict]), check.id, _value(check), _usual(check), check.detail)
        for check in result.checks
    ]
    if not rows:
        return ()
    found = grid("Held against what is usual", ("", "check", "here", "usual", "why"), "llrrl", rows)
    return (replace(found, wide="under"),)


def _value(check: Check) -> str:
    return "" if check.measured is None else human(float(check.measured), check.unit)


def _usual(check: Check) -> str:
    if check.expected is None or check.expected[0] == check.expected[1]:
        return ""
    return range_text(float(check.expected[0]), float(check.expected[1]), check.unit)


def _tests(result: ProbeResult) -> Iterator[Grid]:
    rows: list[tuple[Cell | str, ...]] = [
        (test.id, test.title, Cell(test.status, _STATUS.get(test.status, "dim")), test.reason)
        for test in result.tests
        if (test.status != "ok" or test.reason) and test.reason != "no device"
    ]
    without = [test.id for test in result.tests if test.reason == "no device"]
    if without:
        rows.append((", ".join(without), "links and memory of a GPU", Cell("skipped", "dim"), "no device"))
    if rows:
        found = grid("Left out, or with something to say", ("test", "measures", "", "why"), "llll", rows)
        yield replace(found, wide="under")


def _where(result: ProbeResult) -> Iterator[Lines]:
    if result.profile is not None:
        yield Lines(
            "",
            (f"The profile is in {result.profile}: kvcalc plan MODEL --on {_as_path(result.profile)}",),
        )


def _as_path(name: str) -> str:
    return name if "/" in name else f"./{name}"
