"""vLLM's KV cache events, as lines of JSON: what was stored and removed, from which requests are rebuilt.

Fields: vllm/distributed/kv_events.py; the events come over ZMQ in msgpack and are dumped as JSON by whoever
listens, either as objects with a `type` or as arrays that begin with it.

Events tell of stored blocks alone.  A chain of blocks, each stored behind the one before, is one request
here; one that branches off a known block has that block's chain as its prefix.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from kvcalc.records import record
from kvcalc.replay.readers.collect import Request
from kvcalc.replay.readers.dialect import Asked, Dialect
from kvcalc.replay.readers.values import BrokenLineError, Row, listed, name, seconds, whole
from kvcalc.replay.trace import Finding

STORED, REMOVED, CLEARED = "BlockStored", "BlockRemoved", "AllBlocksCleared"
FIELDS = ("block_hashes", "parent_block_hash", "token_ids", "block_size", "lora_id", "medium")
"""Of BlockStored in an array, in their order."""
DEVICE = ("GPU", "gpu", None)
"""Media that are the device's own pool."""


@record
class _Chain:
    """A request that is still growing."""

    blocks: list[Any]
    time: float
    session: str | None


class KVEvents(Dialect):
    """One batch of events a line."""

    name = "kv-events"
    says = "vLLM's BlockStored and BlockRemoved events: {ts, events: [...]} or [ts, [...]]"
    numbered = True

    def __init__(self, asked: Asked, file: Path) -> None:
        super().__init__(asked, file)
        self._parent: dict[Any, Any] = {}
        self._made: list[_Chain] = []
        self._open: dict[Any, _Chain] = {}  # by last block
        self._lost: int = 0  # parents that were stored before the file begins
        self._removed = 0
        self._elsewhere = 0

    @classmethod
    def matches(cls, row: Row) -> bool:
        """Tell it by its list of events, or by an event that stands alone."""
        return isinstance(row.get("events"), list) or row.get("type") in (STORED, REMOVED, CLEARED)

    def requests(self, row: Row) -> Iterable[Request]:
        """Take the events of a line; requests come out at the end of the file."""
        events = row["events"] if isinstance(row.get("events"), list) else [row]
        time = seconds(row, "ts")
        for event in events:
            self._take(_named(event), time)
        return ()

    def _take(self, event: Row, time: float) -> None:
        kind = event.get("type")
        if kind in (REMOVED, CLEARED):
            self._removed += 1 if kind == CLEARED else len(listed(event, "block_hashes"))
            return
        if kind != STORED:
            raise BrokenLineError(f"type: {kind!r:.40} is no event; valid are {STORED}, {REMOVED}, {CLEARED}")
        if event.get("medium") not in DEVICE or event.get("group_idx") not in (None, 0):
            self._elsewhere += 1
            return
        self.state_block(whole(event, "block_size"), "block_size")
        blocks, parent = listed(event, "block_hashes"), event.get("parent_block_hash")
        for block in (*blocks, *([] if parent is None else [parent])):
            if isinstance(block, bool) or not isinstance(block, int | str):
                raise BrokenLineError("block_hashes: neither whole numbers nor texts")
        if blocks:
            self._store(blocks, parent, time, name(event, "session_id"))

    def _store(self, blocks: list[Any], parent: Any, time: float, session: str | None) -> None:  # noqa: ANN401
        known = any(block in self._parent for block in blocks)
        chain = self._open.pop(parent, None) if parent is not None and not known else None
        if chain is None:
            if parent is not None and parent not in self._parent:
                self._lost += 1
                self._parent[parent] = None
            chain = _Chain(self._prefix(parent), time, session)
            self._made.append(chain)
        for block in blocks:
            self._parent.setdefault(block, parent)
            parent = block
        chain.blocks.extend(blocks)
        self._open[blocks[-1]] = chain

    def _prefix(self, block: Any) -> list[Any]:  # noqa: ANN401
        found, seen = [], set()
        while block is not None and block not in seen:
            seen.add(block)
            found.append(block)
            block = self._parent.get(block)
        return found[::-1]

    def rest(self) -> Iterable[Request]:
        """Return the requests, in the order in which they stored their first block."""
        for chain in self._made:
            yield Request(chain.blocks, len(chain.blocks) * (self.stated or 0), 0, chain.time, chain.session)

    def findings(self) -> tuple[Finding, ...]:
        """Tell what events cannot show."""
        text = (
            "Events tell of stored blocks alone: requests that hit whole are not in them, and a later turn "
            "that continues the last block of an earlier one counts as the same request. Reuse here is a "
            "lower bound, and generated tokens count as input."
        )
        found = [Finding("stored_blocks_only", len(self._made), text, warning=True)]
        if self._removed:
            text = f"Removals are left out, since a replay finds its own: {self._removed:,}."
            found.append(Finding("removals", self._removed, text))
        if self._elsewhere:
            text = f"Events of slower tiers or further cache groups are left out: {self._elsewhere:,}."
            found.append(Finding("other_pools", self._elsewhere, text))
        if self._lost:
            text = f"Chains that begin behind a block from before the file: {self._lost:,}."
            found.append(Finding("lost_parents", self._lost, text, warning=True))
        return tuple(found)


def _named(event: Any) -> Row:  # noqa: ANN401 - as parsed
    """Return an event with its fields by name."""
    if isinstance(event, dict):
        return event
    if isinstance(event, list) and event and isinstance(event[0], str):
        fields = FIELDS if event[0] == STORED else ("block_hashes", "medium")
        return {"type": event[0], **dict(zip(fields, event[1:], strict=False))}
    raise BrokenLineError("events: neither an object with a type nor an array that begins with it")
