"""docs/commands.md: every help page as the program prints it, and the options that commands share."""

import re
from collections.abc import Iterator

from docs.writers.markdown import anchor, code, codes, document, fence, prose, table
from docs.writers.terminal import printed
from kvcalc.keys import KEYS, Key


def page() -> str:
    """Return the page."""
    helps = dict(_helps(()))
    contents = [f"- [{name}](#{anchor(name)})" for name in helps]
    blocks = [block for name, text in helps.items() for block in (f"## {name}", fence(text))]
    return document(
        "Commands",
        "the help pages of the program",
        "Exit status: 0 answered, 1 answered and the plan does not fit (with `--check`), 2 bad input.",
        "\n".join([*contents, "- [Options by key](#options-by-key)"]),
        *blocks,
        "## Options by key",
        "These options are one table in the code. A name means the same in every command, in a scenario "
        "file and "
        "as an argument of the library. The default stands in brackets.",
        table(["option", "key", "read as", "commands", "meaning"], map(_row, KEYS)),
    )


def _helps(words: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Yield the help page of a command and of those below it."""
    text = printed([*words, "--help"])
    yield " ".join(("kvcalc", *words)), text
    _, _, listed = text.partition("\nCommands:\n")
    for name in re.findall(r"^  (\w+)", listed.partition("\n\n")[0], re.MULTILINE):
        yield from _helps((*words, name))


def _row(key: Key) -> list[str]:
    scenario = f"workload.{key.name}" if key.workload else key.name
    read = f"{key.kind} [{key.unit}]" if key.unit else key.kind
    return [code(key.option), code(scenario), read, codes(key.commands), prose(key.help)]
