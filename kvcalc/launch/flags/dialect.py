"""The vocabulary of the flag tables."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Literal

from kvcalc.launch.settings import Scope

Kind = Literal["count", "integer", "number", "layers", "size", "text", "switch", "off", "json", "items"]
"""How a value is read.

count: a whole number of at least 1.  layers: a whole number, auto or all.  size: a number that may end
in k, M, G (decimal) or K, Mi, Gi (binary).  switch: present means true, `--no-` false.  off: present
means false.  items: a JSON list of objects.
"""

Release = tuple[int, int]


@dataclass(frozen=True)
class Flag:
    """One flag, key or environment variable of an engine."""

    names: tuple[str, ...]  # the first is the one to write
    field: str  # kvcalc's name of what it says
    kind: Kind = "text"
    unit: str = ""
    scope: Scope = ""
    key: str = ""  # the key of `kvcalc.scenario.KEYS` that it sets
    since: Release | None = None
    until: Release | None = None  # last release that has it
    implies: object = None  # what the bare flag stands for, where its value may be left out


@dataclass(frozen=True)
class Dialect:
    """How one engine is told what to do."""

    engine: str
    programs: tuple[tuple[str, ...], ...]  # words that start it: ("vllm", "serve")
    images: tuple[str, ...]  # parts of container image names that start it
    flags: tuple[Flag, ...]
    names: str  # file of all flags that it has
    complete: bool  # whether that file has all of them, so that others are mistakes
    underscores: bool = False  # `--max_model_len` is `--max-model-len`
    prefixes: bool = False  # an unambiguous beginning of a flag is enough (argparse)
    environment: tuple[Flag, ...] = ()
    document: tuple[Flag, ...] = ()  # keys of the JSON objects that some flags take
    defaults: Mapping[str, object] = field(default_factory=dict)


@cache
def known_names(file: str) -> Mapping[str, tuple[Release | None, Release | None]]:
    """Return the flags that a file of `kvcalc.launch.names` lists, with first and last release."""
    text = (resources.files("kvcalc.launch") / "names" / file).read_text(encoding="utf-8")
    found: dict[str, tuple[Release | None, Release | None]] = {}
    for line in text.splitlines():
        name, *releases = line.split()
        if name != "#":
            since, until = [*map(_release, releases), None, None][:2]
            found[name] = (since, until)
    return found


def _release(text: str) -> Release | None:
    major, _, minor = text.partition(".")
    return None if text == "-" else (int(major), int(minor))
