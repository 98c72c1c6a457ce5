"""Options made from the one table of keys, so that a name means the same in every command."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Annotated, Any

import typer

from kvcalc.catalog.said import Question, Said, tier_option
from kvcalc.errors import SettingsError
from kvcalc.keys import Key, keys_of

Format = Annotated[str, typer.Option("--format", metavar="table|json|csv|markdown", help="How to print.")]
WORKBOOKS = (".xls", ".xlsx", ".xlsm", ".ods")
"""Endings of spreadsheets' own files, which no text may be saved under."""


def no_workbook(save: str | None) -> str | None:
    """Refuse a file that a spreadsheet could not open, before any work is done."""
    if save is not None and save.lower().endswith(WORKBOOKS):
        raise SettingsError(
            f"--save {save}: is the name of a workbook; `kvcalc export FILE -o plan.xlsx` writes one, "
            "--format csv --save FILE.csv a table that spreadsheets read"
        )
    return save


Save = Annotated[
    str | None,
    typer.Option("--save", metavar="FILE", help="Write to a file instead of stdout.", callback=no_workbook),
]
Explain = Annotated[bool, typer.Option("--explain", help="Each formula with this run's numbers put in.")]


def machine_names(incomplete: str) -> list[str]:
    """Return the machines that a shell completes to."""
    from kvcalc.catalog import hardware

    return [name for name in hardware.names() if name.startswith(incomplete)]


def model_names(incomplete: str) -> list[str]:
    """Return the models that a shell completes to."""
    from kvcalc.catalog import models

    return [name for name in models.names() if name.startswith(incomplete)]


On = Annotated[
    str | None,
    typer.Option(
        "--on",
        metavar="HARDWARE",
        help="Hardware profile: a name or a path.",
        autocompletion=machine_names,
    ),
]
Planned = Annotated[
    str,
    typer.Argument(
        metavar="MODEL|FILE", help="A model, or a scenario file (.yaml).", autocompletion=model_names
    ),
]
PlannedOrLaunched = Annotated[
    str | None,
    typer.Argument(
        metavar="MODEL|FILE",
        help="A model, or a scenario file (.yaml); not needed where --check-config names the model.",
        autocompletion=model_names,
    ),
]
Tiers = Annotated[
    list[str] | None,
    typer.Option(
        "--tier",
        metavar="NAME=SIZE@RATE",
        help="A slower tier, e.g. 'dram=512 GB@54 GB/s' or @40..54 GB/s. Repeatable.",
    ),
]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Replace any hardware profile value. Repeatable."),
]

_METAVARS = {
    "text": "TEXT",
    "integer": "N",
    "tokens": "TOKENS",
    "share": "SHARE",
    "number": "NUMBER",
    "byte": "BYTES",
    "second": "TIME",
    "token/second": "TOKENS/S",
    "byte/second": "RATE",
    "1/second": "PER SECOND",
    "USD/second": "USD/TIME",
}


def keyed(command: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options of every key it takes; it receives them as one mapping `said`."""

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        keys = keys_of(command)
        own = inspect.signature(function)

        def wrapper(**values: Any) -> None:  # noqa: ANN401 - one value per option
            said = {
                item.name: Said(values[item.name], item.option)
                for item in keys
                if values.get(item.name) is not None
            }
            chosen = {name: value for name, value in values.items() if name in own.parameters}
            function(said=said, **chosen)

        parameters = [item for item in own.parameters.values() if item.name != "said"]
        parameters += [_parameter(item) for item in keys]
        # Positional arguments, which have no default of their own kind, come first in a signature.
        shown = [item.replace(kind=inspect.Parameter.KEYWORD_ONLY) for item in parameters]
        return _in_disguise(wrapper, function, shown)

    return decorate


def grouped(name: str, kind: type[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command an option for each field of a record, which it receives as the one parameter `name`."""

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        own, members = inspect.signature(function), fields(kind)

        def wrapper(**values: Any) -> None:  # noqa: ANN401 - one value per option
            said = {item.name: values.pop(item.name) for item in members}
            function(**values, **{name: kind(**said)})

        parameters: list[inspect.Parameter] = []
        for parameter in own.parameters.values():
            if parameter.name != name:
                parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))
                continue
            parameters += [
                inspect.Parameter(
                    item.name, inspect.Parameter.KEYWORD_ONLY, default=item.default, annotation=item.type
                )
                for item in members
            ]
        return _in_disguise(wrapper, function, parameters)

    return decorate


def _in_disguise(
    wrapper: Callable[..., None], function: Callable[..., None], parameters: Sequence[inspect.Parameter]
) -> Callable[..., None]:
    """Return the wrapper with the parameters that typer is to see, and the function's name and help."""
    wrapper.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    wrapper.__annotations__ = {item.name: item.annotation for item in parameters}
    wrapper.__doc__ = function.__doc__
    wrapper.__name__ = function.__name__
    return wrapper


def _parameter(item: Key) -> inspect.Parameter:
    annotation: Any
    if item.kind == "flag":
        names = f"{item.option}/--no-{item.option.removeprefix('--')}"
        annotation = Annotated[bool | None, typer.Option(names, help=item.help)]
    else:
        metavar = _METAVARS[item.unit or item.kind]
        annotation = Annotated[str | None, typer.Option(item.option, metavar=metavar, help=item.help)]
    return inspect.Parameter(item.name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


def question(
    model: str | None,
    hardware: str | None,
    said: Mapping[str, Said],
    tiers: list[str] | None = None,
    replaced: list[str] | None = None,
) -> Question:
    """Return what the options said as a question."""
    return Question(
        model=model,
        hardware=hardware,
        said=said,
        tiers=_tiers(tiers or ()),
        replaced=assignments(replaced),
    )


def _tiers(texts: Sequence[str]) -> dict[str, Mapping[str, Said]]:
    tiers: dict[str, Mapping[str, Said]] = {}
    for text in texts:
        name, said = tier_option(text)
        if name in tiers:
            raise SettingsError(f"--tier {text!r}: {name} is given twice")
        tiers[name] = said
    return tiers


def assignments(texts: list[str] | None) -> dict[str, Said]:
    """Return what `--set KEY=VALUE` options say, by key."""
    return dict(_assignment(text) for text in texts or ())


def _assignment(text: str) -> tuple[str, Said]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip() or not value.strip():
        raise SettingsError(f"--set {text!r}: write KEY=VALUE, e.g. host_to_device.bandwidth='20 GB/s'")
    return name.strip(), Said(value.strip(), f"--set {name.strip()}")
