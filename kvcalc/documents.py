"""Reads and checks the YAML and JSON that people write, and writes files whole.  Only this imports yaml.

YAML is read by the rules of YAML 1.2: only `true` and `false` are flags, so the key `on` and the
value `no` stay text; dates stay text; `1e5` is a number.  Files from strangers are data: no
tags beyond the plain ones, no aliases (a few lines of them can stand for gigabytes), and limits on
size and nesting, each refused in one line.
"""

import json
import math
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Protocol, TypeAlias, TypeVar

from kvcalc.errors import ProfileError, SettingsError, UnitError, did_you_mean

if TYPE_CHECKING:
    import yaml

MAX_BYTES = 4 * 2**20
"""Largest document that is read [byte]; far above any profile, low enough to parse in seconds."""
MAX_DEPTH = 32
"""Deepest nesting of lists and mappings that is read."""

Document: TypeAlias = Any
"""Plain data as a file holds it: mappings, lists, texts, numbers, flags, None; not yet checked."""

Value = TypeVar("Value")


class Readable(Protocol):
    """A file on disk or inside a wheel: `pathlib.Path` and `importlib.resources` both are."""

    def read_bytes(self) -> bytes:
        """Return the content."""


def read(file: Readable) -> Document:
    """Return the content of a `.json`, `.yaml` or `.yml` file as plain data.

    Raises
    ------
    ProfileError
        If the file cannot be read, is too large, or is malformed; names the file and the line.
    """
    parse = parse_json if str(file).endswith(".json") else parse_yaml
    return parse(read_text(file), str(file))


def read_text(file: Readable, limit: int = MAX_BYTES) -> str:
    """Return the text of a file of at most `limit` bytes, which must be UTF-8."""
    try:
        if isinstance(file, Path):
            _check_size(file.stat().st_size, str(file), limit)
        content = file.read_bytes()
    except OSError as error:
        raise ProfileError(f"{file}: {(error.strerror or str(error)).lower()}") from None
    _check_size(len(content), str(file), limit)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ProfileError(f"{file}:{line}: not UTF-8 text") from None


def parse_json(text: str, name: str, limit: int = MAX_BYTES) -> Document:
    """Return JSON text of at most `limit` bytes as plain data; duplicate keys, NaN and Infinity are refused.

    >>> parse_json('{"on": "h100"}', "plan.json")
    {'on': 'h100'}
    """
    _check_size(len(text), name, limit)

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            keys = [key for key, _ in pairs]
            twice = next(key for key in keys if keys.count(key) > 1)
            raise ProfileError(f"{name}: {twice}: given twice in one object")
        return found

    def no_number(constant: str) -> NoReturn:
        raise ProfileError(f"{name}: {constant} is not a number")

    try:
        return json.loads(text, object_pairs_hook=unique, parse_constant=no_number)
    except json.JSONDecodeError as error:
        raise ProfileError(f"{name}:{error.lineno}: not valid JSON: {error.msg}") from None
    except RecursionError:
        raise ProfileError(f"{name}: nested too deeply") from None
    except ValueError as error:  # an integer of thousands of digits
        raise ProfileError(f"{name}: {str(error).split(';')[0]}") from None


def parse_yaml(text: str, name: str) -> Document:
    """Return YAML text as plain data.

    >>> parse_yaml("{on: h100, retrieved: 2026-08-20, rate: 2/s, hit: 0.6}", "plan.yaml")
    {'on': 'h100', 'retrieved': '2026-08-20', 'rate': '2/s', 'hit': 0.6}
    """
    import yaml

    _check_size(len(text), name)
    try:
        loader = _loader()(text)
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise ProfileError(f"{name}:{line}: not valid YAML: {error.reason}") from None
    try:
        return loader.get_single_data()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        raise ProfileError(f"{name}:{line}: {error.problem or 'not valid YAML'}") from None
    except (ValueError, KeyError) as error:  # a tag that its text belies, or a number of thousands of digits
        raise ProfileError(f"{name}: {str(error).split(';')[0]}") from None
    finally:
        loader.dispose()


def _check_size(size: int, name: str, limit: int = MAX_BYTES) -> None:
    if size > limit:
        raise ProfileError(f"{name}: larger than {limit // 2**20} MiB, so not a profile")


# YAML 1.2 core schema: what a plain word may mean besides itself, and its possible first characters.
_PLAIN = (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", r"[-+]?[0-9]+|0x[0-9a-fA-F]+", "-+0123456789"),
    ("float", r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", "-+.0123456789"),
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
)


@cache
def _loader() -> "type[yaml.SafeLoader]":
    """Return the strict loader class, made when the first YAML is read so that JSON needs no yaml."""
    import yaml

    class Loader(yaml.SafeLoader):
        """A safe loader with YAML 1.2 words, limits, and no duplicate keys."""

        yaml_constructors: ClassVar[dict[Any, Any]] = {
            tag: build
            for tag, build in yaml.SafeLoader.yaml_constructors.items()
            if tag is None or tag.rpartition(":")[2] in ("null", "bool", "float", "str", "seq")
        }
        depth = 0

        def compose_node(self, parent: yaml.Node | None, index: object) -> yaml.Node | None:
            self.depth += 1
            if self.depth > MAX_DEPTH or self.check_event(yaml.AliasEvent):
                problem = (
                    "nested too deeply"
                    if self.depth > MAX_DEPTH
                    else "aliases are not read; repeat the value"
                )
                mark = self.get_event().start_mark  # type: ignore[no-untyped-call]
                raise yaml.MarkedYAMLError(problem=problem, problem_mark=mark)
            node = super().compose_node(parent, index)  # type: ignore[arg-type]
            self.depth -= 1
            return node

        def construct_unique(self, node: yaml.MappingNode) -> dict[Any, Any]:
            data: dict[Any, Any] = {}
            lines: dict[Any, int] = {}
            for key_node, value_node in node.value:
                key = self.construct_object(key_node, deep=True)
                problem = None
                if not isinstance(key, str | int | float):
                    problem = "a key must be text"
                elif key in lines:
                    problem = f"{key}: given twice, first on line {lines[key]}"
                if problem:
                    raise yaml.MarkedYAMLError(problem=problem, problem_mark=key_node.start_mark)
                lines[key] = key_node.start_mark.line + 1
                data[key] = self.construct_object(value_node, deep=True)
            return data

        def construct_integer(self, node: yaml.ScalarNode) -> int:
            return int(node.value, 0) if node.value.startswith("0x") else int(node.value)

    Loader.yaml_implicit_resolvers = {}
    for tag, pattern, first in _PLAIN:
        Loader.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(rf"(?:{pattern})\Z"), list(first))
    Loader.add_constructor("tag:yaml.org,2002:int", Loader.construct_integer)
    Loader.add_constructor("tag:yaml.org,2002:map", Loader.construct_unique)
    return Loader


@dataclass(frozen=True)
class Section:
    """A mapping inside a file, which knows its place for messages.

    >>> section = Section.of({"value": "54 GB/s"}, "dram.yaml", "tiers.dram")
    >>> section.quantity("value", "byte/second")
    54000000000.0
    """

    data: Mapping[str, Any]
    file: str
    path: str = ""

    @classmethod
    def of(cls, data: Document, file: str, path: str = "") -> "Section":
        """Return `data` as a section, refusing what is no mapping or has keys that are not text."""
        where = f"{file}: {path}" if path else file
        if not isinstance(data, Mapping):
            raise ProfileError(f"{where}: expected keys with values, not {describe(data)}")
        for key in data:
            if not isinstance(key, str):
                raise ProfileError(f"{where}: the key {key!r} is not text; write it in quotes")
        return cls(data, file, path)

    def where(self, key: str = "") -> str:
        """Return ``"file: dotted.key"``, with which every message begins."""
        dotted = ".".join(part for part in (self.path, key) if part)
        return f"{self.file}: {dotted}" if dotted else self.file

    def check(self, required: tuple[str, ...], optional: tuple[str, ...] = ()) -> None:
        """Refuse unknown keys, naming the nearest valid one, and missing keys."""
        known = (*required, *optional)
        for key in self.data:
            if key not in known:
                raise ProfileError(f"{self.where(key)}: unknown key{did_you_mean(key, known)}")
        for key in required:
            if key not in self.data:
                raise ProfileError(f"{self.where(key)}: missing")

    def __contains__(self, key: str) -> bool:
        return key in self.data

    def fail(self, key: str, expected: str) -> NoReturn:
        """Refuse the value of `key`, saying what it is and what was expected."""
        if key not in self.data:
            raise ProfileError(f"{self.where(key)}: missing")
        raise ProfileError(f"{self.where(key)}: expected {expected}, not {describe(self.data[key])}")

    def _typed(self, key: str, kind: type[Value], expected: str) -> Value:
        value = self.data.get(key)
        if not isinstance(value, kind):
            self.fail(key, expected)
        return value

    def text(self, key: str) -> str:
        """Return a text."""
        return self._typed(key, str, "text")

    def number(self, key: str) -> float:
        """Return a number without a unit."""
        value = self.data.get(key)
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            self.fail(key, "a number")
        return float(value)

    def integer(self, key: str) -> int:
        """Return a whole number."""
        value = self.data.get(key)
        if isinstance(value, bool) or not isinstance(value, int):
            self.fail(key, "a whole number")
        return value

    def flag(self, key: str) -> bool:
        """Return true or false."""
        return self._typed(key, bool, "true or false")

    def items(self, key: str) -> list[Any]:
        """Return a list."""
        return self._typed(key, list, "a list")

    def texts(self, key: str) -> tuple[str, ...]:
        """Return a list of texts."""
        values = self.items(key)
        if not all(isinstance(value, str) for value in values):
            self.fail(key, "a list of texts")
        return tuple(values)

    def section(self, key: str) -> "Section":
        """Return a mapping inside this one."""
        if key not in self.data:
            self.fail(key, "keys with values")
        return Section.of(self.data[key], self.file, f"{self.path}.{key}" if self.path else key)

    def quantity(self, key: str, unit: str) -> float:
        """Return a text with a unit as a float in `unit`; the unit "1" takes a bare number."""
        if key not in self.data:
            self.fail(key, f"a number with a unit ({unit})")
        return to_quantity(self.data[key], unit, self.where(key))


def to_quantity(value: Document, unit: str, where: str) -> float:
    """Read a value of a file as a float in `unit`, naming its place when it cannot be.

    >>> to_quantity("3.35 TB/s", "byte/second", "h100.yaml: device.bandwidth")
    3350000000000.0
    """
    from kvcalc.units import to_base

    if unit == "1":
        try:
            return float(value) if not isinstance(value, bool) else float("nan")
        except (TypeError, ValueError):
            raise ProfileError(f"{where}: expected a plain number, not {describe(value)}") from None
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = f"{value:g}" if isinstance(value, float) else str(value)
    if not isinstance(value, str):
        raise ProfileError(f"{where}: expected a number with a unit ({unit}), not {describe(value)}")
    try:
        return to_base(value, unit)
    except UnitError as error:
        raise ProfileError(f"{where}: {error}") from None


def describe(value: object) -> str:
    """Return a value as a message shows it, shortened.

    >>> describe([1, 2]), describe("x"), describe(None)
    ('a list', "'x'", 'nothing')
    """
    if value is None:
        return "nothing"
    if isinstance(value, Mapping | list):
        return "a list" if isinstance(value, list) else "keys with values"
    shown = repr(value)
    return shown if len(shown) <= 60 else shown[:57] + "..."


@contextmanager
def replacing(path: "str | Path") -> Iterator[Path]:
    """Give a file beside `path` to write, and put it in place of `path` when all went well.

    Raises
    ------
    SettingsError
        If the target cannot be written; nothing is left behind.
    """
    target = Path(path)
    try:
        target = Path(os.path.realpath(target))
        if target.exists() and not target.is_file() and not target.is_dir():
            yield target  # a pipe or device has no beside
            return
        if target.is_dir():
            raise IsADirectoryError(0, "is a folder")
        # The suffix stays last, since chart and table writers choose the format by it.
        beside = target.with_name(f".{target.stem}.{os.getpid()}{target.suffix}")
        try:
            yield beside
            os.replace(beside, target)
        finally:
            beside.unlink(missing_ok=True)
    except OSError as error:
        raise SettingsError(f"cannot write {path}: {(error.strerror or str(error)).lower()}") from None


def write_text(path: "str | Path", text: str) -> None:
    """Write a text file whole or not at all."""
    with replacing(path) as beside:
        beside.write_text(text, encoding="utf-8", newline="\n")


def dump_yaml(data: Document, inline_leaves: bool = False) -> str:
    r"""Return plain data as YAML that `parse_yaml` and YAML 1.1 readers take alike.

    >>> dump_yaml({"on": "h100", "retrieved": "2026-08-20"})
    "'on': h100\nretrieved: 2026-08-20\n"
    """
    import yaml

    # yaml's None means: mappings and lists that hold only plain values stand on one line.
    style = None if inline_leaves else False
    return str(
        yaml.dump(
            data,
            Dumper=_dumper(),
            sort_keys=False,
            allow_unicode=True,
            width=110,
            default_flow_style=style,
        )
    )


@cache
def _dumper() -> "type[yaml.SafeDumper]":
    import yaml

    class Dumper(yaml.SafeDumper):
        """Quotes words that YAML 1.1 or 1.2 would take for something else, dates excepted."""

        def ignore_aliases(self, data: object) -> bool:
            return True

    Dumper.yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in found if not tag.endswith(":timestamp")]
        for first, found in yaml.SafeDumper.yaml_implicit_resolvers.items()
    }
    for tag, pattern, first in _PLAIN:
        Dumper.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(rf"(?:{pattern})\Z"), list(first))
    return Dumper


def write_yaml(path: "str | Path", data: Document) -> None:
    """Write plain data as a YAML file, whole or not at all."""
    write_text(path, dump_yaml(data))
