"""docs/commands.md and a page for each command: examples with what they print, and the help page.

The examples are data: `docs/commands.yaml` says how to add one.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from docs.writers.blocks import filled
from docs.writers.markdown import code, codes, document, fence, prose, table
from docs.writers.terminal import printed
from kvcalc.cli import COMMANDS, _application
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
    return {name: printed([*name.split(), "--help"]) for name in summaries()}


@cache
def summaries() -> dict[str, str]:
    """Return the first sentence of every command that answers something, by name."""
    found = {}
    for name in COMMANDS:
        command: Any = _application((name,)).commands[name]  # type: ignore[attr-defined]
        inner = getattr(command, "commands", None)
        below = {name: command} if inner is None or command.invoke_without_command else {}
        below |= {f"{name} {one}": c for one, c in (inner or {}).items()}
        found |= {key: " ".join(one.help.split("\n\n")[0].split()) for key, one in below.items()}
    return found


def examples() -> Mapping[str, list[dict[str, Any]]]:
    """Return the examples of every command."""
    found: Any = read(FILE)
    return found


def _index() -> str:
    rows = [
        [f"[`kvcalc {name}`](commands/{_slug(name)}.md)", prose(summary)]
        for name, summary in summaries().items()
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
    page = document(
        f"kvcalc {name}",
        "`docs/commands.yaml` and what the program prints",
        prose(summaries()[name]),
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
    titles = (
        f"needs {needs}" if needs else "",
        f"exit status {status}" if status else "",
        f"only: {', '.join(one['only'])}" if "only" in one else "",
        f"without: {', '.join(one['without'])}" if "without" in one else "",
    )
    title = next((f' title="{title}"' for title in titles if title), "")
    bare = needs or (not status and any(word in one["run"].split() for word in ("--save", "-o")))
    yield f"```console{title}\n{'' if bare else '$ '}{one['run']}\n```"


def _slug(name: str) -> str:
    return name.replace(" ", "-")


def _row(key: Key) -> list[str]:
    scenario = f"workload.{key.name}" if key.workload else key.name
    read_as = f"{key.kind} [{key.unit}]" if key.unit else key.kind
    return [code(key.option), code(scenario), read_as, codes(key.commands), prose(key.help)]
