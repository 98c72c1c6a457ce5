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


STATUS = "0 answered, 2 bad input, 130 interrupted"
"""What the exit status of a command means."""

CHECKED_STATUS = "0 answered, 1 does not fit (with --check), 2 bad input, 130 interrupted"
"""The same of a command that has `--check`."""

_EXAMPLE = "Example: "


class Command(_TextOptions, TyperCommand):
    """One command; its help ends with its examples, each on a line that can be copied."""

    def format_help_text(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401 - typer's own types
        """Write the text without its examples."""
        text, self.help = self.help, _without_examples(self.help or "")
        try:
            super().format_help_text(ctx, formatter)
        finally:
            self.help = text

    def format_epilog(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401 - typer's own types
        """Write the examples and the exit status."""
        examples = _examples(self.help or "")
        if examples:
            _section(formatter, "Examples", examples)
        checks = any("--check" in parameter.opts for parameter in self.params)
        _section(formatter, "Exit status", [CHECKED_STATUS if checks else STATUS])


class Group(_TextOptions, TyperGroup):
    """A group of commands."""


class Overview(Group):
    """All commands on one screen of 80 columns and 24 lines."""

    def format_help(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401 - typer's own types
        """Write a line a command, and how to go on."""
        formatter.write(f"Usage: kvcalc COMMAND [OPTIONS] [ARGS]...\n{self.help}\n\nCommands:\n")
        names = self.list_commands(ctx)
        width = max(map(len, names)) + 2
        for name in names:
            command = self.get_command(ctx, name)
            summary = (command.short_help or command.help or "").partition("\n")[0] if command else ""
            formatter.write(_cut(f"  {name:{width}}{summary}", formatter.width + 2) + "\n")
        formatter.write(
            "\nOptions: --version, --help, --install-completion, --show-completion\n"
            "All of a command: kvcalc COMMAND --help\n"
            f"{self.epilog}\n"
        )


def _cut(line: str, width: int) -> str:
    return line if len(line) <= width else line[: width - 3].rstrip(" ,;") + "..."


def _section(formatter: Any, title: str, lines: list[str]) -> None:  # noqa: ANN401 - typer's own type
    # Examples are never wrapped: a shell would take the parts for two commands.
    formatter.write(f"\n{title}:\n" + "".join(f"  {line}\n" for line in lines))


def _examples(text: str) -> list[str]:
    r"""Return the examples of a help text.

    >>> _examples("Tell it.\n\nExample: kvcalc plan a\nExample: kvcalc plan b")
    ['kvcalc plan a', 'kvcalc plan b']
    """
    return [
        line.strip().removeprefix(_EXAMPLE) for line in text.splitlines() if line.strip().startswith(_EXAMPLE)
    ]


def _without_examples(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if not line.strip().startswith(_EXAMPLE)).strip()
