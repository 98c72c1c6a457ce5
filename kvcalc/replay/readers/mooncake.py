"""Mooncake: timestamp (ms), input_length, output_length, hash_ids of 512 tokens, the last one partial.

https://github.com/kvcache-ai/Mooncake, FAST25-release/traces; Dynamo adds `session_id`, and `delay` to lines
that bring only what is new since the session's line before ("delta").
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from kvcalc.replay.readers.collect import Request
from kvcalc.replay.readers.dialect import Asked, Dialect
from kvcalc.replay.readers.values import BrokenLineError, Row, listed, name, seconds, whole
from kvcalc.replay.trace import Finding

if TYPE_CHECKING:
    from numpy.typing import NDArray

MILLISECOND = 1e-3
"""[second]"""


class Heads:
    """First blocks of sessions, which every line repeats unless it has only what is new ("delta")."""

    def __init__(self) -> None:
        self._of: dict[str, object] = {}

    def left_out(self, row: Row) -> bool:
        """Tell whether a line has a delay since its session's line before, but not that line's blocks."""
        blocks = row.get("hash_ids")
        if not isinstance(blocks, list) or not blocks:
            return False
        session = str(row.get("session_id"))
        return self._of.setdefault(session, blocks[0]) != blocks[0] and row.get("delay") is not None


class Mooncake(Dialect):
    """One request a line, with all of its blocks."""

    name = "mooncake"
    says = "timestamp (ms), input_length, output_length, hash_ids"
    usual_block = 512  # FAST'25, section 4; the released traces

    def __init__(self, asked: Asked, file: Path) -> None:
        super().__init__(asked, file)
        self._heads = Heads()

    def rather(self, row: Row) -> type[Dialect] | None:
        """Return the delta dialect at its first sign: sessions may go on only after many first turns."""
        return MooncakeDelta if "session_id" in row and self._heads.left_out(row) else None

    @classmethod
    def matches(cls, row: Row) -> bool:
        """Tell it by its columns; `chat_id` would be Bailian's."""
        return "hash_ids" in row and "input_length" in row and not isinstance(row["hash_ids"], dict)

    def requests(self, row: Row) -> Iterable[Request]:
        """Return the one request."""
        if "block_size" in row:
            self.state_block(whole(row, "block_size"), "block_size")
        yield Request(
            listed(row, "hash_ids"),
            whole(row, "input_length"),
            whole(row, "output_length", 0),
            seconds(row, "timestamp", MILLISECOND),
            name(row, "session_id"),
            name(row, "tenant", "model"),
        )


class MooncakeDelta(Mooncake):
    """One request a line, with what it adds to the requests of its session before."""

    name = "mooncake-delta"
    says = "mooncake with session_id, where each line has only its session's new blocks (Dynamo)"
    numbered = True

    def __init__(self, asked: Asked, file: Path) -> None:
        super().__init__(asked, file)
        self._size = asked.block_tokens or self.usual_block
        self._blocks: dict[str, list[object]] = {}
        self._tokens: dict[str, int] = {}
        self._clock: dict[str, float] = {}
        self._of_block: dict[object, int] = {}

    @classmethod
    def matches_any(cls, rows: Sequence[Row]) -> bool:
        """Tell it by the delay since the line before, and by lines that do not repeat that line's blocks."""
        heads = Heads()
        return any(heads.left_out(row) for row in rows if cls.matches(row))

    def rather(self, row: Row) -> type[Dialect] | None:
        """Stay with it."""
        return None

    def requests(self, row: Row) -> Iterable[Request]:
        """Return the request with the blocks of its session before its own."""
        for request in super().requests(row):
            session = request.session
            if session is None:
                raise BrokenLineError("session_id: missing, but each line continues its session")
            self._weigh(request.blocks, request.input_tokens)
            blocks = [*self._blocks.get(session, ()), *request.blocks]
            tokens = self._tokens.get(session, 0) + request.input_tokens
            self._blocks[session] = blocks
            # What was generated stands in the next input, but has no ids of its own.
            self._tokens[session] = tokens + request.output_tokens
            time = request.time
            if time != time:
                time = self._clock.get(session, 0.0) + seconds(row, "delay", MILLISECOND)
            self._clock[session] = time
            yield Request(blocks, tokens, request.output_tokens, time, session, request.tenant)

    def _weigh(self, blocks: list[object], tokens: int) -> None:
        """Note the tokens of a line's blocks, all full but its last."""
        size = self.stated or self._size
        if len(blocks) != -(-tokens // size):
            raise BrokenLineError(
                f"{len(blocks)} blocks of {size} tokens for {tokens} new ones; is --trace-block right?"
            )
        for place, block in enumerate(blocks):
            if isinstance(block, int | str):
                self._of_block.setdefault(block, min(size, tokens - place * size))

    def weights(self, names: tuple[object, ...]) -> "NDArray[np.int64]":
        """Return the tokens of each block; the last one of a line is seldom full."""
        return np.array([self._of_block[one] for one in names], np.int64)

    def findings(self) -> tuple[Finding, ...]:
        """Tell that the ids of what was generated are missing."""
        text = (
            "Each line continues its session: its blocks stand behind those of the lines before. What was "
            "generated is part of the next input but has no block ids, so that hits on it cannot be seen."
        )
        return (Finding("delta", len(self._blocks), text, warning=True),)
