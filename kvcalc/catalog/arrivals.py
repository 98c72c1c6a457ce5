"""A file of requests that arrived -> `Requests`: kvcalc's own columns, Azure's, or any trace of blocks."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType

import numpy as np

from kvcalc.catalog.rows import read_rows
from kvcalc.catalog.sequences import number, whole
from kvcalc.documents import Section, describe
from kvcalc.errors import ProfileError
from kvcalc.eviction.load import Requests


@dataclass(frozen=True, slots=True)
class Dialect:
    """How one kind of trace names arrival, prompt and generated tokens."""

    arrival: str
    prompt: str
    generate: str
    seconds: float | None = 1.0  # of one unit of arrival; None: a date and time
    others: tuple[str, ...] = ()  # columns that say nothing of arrivals


DIALECTS: Mapping[str, Dialect] = MappingProxyType(
    {
        "kvcalc": Dialect("arrival", "prompt", "generate", others=("cached", "priority")),
        # https://github.com/kvcache-ai/Mooncake: milliseconds, and hashes of blocks.
        "mooncake": Dialect("timestamp", "input_length", "output_length", 1e-3, ("hash_ids",)),
        # https://github.com/Azure/AzurePublicDataset, LLM inference traces.
        "azure": Dialect("TIMESTAMP", "ContextTokens", "GeneratedTokens", None),
    }
)

_COLUMNS = tuple(
    name for one in DIALECTS.values() for name in (one.arrival, one.prompt, one.generate, *one.others)
)


def read_arrivals(path: str) -> Requests:
    """Read a trace (CSV, JSON, JSONL or YAML, or one that `kvcalc replay` reads), in order of arrival.

    Raises
    ------
    ProfileError
        If a column is unknown or missing, a value cannot be read, or the trace has no rate.
    """
    if _has_blocks(path):
        return _of_blocks(path)
    rows = [_row(section) for section in read_rows(path, "requests", _COLUMNS)]
    if len(rows) < 2:
        raise ProfileError(f"{path}: a trace needs two requests or more")
    table = np.array(sorted(rows, key=lambda row: row[0]), dtype=float)
    arrival = table[:, 0] - table[0, 0]
    if arrival[-1] == 0:
        raise ProfileError(f"{path}: all requests arrive at once, so that there is no rate")
    prompts, generated, hits = (table[:, place].astype(np.int64) for place in (1, 2, 3))
    return Requests(arrival, prompts, generated, hits, table[:, 4])


def _has_blocks(path: str) -> bool:
    """Tell a trace with block hashes, in any dialect that `kvcalc replay` reads, compressed or not."""
    if path.endswith((".csv", ".yaml", ".yml")):
        return False
    from kvcalc.replay.readers import is_trace

    return is_trace(path)


def _of_blocks(path: str) -> Requests:
    """Read the arrivals of a trace with block hashes; each has one token in and out at least."""
    from kvcalc.replay.readers import read_trace

    trace = read_trace(path)
    if trace.requests < 2:
        raise ProfileError(f"{path}: a trace needs two requests or more")
    if np.isnan(trace.time).any():
        raise ProfileError(f"{path}: requests without a time of arrival")
    order = np.argsort(trace.time, kind="stable")
    arrival = trace.time[order] - trace.time[order[0]]
    if arrival[-1] == 0:
        raise ProfileError(f"{path}: all requests arrive at once, so that there is no rate")
    prompts, generated = (np.maximum(one[order], 1) for one in (trace.input_tokens, trace.output_tokens))
    return Requests(arrival, prompts, generated, np.zeros_like(prompts), np.zeros(len(order)))


def _row(section: Section) -> tuple[float, int, int, int, float]:
    known = [one for one in DIALECTS.values() if one.arrival in section]
    dialect = known[0] if known else DIALECTS["kvcalc"]
    section.check((dialect.arrival, dialect.prompt, dialect.generate), dialect.others)
    prompt = whole(section, dialect.prompt, least=1)
    return (
        _second(section, dialect),
        prompt,
        whole(section, dialect.generate, least=1),
        # The last token of a prompt is always computed: it gives the first that is generated.
        min(whole(section, "cached"), prompt - 1) if "cached" in section else 0,
        number(section, "priority", least=-math.inf) if "priority" in section else 0.0,
    )


def _second(section: Section, dialect: Dialect) -> float:
    if dialect.seconds is not None:
        return number(section, dialect.arrival) * dialect.seconds
    text = str(section.data[dialect.arrival])
    try:
        return datetime.fromisoformat(text[:26]).timestamp()
    except ValueError:
        place = section.where(dialect.arrival)
        raise ProfileError(f"{place}: {describe(text)} is not a date and time") from None
