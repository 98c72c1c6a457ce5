"""Commands of a launch script -> its environment, and the words of the engine's own command line.

Variables are followed as far as the file sets them.  Conditions are not evaluated: what a branch adds
to a variable is read, what it replaces is not.  A value that the file does not set stays as written.
"""

import re
from dataclasses import dataclass, field

from kvcalc.launch.words import Command, Part, Word, commands

_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)(\+?)=")
_VARIABLE = re.compile(
    r"\$(?:\{(?P<braced>[A-Za-z_]\w*|\d)(?P<items>\[[@*]\])?"
    r"(?::?[-=](?P<default>[^}]*)|:?\+(?P<present>[^}]*)|:?\?[^}]*)?\}|(?P<plain>[A-Za-z_]\w*|\d))"
)
_KEYWORDS = frozenset(
    {
        *("if", "then", "else", "elif", "fi", "case", "esac", "for", "while", "until", "do", "done"),
        *("{", "}", "!", "exec", "nohup"),
    }
)
_NESTING = {"if": 1, "case": 1, "fi": -1, "esac": -1}
_DECLARE = frozenset({"export", "declare", "local", "readonly", "env", "typeset"})
_PASS_ENVIRONMENT = frozenset({"-e", "--env"})  # of docker and podman


@dataclass(frozen=True)
class Token:
    """A word after its variables have been put in."""

    text: str
    line: int


@dataclass(frozen=True)
class Line:
    """One command after expansion, with the environment that the file has given it so far."""

    tokens: tuple[Token, ...]
    environment: dict[str, Token]
    broken: int | None = None  # line on which a blank after a backslash ended it
    unclosed: int | None = None  # line of a quote that nothing closes


@dataclass
class Script:
    """The variables of a file while it is read from top to bottom."""

    variables: dict[str, list[Token]] = field(default_factory=dict)
    documents: dict[str, tuple[str, int]] = field(default_factory=dict)  # here-documents by file name
    branches: int = 0  # conditions that the reader stands in

    def lines(self, text: str) -> list[Line]:
        """Return the expanded commands of a text."""
        return [line for command in commands(text) if (line := self._line(command)) is not None]

    def environment(self) -> dict[str, Token]:
        """Return the variables that have one value."""
        return {name: value[-1] for name, value in self.variables.items() if value}

    def _line(self, command: Command) -> Line | None:
        for target, body, first in command.documents:
            self.documents[target.rsplit("/", 1)[-1]] = (body, first)
        words = list(command.words)
        while words and words[0].text in _KEYWORDS:
            self.branches += _NESTING.get(words.pop(0).text, 0)
        words = self._assign(words)
        tokens = tuple(token for word in words for token in self._expand(word))
        if not tokens:
            return None
        return Line(tokens, self.environment() | _passed(tokens), command.broken, command.unclosed)

    def _assign(self, words: list[Word]) -> list[Word]:
        """Take the leading assignments, those after `export` and its like among them."""
        while words:
            match = _ASSIGNMENT.match(words[0].text)
            if match:
                words = self._store(match[1], match[2] == "+", words, match.end())
            elif words[0].text in _DECLARE:
                words = words[1:]
            else:
                break
        return words

    def _store(self, name: str, append: bool, words: list[Word], skip: int) -> list[Word]:
        word, rest = words[0], words[1:]
        before = self.variables.get(name, []) if append else []
        kept = self.variables.get(name) if self.branches and not append else None
        if len(word.text) == skip and rest and rest[0].text == "(":
            close = next((at for at, item in enumerate(rest) if item.text == ")"), len(rest))
            items = [token for item in rest[1:close] for token in self._expand(item)]
            self.variables[name] = kept or before + items
            return rest[close + 1 :]
        self.variables[name] = kept or [*before, Token(self._text(_without(word, skip)), word.line)]
        return rest

    def _expand(self, word: Word) -> list[Token]:
        """Put in the variables of a word; a bare one is split into words, an array gives its items."""
        match = _VARIABLE.fullmatch(word.text)
        bare = all(part.quote == "bare" for part in word.parts)
        if match is None or not (bare or match["items"]):
            return [Token(self._text(word), word.line)]
        items = self.variables.get(match["braced"] or match["plain"])
        if match["present"] is not None or items is None:
            return [Token(text, word.line) for text in _split(self._text(word))]
        if match["items"]:
            return list(items)
        return [Token(text, item.line) for item in items for text in _split(item.text)]

    def _text(self, word: Word) -> str:
        return "".join(
            part.text if part.quote == "single" else _VARIABLE.sub(self._value, part.text)
            for part in word.parts
        )

    def _value(self, match: re.Match[str]) -> str:
        name = match["braced"] or match["plain"]
        if match["present"] is not None:  # ${name:+text}: the text if the file sets the name
            return _VARIABLE.sub(self._value, match["present"]) if name in self.variables else ""
        if name in self.variables:
            return " ".join(item.text for item in self.variables[name])
        return match["default"] if match["default"] is not None else match[0]


def _without(word: Word, skip: int) -> Word:
    """Return a word without its first `skip` characters, which are bare."""
    first, *rest = word.parts
    return Word((Part(first.text[skip:], first.quote), *rest), word.line)


def _split(text: str) -> list[str]:
    return [word.text for command in commands(text) for word in command.words]


def _passed(tokens: tuple[Token, ...]) -> dict[str, Token]:
    """Return the environment that `docker run -e NAME=value` and `env NAME=value` pass on."""
    found = {}
    for before, token in zip(("", *(item.text for item in tokens)), tokens, strict=False):
        text = token.text.removeprefix("--env=").removeprefix("-e=")
        match = _ASSIGNMENT.match(text)
        if match and (before in _PASS_ENVIRONMENT or text != token.text or before in ("env", "sudo")):
            found[match[1]] = Token(text[match.end() :], token.line)
    return found
