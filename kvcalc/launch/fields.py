"""The words after an engine's name, or the keys of a document -> fields and remarks."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from kvcalc.launch.flags import Dialect, Flag
from kvcalc.launch.flags.dialect import known_names
from kvcalc.launch.settings import Field, Remark
from kvcalc.launch.shell import Token
from kvcalc.launch.values import BadValueError, read

ALIKE = 0.8
"""Likeness (difflib ratio) from which an unknown flag is taken for a known one misspelt [1]."""


_EXPECTED = {
    "count": "write a whole number of at least 1",
    "integer": "write a whole number",
    "number": "write a number without a unit",
    "layers": "write a whole number, auto or all",
    "size": "write a number such as 32768, 32k (32,000) or 32K (32,768)",
    "switch": "write true or false, or the flag alone",
    "off": "write the flag alone",
    "json": "write one JSON object in single quotes",
    "items": "write a list of objects",
    "text": "write a word",
}


@dataclass
class Findings:
    """Fields and remarks as they are met, in order."""

    file: str
    dialect: Dialect
    fields: list[Field] = field(default_factory=list)
    remarks: list[Remark] = field(default_factory=list)

    def where(self, line: int | None) -> str:
        """Return file and line."""
        return self.file if line is None else f"{self.file}:{line}"

    def take(self, flag: Flag, value: Any, written: str, line: int | None) -> None:  # noqa: ANN401
        """Add one value, or the remark that it cannot be read."""
        if isinstance(value, str) and "$" in value and flag.kind != "text":
            self._remark(
                "unknown-value",
                "info",
                f"{written} is {value}, which this file does not set",
                "check it with the value put in",
                line,
            )
            return
        try:
            found = read(flag, value, self.file)
        except BadValueError as error:
            self._remark("bad-value", "error", f"{written}: {error}", _EXPECTED[flag.kind], line)
            return
        self.fields.append(Field(flag.field, found, written, self.where(line), flag.unit, flag.scope))
        if flag.kind == "json" and isinstance(found, Mapping):
            self.document(found, written, line)

    def document(self, data: Mapping[str, Any], written: str, line: int | None) -> None:
        """Read the keys of a JSON argument that the engine's table knows, wherever they stand in it."""
        table = {flag.names[0]: flag for flag in self.dialect.document}
        for key, value in data.items():
            inner = value if isinstance(value, list) else [value]
            if key in table:
                self.take(table[key], value, key, line)
            elif key == "connectors" or isinstance(value, Mapping):
                for item in inner:
                    if isinstance(item, Mapping):
                        self.document(item, written, line)
            else:
                near = get_close_matches(key, list(table), n=1, cutoff=ALIKE)
                if near:
                    self._remark(
                        "misspelt",
                        "error",
                        f"{written}: {key} is not a key that {self.dialect.engine} reads",
                        near[0],
                        line,
                    )

    def unknown(self, name: str, line: int | None) -> None:
        """Say that a flag is not known: misspelt where one is near, else not checked."""
        known = [*known_names(self.dialect.names), *_spellings(self.dialect.flags)]
        near = get_close_matches(name, known, n=1, cutoff=ALIKE)
        if near and near[0] != name:
            severity = "error" if self.dialect.complete else "warning"
            self._remark(
                "misspelt", severity, f"{name} is not a flag of {self.dialect.engine}", near[0], line
            )
        else:
            self._remark(
                "not-checked", "info", f"{name} is not known to kvcalc and was not checked", "", line
            )

    def _remark(self, name: str, severity: str, message: str, instead: str, line: int | None) -> None:
        self.remarks.append(Remark(name, severity, message, instead, self.where(line)))


def read_flags(found: Findings, tokens: Sequence[Token]) -> None:
    """Read a command line; what is no flag and no flag's value is left alone."""
    table = _table(found.dialect)
    at = 0
    while at < len(tokens):
        at += 1
        if _is_flag(tokens[at - 1].text):
            at += _read_flag(found, table, tokens[at - 1], tokens[at:])


def _read_flag(found: Findings, table: Mapping[str, Flag], token: Token, after: Sequence[Token]) -> int:
    """Read one flag; return how many of the words after it are its own."""
    written, equals, attached = token.text.partition("=")
    name = _canonical(found.dialect, written)
    base, dotted, path = name.partition(".")
    flag, negated = _lookup(found.dialect, table, base)
    if flag is None:
        _note_other(found, base, token.line)
        return 0 if equals else _skipped(after)
    value: Any = attached
    alone = flag.implies is not None and (not after or _is_flag(after[0].text))
    taken = 0
    if flag.kind in ("switch", "off") or (alone and not equals):
        value = attached or ("false" if negated else flag.implies or "true")
    elif not equals:
        taken = min(1, len(after))
        value = after[0].text if after else ""
    if dotted:
        found.document({path.rpartition(".")[2]: value}, base, token.line)
    else:
        found.take(flag, value, written if negated else name, token.line)
    return taken


def _note_other(found: Findings, name: str, line: int) -> None:
    """Keep a flag that the engine has and no check reads; report one that it does not have."""
    known = known_names(found.dialect.names)
    if name in known or name.replace("--no-", "--", 1) in known:
        found.fields.append(Field("other", True, name, found.where(line)))
    else:
        found.unknown(name, line)


def read_keys(found: Findings, data: Mapping[str, Any], lines: Mapping[str, int], prefix: str = "") -> None:
    """Read the keys of a configuration document, which are flags without their dashes."""
    table = _table(found.dialect)
    known = known_names(found.dialect.names)
    for key, value in data.items():
        name = prefix + (key.replace("_", "-") if prefix else key)
        flag = table.get(name)
        if flag is not None:
            found.take(flag, value, key, lines.get(key))
        elif name not in known:
            found.unknown(name, lines.get(key))
        else:
            found.fields.append(Field("other", value, name, found.where(lines.get(key))))


def read_environment(found: Findings, environment: Mapping[str, Token]) -> None:
    """Read the environment variables that the engine's table knows."""
    table = {name: flag for flag in found.dialect.environment for name in flag.names}
    for name, token in environment.items():
        if name in table:
            found.take(table[name], token.text, name, token.line)
        elif name.startswith("LMCACHE_") and name[len("LMCACHE_") :].lower() not in known_names(
            "lmcache.txt"
        ):
            found.unknown(name, token.line)


def _table(dialect: Dialect) -> dict[str, Flag]:
    return {name: flag for flag in dialect.flags for name in flag.names}


def _spellings(flags: Iterable[Flag]) -> list[str]:
    return [name for flag in flags for name in flag.names]


def _is_flag(text: str) -> bool:
    return text.startswith("-") and len(text) > 1 and not text[1].isdigit()


def _canonical(dialect: Dialect, name: str) -> str:
    if dialect.underscores and name.startswith("--"):
        head, dot, rest = name.partition(".")
        return head.replace("_", "-") + dot + rest
    return name


def _lookup(dialect: Dialect, table: Mapping[str, Flag], name: str) -> tuple[Flag | None, bool]:
    """Return the flag of a name, and whether it was written with `--no-`."""
    if name in table:
        return table[name], False
    positive = "--" + name.removeprefix("--no-")
    if name.startswith("--no-") and positive in table:
        return table[positive], True
    if dialect.prefixes and name.startswith("--") and name not in known_names(dialect.names):
        begins = [known for known in known_names(dialect.names) if known.startswith(name)]
        if len(begins) == 1:
            return table.get(begins[0]), False
    return None, False


def _skipped(tokens: Sequence[Token]) -> int:
    """Return how many words belong to a flag that is known or unknown but not read."""
    count = 0
    while count < len(tokens) and not _is_flag(tokens[count].text):
        count += 1
    return count
