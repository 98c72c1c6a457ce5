"""One check: what it is called, whose launches it looks at, where its reason is published."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from kvcalc.launch.checks.deployment import Deployment

Severity = Literal["error", "warning", "info"]
ALL = ("vllm", "sglang", "llama.cpp")


@dataclass(frozen=True)
class Finding:
    """What a check has to say about one launch."""

    severity: Severity
    message: str
    instead: str = ""
    where: str = ""


@dataclass(frozen=True)
class Check:
    """One idea that a launch is held against."""

    id: str
    source: str
    find: Callable[[Deployment], Iterable[Finding]]
    engines: tuple[str, ...] = ALL


def gb(size: float) -> str:
    """Return a size in decimal and binary, since half of all mistakes are between the two.

    >>> gb(64 * 2**30), gb(100e6)
    ('68.7 GB (64 GiB)', '100 MB (95.4 MiB)')
    """
    name, decimal, binary = ("GB", 1e9, 2**30) if size >= 1e9 else ("MB", 1e6, 2**20)
    return f"{_digits(size / decimal)} {name} ({_digits(size / binary)} {name[0]}iB)" if size else "0 bytes"


def _digits(value: float) -> str:
    return f"{value:.3g}" if value < 1000 else f"{round(value, -1):,.0f}"


def some(count: float, noun: str) -> str:
    """Return a count with its noun.

    >>> some(1, "worker"), some(2048, "token")
    ('1 worker', '2,048 tokens')
    """
    return f"{count:,.0f} {noun}" + ("" if count == 1 else "s")
