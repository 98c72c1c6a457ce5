"""Fenced blocks of a page: finds them, and runs them in a folder of their own.

A block with a title is a file of that name, unless the title says what it needs or how it ends.  `console`
blocks hold commands, and behind a `$` their output; `python` blocks are run, or checked where they hold
`>>>`.  `json` and `yaml` are read; `text` and `math` are for people.
"""

import contextlib
import doctest
import io
import json
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import yaml

from docs.writers.terminal import outcome

ROOT = Path(__file__).resolve().parents[2]
NOT_RUN = ("needs a network", "needs a GPU")
"""Titles of blocks that nothing runs."""
FILES = re.compile(r"[\w.-]+(?:/[\w.-]+)*\.\w+")
"""Titles that name a file."""
STATUS = re.compile(r"exit status (\d)")
"""Titles of blocks whose commands end with that status; what they print on stderr is shown too."""
PART = re.compile(r"only: (.+)")
"""Titles of blocks that show some sections of what a command prints, by how their first lines begin."""
LEFT_OUT = re.compile(r"without: (.+)")
"""Titles of blocks that leave out the lines that hold one of some texts, such as times that vary."""
COPIED = ("examples", "pyproject.toml")
"""What lies in the folder beside the files of the page."""
LANGUAGES = ("console", "python", "json", "yaml", "csv", "text", "math", "diff")

_NUMBER = re.compile(
    r"(?<![\w.])-?\d+(?:\.(?P<fraction>\d+))?(?:e(?P<exponent>[+-]?\d+))?(?!\w)", re.IGNORECASE
)
_FENCE = re.compile(r'^```(\w*)(?: title="([^"\n]*)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)


class BlockError(Exception):
    """A block does not do what its page says."""


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block of a page."""

    language: str
    title: str
    text: str
    span: tuple[int, int]  # of its inside in the page

    @property
    def is_run(self) -> bool:
        """Whether anything can run it here."""
        return self.title not in NOT_RUN

    @property
    def first_line(self) -> str:
        """What names it in a list."""
        return self.text.partition("\n")[0]


@dataclass(frozen=True, slots=True)
class Command:
    """A command of a console block, and the output behind it where it shows one."""

    line: str
    output: str | None


def blocks(page: str) -> Iterator[Block]:
    r"""Yield the fenced blocks of a page, in order.

    >>> [(block.language, block.title, block.text) for block in blocks('```yaml title="a.yaml"\nb: 1\n```')]
    [('yaml', 'a.yaml', 'b: 1\n')]
    """
    for match in _FENCE.finditer(page):
        yield Block(match[1], match[2] or "", match[3], match.span(3))


def commands(block: Block) -> list[Command]:
    r"""Return the commands of a console block: each behind a `$`, or each line where there is none.

    >>> commands(Block("console", "", "$ kvcalc --version\nkvcalc 1\n", (0, 0)))
    [Command(line='kvcalc --version', output='kvcalc 1')]
    """
    if not block.text.startswith("$ "):
        return [Command(line, None) for line in block.text.splitlines() if line.strip()]
    pieces = [piece.partition("\n") for piece in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]]
    return [Command(line, output.rstrip("\n")) for line, _, output in pieces]


class Folder:
    """A folder in which the blocks of one page are run, from the first to the last."""

    def __init__(self) -> None:
        self._kept = tempfile.TemporaryDirectory()
        self.path = Path(self._kept.name)
        self._names: dict[str, Any] = {"__name__": "page"}

    def __enter__(self) -> Self:
        for name in COPIED:
            source = ROOT / name
            copy = shutil.copytree if source.is_dir() else shutil.copy
            copy(source, self.path / name)
        sys.path.insert(0, str(self.path))  # blocks import the files of their page
        return self

    def __exit__(self, *_: object) -> None:
        sys.path.remove(str(self.path))
        own = [name for name, module in sys.modules.items() if self._holds(getattr(module, "__file__", None))]
        for name in own:
            del sys.modules[name]
        self._kept.cleanup()

    def _holds(self, file: str | None) -> bool:
        return file is not None and Path(file).is_relative_to(self.path)

    def run(self, block: Block) -> str:
        """Run a block, and return its text with the outputs that the commands have now."""
        if not block.is_run:
            return block.text
        with contextlib.chdir(self.path):
            if FILES.fullmatch(block.title):
                self._write(block)
            elif block.language == "console":
                return self._console(block)
            elif block.language == "python":
                self._python(block)
            elif block.language in ("json", "yaml"):
                (json.loads if block.language == "json" else yaml.safe_load)(block.text)
        return block.text

    def _write(self, block: Block) -> None:
        file = self.path / block.title
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(block.text, encoding="utf-8")

    def _console(self, block: Block) -> str:
        wanted, part, left_out = (form.fullmatch(block.title) for form in (STATUS, PART, LEFT_OUT))
        status = int(wanted[1]) if wanted else 0
        pieces = []
        for command in commands(block):
            output = _printed(command.line, status)
            output = _sections(output, part[1].split(", ")) if part else output
            output = _without(output, left_out[1].split(", ")) if left_out else output
            pieces.append(f"{command.line}\n" if command.output is None else f"$ {command.line}\n{output}")
        return "".join(pieces)

    def _python(self, block: Block) -> None:
        if ">>>" not in block.text:
            with contextlib.redirect_stdout(io.StringIO()):
                exec(compile(block.text, "block of a page", "exec"), self._names)
            return
        flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
        test = doctest.DocTestParser().get_doctest(block.text, self._names, "block", None, None)
        told = io.StringIO()
        result = doctest.DocTestRunner(_Numbers(), optionflags=flags).run(
            test, out=told.write, clear_globs=False
        )
        self._names.update(test.globs)
        if result.failed:
            raise BlockError(told.getvalue())


def _rounded(number: str, wanted: re.Match[str]) -> str:
    """Return the wanted number where another is the same to its digits; whole ones must be equal."""
    if wanted["fraction"] is None and wanted["exponent"] is None:
        return number
    last = int(wanted["exponent"] or 0) - len(wanted["fraction"] or "")
    return wanted[0] if abs(float(number) - float(wanted[0])) <= 10.0**last else number


class _Numbers(doctest.OutputChecker):
    """Compares numbers to as many digits as the page shows, as the doctests of the library are."""

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        """Tell whether an output is what the page shows."""
        wanted = list(_NUMBER.finditer(want))
        if len(wanted) == len(_NUMBER.findall(got)):
            left = iter(wanted)
            got = _NUMBER.sub(lambda found: _rounded(found[0], next(left)), got)
        return super().check_output(want, got, optionflags)


def filled(page: str) -> str:
    """Return a page with the output of every command behind a `$` put in anew."""
    done, end = [], 0
    with Folder() as folder:
        for block in blocks(page):
            done += [page[end : block.span[0]], folder.run(block)]
            end = block.span[1]
    return "".join([*done, page[end:]])


def _sections(output: str, names: list[str]) -> str:
    """Return the sections of an output whose first lines begin with one of the names."""
    found = [one for one in output.strip("\n").split("\n\n") if one.startswith(tuple(names))]
    if len(found) < len(names):
        raise BlockError(f"not every section of {names} is printed")
    return "\n\n".join(found) + "\n"


def _without(output: str, texts: list[str]) -> str:
    """Return an output without the lines that hold one of some texts; each must be there."""
    lines = output.splitlines(keepends=True)
    missing = [text for text in texts if text not in output]
    if missing:
        raise BlockError(f"nothing that is printed holds {missing}")
    return "".join(line for line in lines if not any(text in line for text in texts))


def _printed(line: str, status: int) -> str:
    """Return what a command prints, each line ended; it must end as its block says."""
    words = shlex.split(line)
    if words[0] == "kvcalc":
        ended, out, err = outcome(words[1:])
    elif words[0] in ("python", "cat"):
        words[:1] = [sys.executable] if words[0] == "python" else ["cat"]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        ended, out, err = done.returncode, done.stdout, done.stderr
    else:
        raise BlockError(f"{line}: this is no command that pages may show")
    if ended != status:
        raise BlockError(f"{line}: ended with {ended} instead of {status}: {err or out}")
    shown = out + err if status else out
    return "".join(f"{row.rstrip()}\n" for row in shown.splitlines())
