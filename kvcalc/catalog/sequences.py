"""A file of live sequences -> `LiveSequence`s, strictly."""

import math

from kvcalc.catalog.rows import read_rows
from kvcalc.documents import Section, describe
from kvcalc.errors import KvcalcError, ProfileError, did_you_mean
from kvcalc.eviction.sequences import FINISHED, RUNNING, STATES, LiveSequence
from kvcalc.units import to_tokens

COLUMNS = (
    *("id", "tokens_done", "tokens_remaining", "tokens_remaining_p50", "tokens_remaining_p95"),
    *("state", "tenant", "priority", "idle_seconds", "evicted_seconds_ago", "blocks", "shared_blocks"),
)
"""Columns of a sequence file; all but id, tokens done and tokens remaining may be missing."""

MOST_TOKENS = 10**9
"""Longest sequence that is believed [token]; far above any context."""


def read_sequences(path: str) -> tuple[LiveSequence, ...]:
    """Read a CSV, JSON, JSONL or YAML file of live sequences.

    Raises
    ------
    ProfileError
        If a column is unknown or missing, a value is not what its column holds, or an id is there
        twice; names the file, the row and the column.
    """
    found: dict[str, LiveSequence] = {}
    for row in read_rows(path, "sequences", COLUMNS):
        sequence = _sequence(row)
        if sequence.id in found:
            raise ProfileError(f"{row.where('id')}: {sequence.id!r:.60} is there twice")
        found[sequence.id] = sequence
    if not found:
        raise ProfileError(f"{path}: no sequences; give at least {', '.join(COLUMNS[:3])}")
    return tuple(found.values())


def _sequence(row: Section) -> LiveSequence:
    blocks = whole(row, "blocks") if "blocks" in row else None
    shared = whole(row, "shared_blocks") if "shared_blocks" in row else 0
    if blocks is not None and shared > blocks:
        raise ProfileError(
            f"{row.where('shared_blocks')}: {shared} is more than the {blocks} blocks it holds"
        )
    state = _state(row)
    return LiveSequence(
        id=_id(row),
        tokens_done=whole(row, "tokens_done"),
        tokens_remaining=_remaining(row, state),
        tokens_remaining_p95=whole(row, "tokens_remaining_p95") if "tokens_remaining_p95" in row else None,
        state=state,
        tenant=str(row.data["tenant"]) if "tenant" in row else None,
        priority=number(row, "priority", least=-math.inf) if "priority" in row else 0.0,
        idle_seconds=number(row, "idle_seconds") if "idle_seconds" in row else 0.0,
        evicted_seconds_ago=number(row, "evicted_seconds_ago") if "evicted_seconds_ago" in row else None,
        blocks=blocks,
        shared_blocks=shared,
    )


def _id(row: Section) -> str:
    value = row.data.get("id")
    if isinstance(value, bool) or not isinstance(value, (str, int)) or value == "":
        row.fail("id", "a name")
    return str(value)


def _state(row: Section) -> str:
    if "state" not in row:
        return RUNNING
    word = str(row.data["state"])
    if word not in STATES:
        raise ProfileError(f"{row.where('state')}: unknown state {word!r:.60}{did_you_mean(word, STATES)}")
    return word


def _remaining(row: Section, state: str) -> int:
    """Return what is still to be generated: the known number, else the expected one in the middle."""
    for name in ("tokens_remaining", "tokens_remaining_p50"):
        if name in row:
            return whole(row, name)
    if state == FINISHED:
        return 0
    return whole(row, "tokens_remaining")


def whole(row: Section, name: str, least: int = 0) -> int:
    """Return a whole number of tokens, blocks or the like, as a number or as text such as 32k."""
    value = row.data.get(name)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        row.fail(name, "a whole number")
    try:
        count = to_tokens(str(value))
    except KvcalcError as error:
        raise ProfileError(f"{row.where(name)}: {error}") from None
    if not least <= count <= MOST_TOKENS:
        raise ProfileError(f"{row.where(name)}: {describe(value)} is not between {least} and {MOST_TOKENS:,}")
    return count


def number(row: Section, name: str, least: float = 0.0) -> float:
    """Return a finite number, as a number or as text without a unit."""
    value = row.data.get(name)
    try:
        found = float(value) if isinstance(value, (int, float, str)) and not isinstance(value, bool) else None
    except (ValueError, OverflowError):
        found = None
    if found is None or not math.isfinite(found):
        row.fail(name, "a number")
    if found < least:
        raise ProfileError(f"{row.where(name)}: {describe(value)} is below {least:g}")
    return found
