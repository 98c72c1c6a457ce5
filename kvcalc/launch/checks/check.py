"""One check: what it is called, whose launches it looks at, where its reason is published."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from kvcalc.launch.checks.deployment import Deployment
from kvcalc.launch.connectors import uses_lmcache
from kvcalc.launch.settings import LaunchSettings
from kvcalc.wording import counted

Severity = Literal["error", "warning", "info"]
ALL = ("vllm", "sglang", "llama.cpp")

LLAMACPP_SERVER = "https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md"
LMCACHE_KEYS = "https://docs.lmcache.ai/api_reference/configurations.html"
SGLANG_HICACHE = "https://docs.sglang.io/advanced_features/hicache_best_practices.html"
SGLANG_FLAGS = "https://docs.sglang.io/advanced_features/server_arguments.html"
VLLM_OFFLOADING = "https://docs.vllm.ai/en/latest/features/kv_offloading_usage/"
"""Pages that checks of several engines are of."""


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
    sources: Mapping[str, str] = field(default_factory=dict)  # by engine or "lmcache", where they differ

    def source_for(self, launch: LaunchSettings) -> str:
        """Return the page that speaks of the launch's own engine, or of LMCache where that holds the tier."""
        whose = "lmcache" if uses_lmcache(launch) else launch.engine
        return self.sources.get(whose, self.source)


def gb(size: float) -> str:
    """Return a size in decimal and binary, since half of all mistakes are between the two.

    >>> gb(64 * 2**30), gb(100e6), gb(2048), gb(100)
    ('68.7 GB (64 GiB)', '100 MB (95.4 MiB)', '2.05 kB (2 KiB)', '100 bytes')
    """
    if size < 1000:
        return some(size, "byte")
    units = (("GB", "GiB", 1e9, 2**30), ("MB", "MiB", 1e6, 2**20), ("kB", "KiB", 1e3, 2**10))
    name, other, decimal, binary = next(unit for unit in units if size >= unit[2])
    return f"{_digits(size / decimal)} {name} ({_digits(size / binary)} {other})"


def _digits(value: float) -> str:
    return f"{value:.3g}" if value < 1000 else f"{round(value, -1):,.0f}"


def some(count: float, noun: str) -> str:
    """Return a count with its noun.

    >>> some(1, "worker"), some(2048, "token")
    ('1 worker', '2,048 tokens')
    """
    return counted(count, noun)
