"""Commands and groups all of whose options are text or flags; kvcalc reads them with its own units.

Typer from 0.27 on asks pydantic to convert each option, and importing that takes half as long as numpy
does.  There is nothing to convert here, so the conversion is set beforehand; earlier releases do not
look at it.
"""

from typing import Any

from typer.core import TyperCommand, TyperGroup


class _AsTyped:
    """A conversion that leaves the text as typed."""

    def coerce(self, value: Any, **_: Any) -> Any:  # noqa: ANN401 - text, a flag, or several texts
        return value


class _TextOptions:
    """Sets the conversion of every option, `--help` included."""

    def get_params(self, ctx: Any) -> Any:  # noqa: ANN401 - typer's own types differ by release
        parameters = super().get_params(ctx)  # type: ignore[misc]
        for parameter in parameters:
            parameter._runtime_param = _AsTyped()
        return parameters


class Command(_TextOptions, TyperCommand):
    """One command."""


class Group(_TextOptions, TyperGroup):
    """A group of commands."""
