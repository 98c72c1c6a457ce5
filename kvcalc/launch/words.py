"""Shell text -> words with their lines.  Nothing is run and nothing is looked up.

Only what launch scripts need of the shell's grammar: quotes, continued lines, comments, here-documents
and the operators that end a command.  Command substitutions stay as text, since only a shell knows
their output.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby
from typing import Literal

Quote = Literal["bare", "double", "single"]


@dataclass(frozen=True)
class Part:
    """A stretch of a word under one kind of quotes."""

    text: str
    quote: Quote


@dataclass(frozen=True)
class Word:
    """One word as written, with the line it begins on."""

    parts: tuple[Part, ...]
    line: int

    @property
    def text(self) -> str:
        """The word without its quotes."""
        return "".join(part.text for part in self.parts)


@dataclass(frozen=True)
class Command:
    """The words of one simple command; parentheses stand as words of their own."""

    words: tuple[Word, ...]
    documents: tuple[tuple[str, str, int], ...] = ()  # target, text and first line of here-documents
    broken: int | None = None  # line on which a blank after the backslash ended it
    unclosed: int | None = None  # line of a quote that nothing closes


_OPERATORS = ("&&", "||", ";;", ";", "|", "&")
_REDIRECT = re.compile(r"\d*(?:>>|>\||>&|&>>|&>|>|<<<|<&|<)(?:&?\d|-)?")
_HEREDOC = re.compile(r"<<-?\s*(['\"]?)(\w+)\1")
_PLACEHOLDER = re.compile(r"<[A-Za-z][\w ./-]*>")
_CONTINUED = re.compile(r"[\\^`]\r?\n")
_BROKEN = re.compile(r"\\[ \t]+\r?\n")


@dataclass
class _Reader:
    """A position in a text, and the command that is being collected."""

    text: str
    at: int = 0
    line: int = 1
    words: list[Word] = field(default_factory=list)
    parts: list[Part] = field(default_factory=list)
    started: int = 0
    target: str | None = None  # where output goes: the word after `>`
    wants_target: bool = False
    bodies: list[tuple[str, str, int]] = field(default_factory=list)
    pending: list[str] = field(default_factory=list)  # delimiters of here-documents to come
    broken: int | None = None
    unclosed: int | None = None
    in_array: bool = False  # between the parentheses of `NAME=( ... )`

    def matches(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        return pattern.match(self.text, self.at)

    def advance(self, count: int) -> str:
        taken = self.text[self.at : self.at + count]
        self.line += taken.count("\n")
        self.at += count
        return taken

    def add(self, text: str, quote: Quote) -> None:
        if not self.parts:
            self.started = self.line
        self.parts.append(Part(text, quote))

    def end_word(self) -> None:
        if not self.parts:
            return
        word = Word(tuple(_merged(self.parts)), self.started)
        self.parts = []
        if self.wants_target:
            self.target, self.wants_target = word.text, False
        else:
            self.words.append(word)

    def end_command(self) -> Command | None:
        self.end_word()
        command = Command(tuple(self.words), tuple(self.bodies), self.broken, self.unclosed)
        self.words, self.bodies, self.target, self.broken, self.unclosed = [], [], None, None, None
        return command if command.words or command.documents else None


def _merged(parts: list[Part]) -> Iterator[Part]:
    """Join neighbours under the same quotes."""
    for quote, run in groupby(parts, key=lambda part: part.quote):
        yield Part("".join(part.text for part in run), quote)


def commands(text: str) -> Iterator[Command]:
    r"""Yield the commands of a shell text in order.

    >>> [[word.text for word in item.words] for item in commands("a=1 run --x 'b c' \\\n --y; z")]
    [['a=1', 'run', '--x', 'b c', '--y'], ['z']]
    """
    reader = _Reader(_without_fences(text.replace("\r\n", "\n")))
    while reader.at < len(reader.text):
        if _step(reader):
            found = reader.end_command()
            if found:
                yield found
    found = reader.end_command()
    if found:
        yield found


def _without_fences(text: str) -> str:
    """Blank out Markdown fences and the prompt of a pasted session, keeping the line numbers."""
    lines = ["" if line.lstrip().startswith("```") else line for line in text.split("\n")]
    return "\n".join(re.sub(r"^\s*[$#%>] (?=\w)", "", line) if _prompt(line) else line for line in lines)


def _prompt(line: str) -> bool:
    return line.lstrip().startswith(("$ ", "% "))


def _step(reader: _Reader) -> bool:
    """Read one character or token; return whether a command ended."""
    char = reader.text[reader.at]
    if reader.matches(_CONTINUED) and (char == "\\" or not reader.parts):
        reader.end_word()
        reader.advance(2)
        return False
    if reader.matches(_BROKEN):
        # The shell takes the blank as a word, and the end of the line as the end of the command.
        reader.broken = reader.line
        reader.advance(len(reader.matches(_BROKEN)[0]))  # type: ignore[index]
        return True
    if char == "\n":
        reader.advance(1)
        reader.end_word()
        _read_bodies(reader)
        return not reader.in_array
    if char in " \t":
        reader.advance(1)
        reader.end_word()
        return False
    if char == "#" and not reader.parts:
        reader.advance(_until(reader.text, "\n", reader.at) - reader.at)
        return False
    return _symbol(reader, char)


def _symbol(reader: _Reader, char: str) -> bool:
    if reader.text.startswith("${", reader.at):  # blanks inside end no word
        reader.add(reader.advance(_until(reader.text, "}", reader.at) + 1 - reader.at), "bare")
        return False
    if char in "'\"\\" or reader.text.startswith("$(", reader.at) or char == "`":
        _quoted(reader, char)
        return False
    if not reader.parts and (char in "<>&" or char.isdigit()) and _redirect(reader):
        return False
    for operator in _OPERATORS:
        if reader.text.startswith(operator, reader.at):
            reader.advance(len(operator))
            return True
    if char in "()":
        reader.in_array = char == "(" and bool(reader.parts) and reader.parts[-1].text == "="
        reader.end_word()
        reader.add(reader.advance(1), "bare")
        reader.end_word()
        return False
    reader.add(reader.advance(1), "bare")
    return False


def _redirect(reader: _Reader) -> bool:
    """Read a redirection or a `<placeholder>`; return whether there was one."""
    heredoc = reader.matches(_HEREDOC)
    if heredoc:
        reader.pending.append(heredoc[2])
        reader.advance(len(heredoc[0]))
        return True
    placeholder = reader.matches(_PLACEHOLDER)
    if placeholder:
        reader.add(reader.advance(len(placeholder[0])), "single")
        return True
    found = reader.matches(_REDIRECT)
    if found:
        reader.advance(len(found[0]))
        reader.wants_target = found[0][-1] in "<>&|"
        return True
    return False


def _read_bodies(reader: _Reader) -> None:
    """Take the here-documents that the line before has announced."""
    for delimiter in reader.pending:
        first, body = reader.line, []
        while reader.at < len(reader.text):
            line = reader.advance(_until(reader.text, "\n", reader.at) + 1 - reader.at)
            if line.strip() == delimiter:
                break
            body.append(line)
        reader.bodies.append((reader.target or "", "".join(body), first))
    reader.pending = []


def _quoted(reader: _Reader, char: str) -> None:
    start = reader.line
    if char == "\\":
        reader.advance(1)
        reader.add(reader.advance(1), "single")
    elif char == "'":
        reader.advance(1)
        text = reader.advance(_until(reader.text, "'", reader.at) - reader.at)
        _close(reader, start)
        reader.add(text, "single")
    elif char == '"':
        reader.advance(1)
        _double(reader, start)
    else:
        reader.add(reader.advance(_substitution(reader)), "single")
    if len(reader.parts) == 1:
        reader.started = start


def _close(reader: _Reader, start: int) -> None:
    """Pass the closing quote, or note on which line the one stands that has none."""
    if reader.at >= len(reader.text):
        reader.unclosed = start
    reader.advance(1)


def _double(reader: _Reader, start: int) -> None:
    out: list[str] = []
    while reader.at < len(reader.text) and reader.text[reader.at] != '"':
        taken = reader.advance(1)
        if taken == "\\" and reader.text[reader.at : reader.at + 1] in tuple('"\\$`\n'):
            taken = reader.advance(1)
            if taken == "\n":
                continue
            if taken == "$":  # an escaped dollar is no variable
                reader.add("".join(out), "double")
                reader.add("$", "single")
                out = []
                continue
        out.append(taken)
    _close(reader, start)
    reader.add("".join(out), "double")


def _substitution(reader: _Reader) -> int:
    """Return the length of a `$(...)` or backquoted text, which is kept as it is."""
    if reader.text[reader.at] == "`":
        return _until(reader.text, "`", reader.at + 1) + 1 - reader.at
    depth, at = 0, reader.at + 1
    while at < len(reader.text):
        depth += {"(": 1, ")": -1}.get(reader.text[at], 0)
        at += 1
        if depth == 0:
            break
    return at - reader.at


def _until(text: str, mark: str, start: int) -> int:
    found = text.find(mark, start)
    return len(text) if found < 0 else found
