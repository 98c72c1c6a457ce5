"""What a hit rate means: the choices that two replays of one trace can differ in, and their defaults.

The same trace and an infinite cache give 0.36 to 0.41 by these choices alone (Mooncake conversation), so
that each of them is an input and is reported with the result.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated

from kvcalc.errors import SettingsError, did_you_mean
from kvcalc.records import record

TAIL, HEAD = "tail", "head"
PIN, THRASH, BYPASS, TRUNCATE = "pin", "thrash", "bypass", "truncate"
TOKEN, BLOCK, REQUEST = "token", "block", "request"
KEEP, DROP = "keep", "drop"
IGNORED, CACHED = "ignored", "cached"
ATOMIC, SEQUENTIAL = "atomic", "sequential"
TIME, FILE = "time", "file"
PREFIX, ANY = "prefix", "any"

WORDS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "touch": (TAIL, HEAD),
        "oversize": (TRUNCATE, THRASH, PIN, BYPASS),
        "weight": (TOKEN, BLOCK, REQUEST),
        "partial_block": (KEEP, DROP),
        "output": (IGNORED, CACHED),
        "lookup": (ATOMIC, SEQUENTIAL),
        "order": (TIME, FILE),
        "hits": (PREFIX, ANY),
    }
)
"""Switch -> its words, the default first."""


@record
class Semantics:
    """How a replay reads a trace and counts; the defaults are those of engines with a prefix tree."""

    touch: Annotated[str, WORDS["touch"]] = TAIL  # which block of a request is touched first
    oversize: Annotated[str, WORDS["oversize"]] = TRUNCATE  # a request longer than the cache
    weight: Annotated[str, WORDS["weight"]] = TOKEN  # what `hit_rate` is a share of
    partial_block: Annotated[str, WORDS["partial_block"]] = KEEP  # a last block that is not full
    output: Annotated[str, WORDS["output"]] = IGNORED  # whether generated tokens wait for the next turn
    warmup: Annotated[float, "1", "share"] = 0.0  # requests that fill the cache and are not counted
    lookup: Annotated[str, WORDS["lookup"]] = ATOMIC  # all of a request at once, or block by block
    order: Annotated[str, WORDS["order"]] = TIME  # by arrival (ties as in the file), or as in the file
    hits: Annotated[str, WORDS["hits"]] = PREFIX  # up to the first miss, or wherever they are

    def __post_init__(self) -> None:
        """Refuse words that are not known."""
        for name, words in WORDS.items():
            said = getattr(self, name)
            if said not in words:
                raise SettingsError(f"{name}: unknown word {said!r:.60}{did_you_mean(str(said), words)}")
        share = self.warmup
        if isinstance(share, bool) or not isinstance(share, (int, float)) or not 0 <= share < 1:
            raise SettingsError(f"warmup: expected a share from 0 to below 1, got {share!r:.60}")


MEANINGS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "touch": {
            TAIL: "the last block of a request is touched first, so that its head stays longest",
            HEAD: "the first block of a request is touched first, so that its head goes first",
        },
        "oversize": {
            TRUNCATE: "of a request longer than the cache the head alone is kept",
            THRASH: "a request longer than the cache runs through it",
            PIN: "blocks of the running request are not evicted; what does not fit is not kept",
            BYPASS: "a request longer than the cache is looked up and leaves the cache as it is",
        },
        "weight": {
            TOKEN: "hit tokens over input tokens",
            BLOCK: "hit blocks over blocks asked for",
            REQUEST: "the mean over requests of their hit blocks over their blocks",
        },
        "partial_block": {
            KEEP: "a last block that is not full counts as a block",
            DROP: "a last block that is not full is never cached",
        },
        "output": {
            IGNORED: "generated tokens are not cached",
            CACHED: "generated tokens are cached when the next turn of their session comes",
        },
        "lookup": {
            ATOMIC: "all blocks of a request are looked up before one is touched",
            SEQUENTIAL: "each block is looked up when it is touched",
        },
        "order": {TIME: "in the order of arrival, ties as in the file", FILE: "in the order of the file"},
        "hits": {
            PREFIX: "blocks hit up to the first miss of their request",
            ANY: "blocks hit wherever they stand in their request, which no prefix cache can use",
        },
    }
)
"""Switch -> word -> what it means, in one line."""
