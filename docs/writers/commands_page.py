"""docs/commands.md and a page for each command: examples with what they print, and the help page.

The examples are data: `docs/commands.yaml` says how to add one.
"""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from docs.writers.blocks import filled
from docs.writers.markdown import code, codes, document, fence, prose, table
from docs.writers.terminal import printed
from kvcalc.cli import COMMANDS
from kvcalc.documents import read
from kvcalc.keys import KEYS, Key

FILE = Path(__file__).resolve().parents[1] / "commands.yaml"


def pages() -> dict[str, str]:
    """Return the page of every command, and the one that lists them, by file name."""
    found = {f"commands/{_slug(name)}.md": _command(name, text) for name, text in helps().items()}
    return {"commands.md": _index(), **found}


@cache
def helps() -> dict[str, str]:
    """Return the help page of every command that answers something, by name."""
    return {name: text for name, text in _helps(()) if "\nCommands:\n" not in text}


def examples() -> Mapping[str, list[dict[str, Any]]]:
    """Return the examples of every command."""
    found: Any = read(FILE)
    return found


def _index() -> str:
    rows = [
        [f"[`kvcalc {name}`](commands/{_slug(name)}.md)", prose(_summary(text))]
        for name, text in helps().items()
    ]
    return document(
        "Commands",
        "the help pages of the program",
        "Each command has a page with examples, what they print, and its options. `kvcalc COMMAND --help` "
        "prints the same options.",
        table(["command", "what it does"], rows),
        "Exit status: 0 answered, 1 answered and the plan does not fit (with `--check`), 2 bad input, 130 "
        "stopped with Ctrl-C. The result alone goes to stdout; warnings and progress go to stderr.",
        "## kvcalc",
        fence(printed(["--help"])),
        "## Options by key",
        "These options are one table in the code. A name means the same in every command, in a scenario "
        "file and as an argument of the library. The default stands in brackets.",
        table(["option", "key", "read as", "commands", "meaning"], map(_row, KEYS)),
    )


def _command(name: str, text: str) -> str:
    shown = [block for one in examples().get(name, ()) for block in _example(one)]
    top = name.split()[0]
    page = document(
        f"kvcalc {name}",
        "`docs/commands.yaml` and what the program prints",
        prose(COMMANDS[top][1]) if top == name else prose(_summary(text)),
        "## Examples",
        *shown,
        "## Options",
        fence(text),
        "The keys of `--format json` stand in [JSON](../json.md), the options that commands share in "
        "[Options by key](../commands.md#options-by-key).",
    )
    return filled(page)


def _example(one: Mapping[str, Any]) -> Iterator[str]:
    """Yield the sentence, the files and the command of an example, without its output."""
    yield one["shows"]
    for name, text in one.get("file", {}).items():
        language = {"yaml": "yaml", "json": "json"}.get(name.rpartition(".")[2], "text")
        yield f'```{language} title="{name}"\n{text.rstrip()}\n```'
    needs, status = one.get("needs"), one.get("status", 0)
    title = f' title="needs {needs}"' if needs else f' title="exit status {status}"' if status else ""
    bare = needs or "--save" in one["run"]
    yield f"```console{title}\n{'' if bare else '$ '}{one['run']}\n```"


def _helps(words: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Yield the help page of a command and of those below it."""
    text = printed([*words, "--help"])
    yield " ".join(words), text
    _, _, listed = text.partition("\nCommands:\n")
    for name in re.findall(r"^  ([\w-]+)", listed.partition("\n\n")[0], re.MULTILINE):
        yield from _helps((*words, name))


def _summary(text: str) -> str:
    """Return the first paragraph of a help page behind its usage."""
    return " ".join(text.split("\n\n")[1].split())


def _slug(name: str) -> str:
    return name.replace(" ", "-")


def _row(key: Key) -> list[str]:
    scenario = f"workload.{key.name}" if key.workload else key.name
    read_as = f"{key.kind} [{key.unit}]" if key.unit else key.kind
    return [code(key.option), code(scenario), read_as, codes(key.commands), prose(key.help)]
