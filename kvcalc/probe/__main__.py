"""``python -m kvcalc.probe``: for a machine with Python, numpy and torch and nothing else.

The same measurements, evidence and profile as ``kvcalc probe``, without typer, pint or yaml.
"""

import argparse
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import NoReturn

from kvcalc.catalog.scenarios import Question
from kvcalc.errors import KvcalcError, SettingsError, did_you_mean
from kvcalc.probe.asked import model_name, pieces_of
from kvcalc.probe.command import Places, UnwrittenError, probe, status_of
from kvcalc.probe.options import EVIDENCE, GPU_NOTE, MOST_DEVICE, MOST_SEED, PROFILE, Options
from kvcalc.probe.progress import line
from kvcalc.probe.results import ProbeResult

BAD_INPUT, INTERRUPTED = 2, 130


class Parser(argparse.ArgumentParser):
    """Options whose errors are one line, as everywhere else."""

    def error(self, message: str) -> NoReturn:
        """Refuse what was said."""
        head, _, said = message.partition(": ")
        if head == "unrecognized arguments":
            word = said.split()[0].partition("=")[0]
            raise SettingsError(
                f"no such option: {word}{did_you_mean(word, list(self._option_string_actions))}"
            )
        raise SettingsError(message.removeprefix("argument "))


def below(most: int) -> Callable[[str], int]:
    """Return what reads a whole number below a limit."""

    def read(text: str) -> int:
        if not (text.isascii() and text.isdigit() and int(text) < most):
            raise argparse.ArgumentTypeError(f"{text!r:.40} is not a whole number below {most}")
        return int(text)

    return read


TIMES: Mapping[str, float] = MappingProxyType({"s": 1.0, "ms": 1e-3, "min": 60.0})
BYTES: Mapping[str, float] = MappingProxyType(
    {"B": 1.0} | {f"{letter}iB": 2.0 ** (10 * (at + 1)) for at, letter in enumerate("KMGT")}
    | {f"{letter}B": 1e3 ** (at + 1) for at, letter in enumerate("kMGT")}
)  # fmt: skip
"""Units that are known without pint, in seconds and in bytes."""


def quantity(units: Mapping[str, float]) -> Callable[[str], float]:
    """Return what reads a number with a unit; a bare number is in the first one."""

    def read(text: str) -> float:
        match = re.fullmatch(r"\s*([0-9.]+(?:[eE][+-]?[0-9]+)?)\s*([A-Za-z]*)\s*", text)
        try:
            return float(match[1]) * units[match[2] or next(iter(units))] if match else float("bad")
        except (KeyError, ValueError):
            known = ", ".join(units)
            raise argparse.ArgumentTypeError(f"{text!r:.40} is not a number with one of {known}") from None

    return read


def parser() -> Parser:
    """Return the options, named as those of ``kvcalc probe``."""
    found = Parser(
        prog="python -m kvcalc.probe",
        allow_abbrev=False,
        description=f"What this machine's links really deliver. {GPU_NOTE}",
    )
    add = found.add_argument
    level = found.add_mutually_exclusive_group().add_argument
    level("--quick", action="store_true", help="at most 60 seconds")
    level("--full", action="store_true", help="every size, order and pair of devices")
    add("--test", action="append", default=[], metavar="ID", help="only this test; repeatable")
    add("--device", type=below(MOST_DEVICE), metavar="N", help="number of the device [0]")
    add("--host-only", action="store_true", help="leave GPUs alone")
    add("--model", metavar="MODEL", help="measure the sizes in which this model's KV moves")
    add("--base", metavar="HARDWARE", help="built-in profile that is calibrated [by the device's name]")
    add("--disk", metavar="FOLDER", help="folder of the disk test [.]")
    add("--disk-bytes", type=quantity(BYTES), metavar="BYTES", help="its temporary file, e.g. '16 GiB'")
    add("--max-seconds", type=quantity(TIMES), metavar="TIME", help="deadline for all tests, e.g. '2 min'")
    add("--seed", type=below(MOST_SEED), default=1, metavar="N", help="of contents and orders [1]")
    add("--evidence", default=EVIDENCE, metavar="FILE", help=f"where the evidence goes [{EVIDENCE}]")
    add("--profile", default=PROFILE, metavar="FILE", help=f"where the profile goes [{PROFILE}]")
    add("--check", action="store_true", help="exit 1 where a figure fails")
    add("--require-gpu", action="store_true", help="exit 3 where no GPU was measured")
    add("--format", choices=("table", "json", "csv", "markdown"), default="table")
    return found


def options_of(said: argparse.Namespace) -> Options:
    """Return what was asked for."""
    level = "quick" if said.quick else "full" if said.full else "default"
    pieces = pieces_of(Question(said.model, None, {}, {}, {}))
    return Options(
        level=level,
        tests=tuple(name.upper() for name in said.test),
        device=said.device,
        host_only=said.host_only,
        disk=Path(said.disk or "."),
        disk_named=said.disk is not None,
        disk_bytes=None if said.disk_bytes is None else int(said.disk_bytes),
        max_seconds=said.max_seconds,
        seed=said.seed,
        pieces=pieces,
        model=model_name(said.model),
    )


def _show(result: ProbeResult, said: argparse.Namespace) -> None:
    from kvcalc.output import render

    sys.stdout.write(render(result, said.format).rstrip("\n") + "\n")


def run(arguments: Sequence[str]) -> int:
    """Probe, print, and return the exit status."""
    try:
        said = parser().parse_args(arguments)
        with line() as tell:
            result = probe(options_of(said), Places(said.evidence, said.profile, said.base), tell)
        _show(result, said)
    except KvcalcError as error:
        if isinstance(error, UnwrittenError):
            _show(error.result, said)
        sys.stderr.write(f"kvcalc: {' '.join(str(error).split())}\n")
        return BAD_INPUT
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:
        # A bug of ours, or a broken copy of the package: one line, as everywhere else.
        sys.stderr.write(f"kvcalc: internal error ({type(error).__name__}: {' '.join(str(error).split())})\n")
        return BAD_INPUT
    return status_of(result, said.check, said.require_gpu)


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
