"""Bailian: chat_id, parent_chat_id, timestamp (s), type, turn and hash_ids of 16 tokens.

https://github.com/alibaba-edu/qwen-bailian-usagetraces-anon.  Blocks are hashed behind the chat template, so
that the last block of a turn changes with padding and thinking that is stripped.
"""

from collections.abc import Iterable
from pathlib import Path

from kvcalc.replay.readers.collect import Request
from kvcalc.replay.readers.dialect import Asked, Dialect
from kvcalc.replay.readers.values import Row, listed, name, seconds, whole
from kvcalc.replay.trace import Finding
from kvcalc.wording import counted

ROOT = "-1"
"""Parent of a chat's first request."""


class Bailian(Dialect):
    """One request a line; the requests of a conversation are linked by parent_chat_id."""

    name = "bailian"
    says = "chat_id, parent_chat_id, timestamp (s), input_length, output_length, type, turn, hash_ids"
    usual_block = 16  # the README of the traces

    def __init__(self, asked: Asked, file: Path) -> None:
        super().__init__(asked, file)
        self._session: dict[str, str] = {}
        self._orphans = 0

    @classmethod
    def matches(cls, row: Row) -> bool:
        """Tell it by its links between requests."""
        return "hash_ids" in row and "parent_chat_id" in row

    def requests(self, row: Row) -> Iterable[Request]:
        """Return the request; its session is the first request of its conversation."""
        chat, parent = name(row, "chat_id"), name(row, "parent_chat_id")
        session = chat
        if parent not in (None, ROOT):
            known = self._session.get(str(parent))
            self._orphans += known is None
            session = known or parent
        request = Request(
            listed(row, "hash_ids"),
            whole(row, "input_length"),
            whole(row, "output_length", 0),
            seconds(row, "timestamp"),
            session,
            name(row, "type"),
        )
        if chat is not None and session is not None:
            self._session[chat] = session
        yield request

    def findings(self) -> tuple[Finding, ...]:
        """Tell of parents outside the file, and what stands for a tenant."""
        kind = Finding(
            "tenant_is_type", 0, "The type of a request (text, search, ...) stands for its tenant."
        )
        if not self._orphans:
            return (kind,)
        going_on = counted(self._orphans, "request continues", "requests continue")
        text = f"{going_on} a chat that began before the file: each opens a session."
        return (kind, Finding("parents_outside", self._orphans, text))
