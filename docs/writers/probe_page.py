"""docs/probe.md: what a probe measures, how it is timed, its gates, flags and usual ranges."""

import json
from pathlib import Path
from typing import Any

from docs.writers.markdown import code, document, prose, table
from kvcalc.output.format import human
from kvcalc.probe import fit, statistics
from kvcalc.probe.flags import FLAGS
from kvcalc.probe.imported import LEAST_SHARE
from kvcalc.probe.measurements import TESTS
from kvcalc.probe.measurements.disk_reads import CACHE_RATE
from kvcalc.probe.options import GPU_NOTE, SAMPLES
from kvcalc.probe.profile_disk import LARGE_READ, SMALL_READ
from kvcalc.probe.verdicts import expected

COVERAGE = Path(__file__).resolve().parents[1] / "probe_coverage.json"

_NEEDS = {"nothing": "", "device": "a GPU", "devices": "two GPUs or more", "disk": "a folder on a disk"}

_GATES = (
    ("sizes", f"at least {fit.LEAST_RUNGS}, the largest {fit.LEAST_SPAN:g} times the smallest"),
    ("samples of a size", f"at least {statistics.ORDER_SAMPLES}, to see two groups in them"),
    ("weighted R squared", f"at least {fit.LEAST_R2}"),
    ("share of the time that s/B takes at the largest size", f"at least {fit.LEAST_STREAM:.0%}"),
    ("rate at the largest size", f"within {fit.TOP_NEAR:.0%} of B"),
    ("B", f"not above the physical limit; up to {fit.BOUND_SLACK - 1:.0%} over it is noise and cut to it"),
    ("intervals", f"at most {fit.WIDEST:.0%} on either side; else t0 or the whole line is left out"),
    ("one straight line", f"no knee (F above {fit.KNEE_F:g}) and no cap; else both pieces are given"),
    (
        "samples",
        f"not in two groups, not drifting by more than {statistics.DRIFT:.0%}, scatter up to "
        f"{statistics.USABLE:.0%}; a smaller drift that stands out of the noise widens the intervals",
    ),
)


def page() -> str:
    """Return the page."""
    tests = [
        [code(test.id), prose(test.title), _NEEDS[test.needs], *(_seconds(test, level) for level in SAMPLES)]
        for test in TESTS
    ]
    counts = [f"{count} at the {level} level" for level, count in SAMPLES.items()]
    flags = [[code(name), flag.severity, prose(flag.meaning)] for name, flag in FLAGS.items()]
    return document(
        "Probe",
        "the code in `kvcalc/probe`",
        _INTRO.format(not_verified=GPU_NOTE),
        _BARE,
        "## What is measured",
        f"Samples of each size: {', '.join(counts)}. The last columns are the deadlines in seconds.",
        table(["test", "measures", "needs", *SAMPLES], tests, "lllrrr"),
        "## How it is timed",
        _TIMING,
        "## When a line is published",
        _LINE,
        table(["gate", "asked"], [list(map(prose, gate)) for gate in _GATES]),
        *_coverage(),
        "## Flags",
        table(["flag", "severity", "meaning"], flags),
        "## Usual ranges",
        _RANGES,
        table(["check", "usual", "fails below", "where from"], [_range(row) for row in expected()]),
        "## The profile, and what a plan says of it",
        _PROFILE,
        "## Other tools",
        _TOOLS.format(
            least=LEAST_SHARE, large=LARGE_READ // 2**10, small=SMALL_READ // 2**10, cache=CACHE_RATE / 1e9
        ),
        "## What is not in the files",
        _REDACTED,
    )


_INTRO = """`kvcalc probe` measures this machine and writes evidence (`probe.json`) and a hardware
profile (`probe.yaml`) that `--on ./probe.yaml` takes. **{not_verified}** `tests/gpu/check.sh` runs it
on one GPU in under three minutes, checks what it found, and leaves both files in `hardware/probes`."""

_BARE = """A machine with Python, numpy and torch alone runs `python -m kvcalc.probe`; the profile it
writes is JSON, which is valid YAML. Without torch or a GPU host memory and disk are measured, and the
CPU is the device of the profile. Intel XPU and Apple MPS use the same calls of torch and are untested."""

_TIMING = """Links and kernels are timed by events on a queue of their own, which is held until all
copies of a sample are in it; a sample whose start has passed before is repeated with a longer hold,
else flagged `launch_bound` and kept out of the fit. Scattered copies, pinning, host memory and disk are
timed by the host's clock, with the time that queueing took beside it. Sizes are sampled in turns, one
sample of each in a pass, after a warm-up that ends when three medians agree within 2 %, or after three
seconds or a third of the time of the series. Content is compared after the timed part, with the target
spoiled before, and of a disk one more read of each size; a size whose content is wrong is in no
fit. Medians have MADs and 95 % intervals, and all samples are kept.

Host memory is copied between pages of the size that the system gives to every program, as STREAM, torch and
engines have them; numpy's own arrays ask for huge pages. The default and the full level measure those too
(`host.huge_pages`), to show what asking for them gives; the profile has the ordinary ones.
`benchmarks/probe_stream.py` holds the copy against STREAM's, compiled from C: gcc makes a call of memcpy of
its loop, as numpy does, unless it is told not to.

A disk is read past the cache at random places, so many reads under way as threads read. The threads are
Python's: beyond about 200,000 reads a second they are the limit, which the flag `cpu_bound` says."""

_LINE = """t(s) = t0 + s/B is fitted to the medians with weights of equal relative error. It is
published only where every gate holds; else the table of sizes stands alone, and the profile has the
rate at the largest size."""

_RANGES = """A figure outside of the usual range warns, and one below the second limit fails;
provisional ranges only warn."""

_PROFILE = """Measured values are `measured`, with their range, and keep the value that they stand
instead of under `before`. Peaks, power and efficiencies are quoted from the built-in profile that the
device's name and memory point to (`--base` names another). Decode's share of the data sheet's bandwidth
is restated on the measured one, so that their product stays, at most all of it. What one of many scattered
copies costs (S1, a call each) becomes the cost of a piece of those mechanisms that make a call for each piece
of KV, in place of the published one. `kvcalc plan` on such a
profile shows every verdict with the values before and with the measured ones, and what is still assumed
(`calibration` in its JSON); a value of which nothing was known before stands there without one."""

_TOOLS = """`kvcalc probe import FILE` reads nvbandwidth's text and JSON (versions 0.4 to 0.10: N/A
cells, waived tests, CPU nodes) and fio's JSON; with `--base HARDWARE --profile FILE` it writes a
calibrated profile, which names the tool, its version and, where the file tells it, the day of the run. A
broken file is refused with its line, and so are a text of nvbandwidth whose matrix does not add up to the
line `SUM` under it, a test that is in it twice, a file of another machine than the base, and a rate above the
base's link by more than 3%. A rate below {least:.0%} of that link is taken, with a warning that asks for the
unit.

Of fio's jobs, those that ran at the same time (the clones of `numjobs`, and jobs without `stonewall` or
`wait_for`; newer files tell the times) are added where they read alike; where they do not, they tell no
latency. A disk's rate is that of its largest direct reads ({large} KiB or more), random or in sequence, as
the note says; its latency that of random reads of at most {small} KiB with one under way, its requests per
second those of the smallest random reads. Engines of system calls (`psync`) have one under way whatever
`iodepth` says. Left out, with a warning: jobs that failed, whose blocks differ in size (`bssplit`, `bsrange`)
or that were held back (`rate`, `thinktime`). Buffered reads and rates above {cache:g} GB/s are of a cache and
in no profile. What the file lacks is left out.

`kvcalc probe compare A B` says which figures of two evidence files differ by more than both intervals
allow, which of them have flags such as `unstable`, and what else differs: a partial file, level, version,
tool, devices, the file on the disk."""

_REDACTED = """No host name, user, serial number, device UUID, bus address or path. The evidence
follows [a JSON Schema](../kvcalc/schemas/probe-1.json); a killed probe leaves a valid file with
`complete: false`."""


def _seconds(test: Any, level: str) -> str:  # noqa: ANN401
    seconds = test.seconds.get(level)
    return "" if seconds is None else f"{seconds:g}"


def _range(row: dict[str, Any]) -> list[str]:
    low, high = (human(end, row["unit"], share=row["unit"] == "1") for end in row["good"])
    fails = (
        "only warns" if row.get("provisional") else human(row["fair"], row["unit"], share=row["unit"] == "1")
    )
    return [code(row["id"]), f"{low} to {high}", fails, prose(row["source"])]


def _coverage() -> list[str]:
    """Return what `benchmarks/probe_coverage.py` counted."""
    body = json.loads(COVERAGE.read_text(encoding="utf-8"))
    rows = [
        [
            f"{row['samples']}",
            f"{row['noise']:.1%}",
            f"{row['drift']:.0%}" if row["drift"] else "",
            *(f"{row[name]:.1%}" for name in ("published", "t0", "bandwidth", "both")),
            f"{row['widest']:.1%}",
        ]
        for row in (*body["coverage"], *body["slow"])
    ]
    faults = [[code(row["flag"]), f"{row['flagged']:.1%}", f"{row['refused']:.1%}"] for row in body["faults"]]
    trials = body["coverage"][0]["trials"]
    lead = f"""`benchmarks/probe_coverage.py`: {trials} simulated links for each row, with t0 of 2 to 20 us
and B of 3 to 100 GB/s drawn at random. The last column is the widest half-width of any interval. A link that
slows down while it is measured counts as right where the rates of its first and its last copy both lie
inside; a drift that the noise hides is not seen, and then the interval holds the rate in the middle of the
run."""
    return [
        "### How often the intervals are right",
        lead,
        table(
            ["samples", "noise", "drift", "published", "t0 inside", "B inside", "both inside", "widest"],
            rows,
            "rrrrrrrr",
        ),
        "Simulated links with a fault, at a noise of 1 %:",
        table(["fault", "flagged", "refused"], faults, "lrr"),
    ]
