"""NVIDIA Dynamo: request traces, agentic Mooncake with a header line, and Applied Compute's agent lengths.

Read from the fixtures of the ai-dynamo 1.6.1 wheel (dynamo/replay/tests/e2e/configs/unified_cli/fixtures).
Dynamo's Mooncake lines, also those with `delay`, are read by `mooncake`.
"""

from collections.abc import Iterable
from pathlib import Path

from kvcalc.replay.readers.collect import Request
from kvcalc.replay.readers.dialect import Asked, Dialect
from kvcalc.replay.readers.mooncake import MILLISECOND
from kvcalc.replay.readers.values import BrokenLineError, Row, inner, listed, name, seconds, whole
from kvcalc.replay.trace import Finding
from kvcalc.wording import counted

TRACE_SCHEMA = "dynamo.request.trace.v1"
AGENTIC_SCHEMA = "dynamo.agentic_mooncake"
AGENTIC_VERSION = 2
AGENT_BLOCK = 16
"""Tokens of the blocks that are made for Applied Compute's lengths, which have none [token]."""
MOST_TURNS = 100_000


class DynamoTrace(Dialect):
    """Events of a served trace, of which those of finished requests have block hashes."""

    name = "dynamo"
    says = "dynamo.request.trace.v1: request_end events with replay.input_sequence_hashes"
    numbered = True

    def __init__(self, asked: Asked, file: Path) -> None:
        super().__init__(asked, file)
        self._others = 0
        self._bare = 0

    @classmethod
    def matches(cls, row: Row) -> bool:
        """Tell it by its schema; payload events have none, and may come first."""
        event = row.get("event", row)
        return isinstance(event, dict) and (
            event.get("schema") == TRACE_SCHEMA or event.get("event_type") == "request_payload"
        )

    def requests(self, row: Row) -> Iterable[Request]:
        """Return the request of an event, if it is the end of one."""
        event = inner(row, "event") if "event" in row else row
        if event.get("event_type") != "request_end":
            self._others += 1
            return
        request = inner(event, "request")
        if request.get("replay") is None:
            self._bare += 1
            return
        replay = inner(request, "replay")
        self.state_block(whole(replay, "trace_block_size"), "trace_block_size")
        time = seconds(request, "request_received_ms", MILLISECOND)
        if time != time:
            time = seconds(event, "event_time_unix_ms", MILLISECOND)
        context = event.get("agent_context")
        yield Request(
            listed(replay, "input_sequence_hashes"),
            whole(replay, "input_length"),
            whole(request, "output_tokens", 0),
            time,
            name(context, "session_id") if isinstance(context, dict) else None,
            name(request, "model"),
        )

    def findings(self) -> tuple[Finding, ...]:
        """Tell of events that are no requests, and of requests without hashes."""
        found = []
        if self._others:
            text = f"Events that are no end of a request are left out: {self._others:,}."
            found.append(Finding("other_events", self._others, text))
        if self._bare:
            text = f"Requests without block hashes are left out: {self._bare:,}."
            found.append(Finding("without_hashes", self._bare, text, warning=True))
        return tuple(found)


class DynamoAgentic(Dialect):
    """Requests with dependencies behind a header line that gives the block size and the scope of ids."""

    name = "dynamo-agentic"
    says = "dynamo.agentic_mooncake: a header line, then request_id, play_id, session_id, hash_ids"

    def __init__(self, asked: Asked, file: Path) -> None:
        super().__init__(asked, file)
        self._local: bool | None = None
        self._waiting = 0

    @classmethod
    def matches(cls, row: Row) -> bool:
        """Tell it by its header."""
        return row.get("schema") == AGENTIC_SCHEMA

    def requests(self, row: Row) -> Iterable[Request]:
        """Return the request of a line; the header has none."""
        if "schema" in row:
            self._head(row)
            return
        if self._local is None:
            raise BrokenLineError("the header line with schema, block_size and hash_id_scope is missing")
        self._waiting += bool(row.get("dependencies"))
        yield Request(
            listed(row, "hash_ids"),
            whole(row, "input_length"),
            whole(row, "output_length", 0),
            seconds(row, "not_before_ms", MILLISECOND),
            name(row, "session_id"),
            name(row, "model"),
            scope=(name(row, "play_id") or "") if self._local else None,
        )

    def _head(self, row: Row) -> None:
        if row.get("schema") != AGENTIC_SCHEMA:
            raise BrokenLineError(f"schema: {row.get('schema')!r:.60} is not {AGENTIC_SCHEMA!r}")
        if row.get("version") != AGENTIC_VERSION:
            raise BrokenLineError(f"version: {row.get('version')!r:.20} is not known; {AGENTIC_VERSION} is")
        scope = row.get("hash_id_scope")
        if scope not in ("local", "global"):
            raise BrokenLineError(f"hash_id_scope: {scope!r:.40} is neither 'local' nor 'global'")
        self.state_block(whole(row, "block_size"), "block_size")
        self._local = scope == "local"

    def findings(self) -> tuple[Finding, ...]:
        """Tell that starts depend on other requests, and how far an id means the same."""
        found = []
        if self._waiting:
            starting = counted(self._waiting, "request starts", "requests start")
            text = (
                f"{starting} after others end; only the earliest start is known, and among those that share "
                "it the order of the file counts."
            )
            found.append(Finding("dependent_starts", self._waiting, text, warning=True))
        if self._local:
            text = "Block ids hold within a play: prefixes that plays share never hit."
            found.append(Finding("local_ids", 1, text))
        return tuple(found)


class AppliedCompute(Dialect):
    """One agent's run a line, as lengths alone: each turn is the last one and what came since."""

    name = "applied-compute"
    says = "num_turns, input_prompt_length, assistant_response_length, tool_call_output_length"

    def __init__(self, asked: Asked, file: Path) -> None:
        super().__init__(asked, file)
        self.stated = asked.block_tokens or AGENT_BLOCK
        self._runs = 0
        self._next = 0

    @classmethod
    def matches(cls, row: Row) -> bool:
        """Tell it by its lists of lengths."""
        return {"num_turns", "input_prompt_length", "assistant_response_length"} <= row.keys()

    def requests(self, row: Row) -> Iterable[Request]:
        """Return one request a turn, whose blocks continue those of the turn before."""
        turns = whole(row, "num_turns")
        answers, tools = _lengths(row, "assistant_response_length"), _lengths(row, "tool_call_output_length")
        waits = row.get("tool_call_latency", [0.0] * turns)
        if not isinstance(waits, list) or not len(answers) == len(tools) == len(waits) == turns <= MOST_TURNS:
            raise BrokenLineError(
                f"num_turns: {turns}, but the lists of lengths have another number of values"
            )
        tokens, time, size = whole(row, "input_prompt_length"), 0.0, self.stated or AGENT_BLOCK
        answers.append(whole(row, "final_assistant_response_length", 0))
        self._runs += 1
        base = self._next
        for turn, answer in enumerate(answers):
            full = tokens // size
            self._next = max(self._next, base + full)
            blocks = [[base, full]] if full else []
            yield Request(blocks, tokens, answer, time, str(self._runs))
            if turn < turns:
                tokens += answer + tools[turn]
                time += max(0.0, seconds({"tool_call_latency": waits[turn]}, "tool_call_latency"))

    def findings(self) -> tuple[Finding, ...]:
        """Tell what was assumed, since the file has lengths alone."""
        text = (
            "The file has lengths and no hashes: each turn is taken to begin with all of the turn before, "
            f"runs share nothing, and blocks have {self.stated} tokens. Starts are tool times alone."
        )
        return (Finding("made_of_lengths", self._runs, text, warning=True),)


def _lengths(row: Row, key: str) -> list[int]:
    return [whole({key: value}, key) for value in listed(row, key)]
