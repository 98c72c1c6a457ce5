"""What an engine's log says of its KV memory, its load and its evictions."""

import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from kvcalc.errors import ProfileError

MOST_BYTES = 64 * 2**20
"""How much of a log is read [byte]: its beginning, which has the sizes, and this much of what follows."""

_GIB = 2.0**30
_SIZES = {"GiB": 2.0**30, "GB": 2.0**30, "MiB": 2.0**20, "MB": 2.0**20}
# vLLM and SGLang both print binary gigabytes, whatever sign they put behind them.

_NUMBER = r"([0-9][0-9,]{0,15}(?:\.[0-9]{1,9})?)"
_KV_BYTES = re.compile(rf"Available KV cache memory: {_NUMBER} (GiB|GB|MiB|MB)")
_KV_TOKENS = (
    re.compile(rf"GPU KV cache size: {_NUMBER} tokens"),
    re.compile(rf"max_total_num_tokens={_NUMBER}"),
    re.compile(rf"KV Cache is allocated\. #tokens: {_NUMBER}"),
)
_BLOCKS = re.compile(rf"# (?:GPU|cuda) blocks: {_NUMBER}")
_BLOCK_SIZE = re.compile(r"block_size['\"]?[=:]\s*([0-9]+)")
_USAGE = (
    re.compile(rf"GPU KV cache usage: {_NUMBER}%"),
    re.compile(rf"token usage: {_NUMBER}\b"),
)
_RUNNING = re.compile(r"Running: ([0-9]+) reqs|#running-req: ([0-9]+)")
_WAITING = re.compile(r"Waiting: ([0-9]+) reqs|#queue-req: ([0-9]+)")
_HIT = re.compile(rf"Prefix cache hit rate: (?:GPU: )?{_NUMBER}%")
_PREEMPTED = re.compile(r"Sequence group (\S+) is preempted by|[Pp]reempt(?:ed|ing) request (\S+)")
_RETRACTED = re.compile(r"Retract requests\. #retracted_reqs: ([0-9]+)")
_OOM = re.compile(r"OutOfMemoryError|CUDA out of memory|HIP out of memory")
_ENGINES = (
    ("vLLM", re.compile(r"\bvllm\b|GPU KV cache|# GPU blocks", re.IGNORECASE)),
    ("SGLang", re.compile(r"\bsglang\b|max_total_num_tokens|#running-req", re.IGNORECASE)),
)


@dataclass(slots=True)
class LogFacts:
    """What was found; None where no line says it."""

    file: str
    engines: tuple[str, ...] = ()
    kv_bytes: float | None = None  # per GPU
    kv_tokens: float | None = None
    blocks: float | None = None
    block_size: int | None = None
    usage: float | None = None  # highest that is printed
    running: int | None = None  # at that moment
    waiting: int | None = None
    hit_rate: float | None = None  # last one printed
    out_of_memory: int = 0  # lines
    preempted: Counter[str] = field(default_factory=Counter)  # by request
    retracted: int = 0

    @property
    def preemptions(self) -> int:
        """Evictions that the log tells of."""
        return sum(self.preempted.values()) + self.retracted

    @property
    def most_preempted(self) -> int:
        """Evictions of the request that was evicted most often."""
        return max(self.preempted.values(), default=0)


def read_log(path: str) -> LogFacts:
    """Read an engine's log; lines that say nothing are passed over.

    Raises
    ------
    ProfileError
        If the file cannot be read, or no line of it is an engine's.
    """
    try:
        with Path(path).expanduser().open("rb") as file:
            text = file.read(MOST_BYTES).decode("utf-8", errors="replace")
    except OSError as error:
        raise ProfileError(f"{path}: {(error.strerror or str(error)).lower()}") from None
    facts = LogFacts(path)
    facts.engines = tuple(name for name, pattern in _ENGINES if pattern.search(text))
    for line in text.splitlines():
        _sizes(line, facts)
        _load(line, facts)
        _evictions(line, facts)
    if not facts.engines and not facts.out_of_memory:
        raise ProfileError(f"{path}: no line of vLLM or SGLang in it")
    if facts.kv_tokens is None and facts.blocks is not None and facts.block_size is not None:
        facts.kv_tokens = facts.blocks * facts.block_size
    return facts


def _sizes(line: str, facts: LogFacts) -> None:
    if match := _KV_BYTES.search(line):
        facts.kv_bytes = _number(match[1]) * _SIZES[match[2]]
    for pattern in _KV_TOKENS:
        if match := pattern.search(line):
            facts.kv_tokens = _number(match[1])
    if match := _BLOCKS.search(line):
        facts.blocks = _number(match[1])
    if match := _BLOCK_SIZE.search(line):
        facts.block_size = int(match[1][:9])


def _load(line: str, facts: LogFacts) -> None:
    for pattern, factor in zip(_USAGE, (0.01, 1.0), strict=True):
        match = pattern.search(line)
        usage = _number(match[1]) * factor if match else None
        if usage is not None and usage <= 1 and usage >= (facts.usage or 0.0):
            facts.usage = usage
            facts.running, facts.waiting = _first(_RUNNING, line), _first(_WAITING, line)
    if match := _HIT.search(line):
        facts.hit_rate = min(1.0, _number(match[1]) / 100)


def _evictions(line: str, facts: LogFacts) -> None:
    if match := _PREEMPTED.search(line):
        facts.preempted[match[1] or match[2]] += 1
    if match := _RETRACTED.search(line):
        facts.retracted += int(match[1][:9])
    if _OOM.search(line):
        facts.out_of_memory += 1


def _first(pattern: re.Pattern[str], line: str) -> int | None:
    match = pattern.search(line)
    return int(next(group for group in match.groups() if group)[:9]) if match else None


def _number(text: str) -> float:
    return float(text.replace(",", ""))
