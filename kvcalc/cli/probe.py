"""``kvcalc probe``, ``kvcalc probe compare`` and ``kvcalc probe import``."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from kvcalc.cli.answer import answer, check_format
from kvcalc.cli.options import Format, Save
from kvcalc.cli.parsing import Command, Group
from kvcalc.errors import SettingsError
from kvcalc.probe.measurements import IDS
from kvcalc.probe.options import EVIDENCE, GPU_NOTE, MOST_DEVICE, MOST_SEED, PROFILE

STATUS = (
    "0 measured, 1 a figure fails (with --check), 2 bad input, 3 no GPU was measured (with --require-gpu), "
    "4 other bytes arrived than were sent, 130 interrupted, 143 terminated"
)

Quick = Annotated[bool, typer.Option("--quick", help="At most 60 seconds.")]
Full = Annotated[bool, typer.Option("--full", help="Every size, order and pair of devices.")]
Tests = Annotated[
    list[str] | None,
    typer.Option("--test", metavar="ID", help=f"Only this test: {', '.join(IDS)}. Repeatable."),
]
Device = Annotated[str | None, typer.Option("--device", metavar="N", help="Number of the device [0].")]
HostOnly = Annotated[bool, typer.Option("--host-only", help="Leave GPUs alone.")]
Model = Annotated[
    str | None, typer.Option("--model", metavar="MODEL", help="Measure the sizes in which its KV moves.")
]
Engine = Annotated[
    str | None, typer.Option("--engine", metavar="TEXT", help="Whose blocks the model has [generic].")
]
Tp = Annotated[str | None, typer.Option("--tp", metavar="N", help="GPUs that the model is divided over [1].")]
Base = Annotated[
    str | None,
    typer.Option("--base", metavar="HARDWARE", help="Profile that is calibrated [by the device's name]."),
]
Disk = Annotated[str | None, typer.Option("--disk", metavar="FOLDER", help="Where the disk is measured [.].")]
DiskBytes = Annotated[
    str | None,
    typer.Option("--disk-bytes", metavar="BYTES", help="Its temporary file, e.g. '16 GiB' [1 GiB at most]."),
]
MaxSeconds = Annotated[
    str | None, typer.Option("--max-seconds", metavar="TIME", help="Deadline for all tests, e.g. '2 min'.")
]
Seed = Annotated[str, typer.Option("--seed", metavar="N", help="Of contents and orders.")]
Evidence = Annotated[str, typer.Option("--evidence", metavar="FILE", help="Where the evidence goes.")]
Profile = Annotated[str, typer.Option("--profile", metavar="FILE", help="Where the profile goes.")]
Check = Annotated[bool, typer.Option("--check", help="Exit with 1 when a figure fails.")]
RequireGpu = Annotated[bool, typer.Option("--require-gpu", help="Exit with 3 when no GPU was measured.")]
File = Annotated[str, typer.Argument(metavar="FILE", help="What nvbandwidth or fio wrote: text or JSON.")]


def register(app: typer.Typer) -> None:
    """Add the command group to the application."""
    group = typer.Typer(cls=Group, invoke_without_command=True)
    group.callback()(probe)
    group.command("compare", cls=Command)(compare)
    group.command("import", cls=Command)(import_file)
    app.add_typer(group, name="probe")


def probe(
    ctx: typer.Context,
    quick: Quick = False,
    full: Full = False,
    test: Tests = None,
    device: Device = None,
    host_only: HostOnly = False,
    model: Model = None,
    engine: Engine = None,
    tp: Tp = None,
    base: Base = None,
    disk: Disk = None,
    disk_bytes: DiskBytes = None,
    max_seconds: MaxSeconds = None,
    seed: Seed = "1",
    evidence: Evidence = EVIDENCE,
    profile: Profile = PROFILE,
    check: Check = False,
    require_gpu: RequireGpu = False,
    format: Format = "table",
    save: Save = None,
) -> None:
    """Measure what this machine's links really deliver, and write evidence and a profile."""
    if ctx.invoked_subcommand is not None:
        return
    from kvcalc.probe.command import Places, UnwrittenError, status_of
    from kvcalc.probe.command import probe as measure
    from kvcalc.probe.files import check_apart, check_folder
    from kvcalc.probe.options import Options
    from kvcalc.probe.progress import line

    check_format(format)
    check_folder(save, "--save")
    check_apart({"--evidence": evidence, "--profile": profile, "--save": save})
    if quick and full:
        raise SettingsError("--quick and --full say two different things")
    if model is None and (engine is not None or tp is not None):
        raise SettingsError(f"{'--tp' if engine is None else '--engine'} is of a model; name --model too")
    if disk is not None and not disk.strip():
        raise SettingsError("--disk: the name of the folder is empty")
    options = Options(
        level="quick" if quick else "full" if full else "default",
        tests=tuple(name.upper() for name in test or ()),
        device=None if device is None else _whole(device, "--device", MOST_DEVICE),
        host_only=host_only,
        disk=Path(disk or "."),
        disk_named=disk is not None,
        disk_bytes=None if disk_bytes is None else int(_quantity(disk_bytes, "--disk-bytes", "byte")),
        max_seconds=None if max_seconds is None else _quantity(max_seconds, "--max-seconds", "second"),
        seed=_whole(seed, "--seed", MOST_SEED),
        pieces=_pieces(model, engine, tp),
        model=_model_name(model),
    )
    try:
        with line() as tell:
            result = measure(options, Places(evidence, profile, base), tell)
    except UnwrittenError as error:
        answer(error.result, format, save)
        raise
    answer(result, format, save)
    raise typer.Exit(status_of(result, check, require_gpu))


probe.__doc__ = (
    f"{probe.__doc__}\n\n    {GPU_NOTE}\n\n    Exit status: {STATUS}.\n\n"
    "    Example: kvcalc probe --quick --model llama-3.1-8b\n    "
)


def _pieces(model: str | None, engine: str | None, tp: str | None) -> Mapping[str, float]:
    if model is None:
        return {}
    from kvcalc.catalog.scenarios import Question, Said
    from kvcalc.probe.asked import pieces_of

    told = {"engine": (engine, "--engine"), "tp": (tp, "--tp")}
    said = {name: Said(value, where) for name, (value, where) in told.items() if value is not None}
    return pieces_of(Question(model, None, said, {}, {}))


def _model_name(model: str | None) -> str | None:
    from kvcalc.probe.asked import model_name

    return model_name(model)


def _whole(text: str, option: str, most: int) -> int:
    if not (text.isascii() and text.isdigit() and int(text) < most):
        raise SettingsError(f"{option}: {text!r:.40} is not a whole number below {most}")
    return int(text)


def _quantity(text: str, option: str, unit: str) -> float:
    from kvcalc.errors import UnitError
    from kvcalc.units import to_base

    try:
        return to_base(text, unit)
    except UnitError as error:
        raise UnitError(f"{option}: {error}") from None


def compare(
    first: Annotated[str, typer.Argument(metavar="A", help="Evidence of an earlier probe.")],
    second: Annotated[str, typer.Argument(metavar="B", help="Evidence of a later one.")],
    format: Format = "table",
    save: Save = None,
) -> None:
    """Put two probes side by side: what changed by more than both say they are sure of.

    Example: kvcalc probe compare before.json after.json
    """
    from kvcalc.probe.compare import compared_files
    from kvcalc.probe.files import check_apart, check_folder

    check_format(format)
    check_folder(save, "--save")
    check_apart({"--save": save}, [first, second])
    answer(compared_files(first, second), format, save)


def import_file(
    file: File,
    profile: Annotated[
        str | None, typer.Option("--profile", metavar="FILE", help="Write a calibrated profile, with --base.")
    ] = None,
    evidence: Annotated[
        str | None, typer.Option("--evidence", metavar="FILE", help="Write the measurements as evidence.")
    ] = None,
    base: Base = None,
    format: Format = "table",
    save: Save = None,
) -> None:
    """Read what nvbandwidth or fio measured, as measurements of a probe.

    Example: kvcalc probe import nvbandwidth.json --base h100-sxm-80gb --profile ./h100.yaml
    """
    from kvcalc.probe.files import check_apart, check_folder
    from kvcalc.probe.imported import imported

    check_format(format)
    check_folder(save, "--save")
    check_apart({"--evidence": evidence, "--profile": profile, "--save": save}, [file])
    answer(imported(file, evidence, profile, base), format, save)
