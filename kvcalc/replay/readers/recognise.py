"""Which dialect a file is in, from its first lines."""

from collections.abc import Sequence

from kvcalc.errors import ProfileError, SettingsError, did_you_mean
from kvcalc.replay.readers.bailian import Bailian
from kvcalc.replay.readers.dialect import Dialect
from kvcalc.replay.readers.dynamo import AppliedCompute, DynamoAgentic, DynamoTrace
from kvcalc.replay.readers.kv_events import KVEvents
from kvcalc.replay.readers.mooncake import Mooncake, MooncakeDelta
from kvcalc.replay.readers.ragpulse import RagPulse
from kvcalc.replay.readers.tokens import Texts, Tokens
from kvcalc.replay.readers.values import Row
from kvcalc.replay.readers.weka import Weka, WekaLines

DIALECTS: tuple[type[Dialect], ...] = (
    DynamoAgentic,
    DynamoTrace,
    Bailian,
    RagPulse,
    MooncakeDelta,
    Mooncake,
    WekaLines,
    Weka,
    AppliedCompute,
    KVEvents,
    Tokens,
    Texts,
)
"""In the order in which they are tried."""

WITHOUT_HASHES = {
    "ContextTokens": "Azure's trace",
    "Request tokens": "BurstGPT",
    "newly_append_tokens": "TraceLab",
    "input_length": "this file",
    "prompt": "this file",
}
"""Columns of traces that have lengths alone."""


def dialect_named(name: str) -> type[Dialect]:
    """Return a dialect by its name.

    >>> dialect_named("mooncake").usual_block
    512
    """
    found = next((one for one in DIALECTS if one.name == name), None)
    if found is None:
        names = [one.name for one in DIALECTS]
        raise SettingsError(f"--dialect: unknown dialect {name!r:.60}{did_you_mean(name, names)}")
    return found


def recognised(rows: Sequence[Row], where: str) -> type[Dialect]:
    """Return the dialect of the first rows of a file."""
    for kind in DIALECTS:
        if kind.matches_any(rows):
            return kind
    whose = next((whose for key, whose in WITHOUT_HASHES.items() if key in rows[0]), None)
    if whose is not None:
        raise ProfileError(
            f"{where}: {whose} has lengths but no block hashes: what a cache hits cannot be known from it"
        )
    columns = ", ".join(str(key)[:30] for key in list(rows[0])[:6])
    names = ", ".join(one.name for one in DIALECTS)
    raise ProfileError(f"{where}: no known dialect (columns {columns}); --dialect takes {names}")
