"""WEKA: sessions of coding agents, nested (one JSON object a session) or as lines with runs of block ids.

https://github.com/callanjfox/kv-cache-tester, folder traces; the same form is used for the sessions of
SemiAnalysis' cc-traces-weka.  A last block that is not full is left out.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from kvcalc.replay.readers.collect import Request
from kvcalc.replay.readers.dialect import Asked, Dialect
from kvcalc.replay.readers.values import BrokenLineError, Row, listed, name, seconds, whole
from kvcalc.replay.trace import Finding

USUAL_BLOCK = 64
"""[token]"""
DEEPEST = 8
"""How deep agents may call agents."""


class WekaLines(Dialect):
    """One request a line; `hash_ids` are runs [first, count] of ids that mean the same in all sessions."""

    name = "weka-lines"
    says = "block_size, t (s), in, out, session, tenant, hash_ids as [[first, count], ...]"
    usual_block = USUAL_BLOCK

    @classmethod
    def matches(cls, row: Row) -> bool:
        """Tell it by its short names."""
        return {"in", "hash_ids", "t"} <= row.keys()

    def requests(self, row: Row) -> Iterable[Request]:
        """Return the one request."""
        if "block_size" in row:
            self.state_block(whole(row, "block_size"), "block_size")
        yield Request(
            listed(row, "hash_ids"),
            whole(row, "in"),
            whole(row, "out", 0),
            seconds(row, "t"),
            name(row, "session"),
            name(row, "tenant", "model"),
            whole(row, "sub", 0),
        )


class Weka(Dialect):
    """One session an object, with the requests of its agents nested inside it."""

    name = "weka"
    says = "id, block_size, hash_id_scope, requests [t, in, out, hash_ids, ... or nested requests]"
    usual_block = USUAL_BLOCK
    free_starts = True

    def __init__(self, asked: Asked, file: Path) -> None:
        super().__init__(asked, file)
        self._sessions = 0
        self._nested = 0
        self._relative = 0  # nested agents whose times count from their own start
        self._local = 0

    @classmethod
    def matches(cls, row: Row) -> bool:
        """Tell it by its list of requests."""
        return isinstance(row.get("requests"), list)

    def requests(self, row: Row) -> Iterable[Request]:
        """Return the requests of a session, in the order of the file."""
        self.state_block(whole(row, "block_size", self.asked.block_tokens or USUAL_BLOCK), "block_size")
        scope = row.get("hash_id_scope", "local")
        if scope not in ("local", "global"):
            raise BrokenLineError(f"hash_id_scope: {scope!r:.40} is neither 'local' nor 'global'")
        session = name(row, "id") or str(self._sessions)
        found = list(self._flat(listed(row, "requests"), 0.0, 0, 0))
        start = self.asked.session_every * self._sessions
        self._sessions += 1
        self._local += scope == "local"
        # Ids mean nothing outside their session; the number tells apart sessions of one name.
        inside = f"{self._sessions}" if scope == "local" else None
        for request in found:
            yield replace(request, time=request.time + start, session=session, scope=inside)

    def _flat(self, rows: list[Row], start: float, depth: int, agent: int) -> Iterator[Request]:
        if depth > DEEPEST:
            raise BrokenLineError(f"requests: nested more than {DEEPEST} deep")
        for number, row in enumerate(rows, start=1):
            if not isinstance(row, dict):
                raise BrokenLineError(f"requests: {number} is no object")
            if isinstance(row.get("requests"), list):
                self._nested += 1
                yield from self._flat(row["requests"], self._start(row, start), depth + 1, self._nested)
                continue
            try:
                yield Request(
                    listed(row, "hash_ids"),
                    whole(row, "in"),
                    whole(row, "out", 0),
                    start + seconds(row, "t"),
                    tenant=name(row, "model"),
                    agent=agent,
                )
            except BrokenLineError as error:
                raise BrokenLineError(f"requests: {number}: {error}") from None

    def _start(self, row: Row, start: float) -> float:
        """Return what to add to a nested agent's times: they are the session's, or count from its start."""
        own = start + seconds(row, "t")
        inner = [one.get("t") for one in row["requests"] if isinstance(one, dict)]
        times = [one for one in inner if isinstance(one, int | float)]
        if own == own and times and start + min(times) < own:
            self._relative += 1
            return own
        return start

    def findings(self) -> tuple[Finding, ...]:
        """Tell how sessions were placed in time, and how ids were told apart."""
        every = self.asked.session_every
        placed = f"start {every:g} s after each other" if every else "all start at 0 s"
        found = [
            Finding(
                "session_starts",
                self._sessions,
                f"The file has no start times of its sessions ({self._sessions:,}): here they {placed} "
                "(--session-every). How many run at once decides what a finite cache hits.",
                warning=self._sessions > 1,
            )
        ]
        if self._local:
            text = "Block ids hold within a session: what sessions share, such as system prompts, never hits."
            found.append(Finding("local_ids", self._local, text, warning=self._sessions > 1))
        if self._nested:
            text = (
                f"{self._nested:,} nested agents stand in the session of their caller; the times of "
                f"{self._relative:,} count from the agent's own start."
            )
            found.append(Finding("nested_agents", self._nested, text))
        return tuple(found)
