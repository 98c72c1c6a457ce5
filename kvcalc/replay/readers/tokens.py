"""Token ids or texts, one request a line, hashed here into chains of blocks."""

import hashlib
import math
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from kvcalc.documents import describe
from kvcalc.replay.readers.collect import Request
from kvcalc.replay.readers.dialect import Asked, Dialect
from kvcalc.replay.readers.values import BrokenLineError, Row, listed, name, seconds, whole
from kvcalc.replay.trace import Finding

USUAL_BLOCK = 16
"""Tokens of a block where --trace-block says nothing: vLLM's own [token]."""
BYTES_PER_TOKEN = 4
"""Bytes of UTF-8 text taken for one token: English prose in tokenizers of 100,000 and more entries [byte]."""

TOKENS = ("input_tok_ids", "input_token_ids", "prompt_token_ids", "input_ids", "token_ids", "tokens")
TEXTS = ("input", "prompt", "text", "messages")
INPUT_COUNTS = ("input_toks", "input_length")
"""Names under which a line may say how many ids it has."""
OUTPUT_TOKENS = ("output_tok_ids", "output_token_ids", "output_ids")
OUTPUT_TEXTS = ("output", "completion", "response")
TIMES = {"arrival_time_ns": "ns", "timestamp_us": "us", "timestamp_ms": "ms", "arrival": "", "timestamp": ""}
"""Names of times, with their unit where the name says it."""
UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
"""Units of time [second]."""
SINCE_1970 = {"ns": 1e17, "us": 1e14, "ms": 1e11}
"""Numbers from here on are taken for times since 1970 in this unit: each is a date between 1973 and 5138."""
SESSIONS = ("session_id", "conversation_id", "session", "chat_id")
TENANTS = ("tenant", "user", "model")


class Clock:
    """Reads times whose unit a file does not say, and remembers what they were taken for."""

    def __init__(self, unit: str | None) -> None:
        self.unit = unit
        self.taken: set[str] = set()

    def time(self, row: Row) -> float:
        """Return the time of a row, in the unit of its name, as said, or by its size."""
        key = next((key for key in TIMES if row.get(key) is not None), None)
        if key is None:
            return math.nan
        unit = TIMES[key] or self.unit or _unit_by_size(row[key])
        self.taken.add(unit)
        return seconds(row, key, UNITS[unit])

    def findings(self) -> tuple[Finding, ...]:
        """Tell the unit where nobody said it."""
        if self.unit is not None or not self.taken:
            return ()
        units = " and ".join(sorted(self.taken))
        text = f"Times are taken to be in {units}: the file does not fix their unit (--time-unit)."
        return (Finding("time_unit", len(self.taken), text, warning=len(self.taken) > 1),)


def _unit_by_size(value: object) -> str:
    try:
        size = abs(float(value))  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return "s"
    return next((unit for unit, least in SINCE_1970.items() if size >= least), "s")


class Hashed(Dialect):
    """Lines without block ids: their blocks are cut and hashed here."""

    numbered = True
    free_times = True

    def __init__(self, asked: Asked, file: Path) -> None:
        super().__init__(asked, file)
        self.stated = asked.block_tokens or USUAL_BLOCK
        self._clock = Clock(asked.time_unit)


class Tokens(Hashed):
    """One request a line, as a list of token ids."""

    name = "tokens"
    says = "input_tok_ids, prompt_token_ids, token_ids or tokens: a list of numbers, hashed here"

    def __init__(self, asked: Asked, file: Path) -> None:
        super().__init__(asked, file)
        self._differing = 0

    @classmethod
    def matches(cls, row: Row) -> bool:
        """Tell it by a list of numbers under one of the usual names."""
        return any(isinstance(row.get(key), list) and row[key][:1] and _is_id(row[key][0]) for key in TOKENS)

    def requests(self, row: Row) -> Iterable[Request]:
        """Return the request, its blocks hashed, each together with all before it."""
        key = next((key for key in TOKENS if key in row), TOKENS[0])
        ids = listed(row, key)
        if not all(_is_id(one) for one in ids):
            wrong = next(one for one in ids if not _is_id(one))
            raise BrokenLineError(f"{key}: {describe(wrong)} is no token id")
        said = next((whole(row, key) for key in INPUT_COUNTS if row.get(key) is not None), len(ids))
        self._differing += said != len(ids)
        size = self.stated or USUAL_BLOCK
        content = np.array(ids, np.int64).tobytes()
        output = next((len(listed(row, key)) for key in OUTPUT_TOKENS if key in row), None)
        yield Request(
            hashed(content, size * np.dtype(np.int64).itemsize),
            len(ids),
            whole(row, "output_toks", whole(row, "output_length", 0)) if output is None else output,
            self._clock.time(row),
            name(row, *SESSIONS),
            name(row, *TENANTS),
        )

    def findings(self) -> tuple[Finding, ...]:
        """Tell the block size, which the file does not have."""
        text = f"Token ids are hashed here in blocks of {self.stated} (--trace-block)."
        found = [Finding("hashed_here", self.stated or 0, text), *self._clock.findings()]
        if self._differing:
            text = (
                f"Requests that say another number of input tokens than they have ids: {self._differing:,}; "
                "the ids count here."
            )
            found.append(Finding("lengths_differ", self._differing, text, warning=True))
        return tuple(found)


class Texts(Hashed):
    """One request a line, as text."""

    name = "text"
    says = "input, prompt, text or messages: text, hashed here at 4 bytes a token"

    @classmethod
    def matches(cls, row: Row) -> bool:
        """Tell it by a text, or a list of messages, under one of the usual names."""
        return any(_text_of(row.get(key)) is not None for key in TEXTS)

    def requests(self, row: Row) -> Iterable[Request]:
        """Return the request, its text cut into blocks by bytes."""
        given = [_text_of(row.get(key)) for key in TEXTS]
        text = next((one for one in given if one is not None), None)
        if text is None:
            raise BrokenLineError(f"no text under {', '.join(TEXTS)}")
        content = text.encode("utf-8", "surrogatepass")
        size = self.stated or USUAL_BLOCK
        answers = [_text_of(row.get(key)) for key in OUTPUT_TEXTS]
        answer = next((one for one in answers if one is not None), "").encode("utf-8", "surrogatepass")
        yield Request(
            hashed(content, size * BYTES_PER_TOKEN),
            -(-len(content) // BYTES_PER_TOKEN),
            whole(row, "output_length", -(-len(answer) // BYTES_PER_TOKEN)),
            self._clock.time(row),
            name(row, *SESSIONS),
            name(row, *TENANTS),
        )

    def findings(self) -> tuple[Finding, ...]:
        """Tell that tokens are an estimate."""
        text = (
            f"Text is hashed here in blocks of {self.stated} tokens (--trace-block) of {BYTES_PER_TOKEN} "
            "bytes each: an estimate of a tokenizer, and no chat template."
        )
        return (Finding("estimated_tokens", BYTES_PER_TOKEN, text, warning=True), *self._clock.findings())


def hashed(content: bytes, block: int) -> list[str]:
    """Return the chain hashes of blocks of `block` bytes; the last one may be shorter.

    >>> hashed(b"aabb", 2)[0] == hashed(b"aacc", 2)[0], hashed(b"aabb", 2)[1] == hashed(b"ccbb", 2)[1]
    (True, False)
    """
    chain, found = hashlib.blake2b(digest_size=16), []
    for start in range(0, len(content), block):
        chain.update(content[start : start + block])
        found.append(chain.hexdigest())
    return found


def _is_id(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**32


def _text_of(value: object) -> str | None:
    """Return a text, or messages as one text with the role before each."""
    if isinstance(value, str):
        return value
    if not isinstance(value, Sequence) or not value:
        return None
    parts = []
    for item in value:
        if not isinstance(item, dict) or "content" not in item:
            return None
        content = item["content"]
        if isinstance(content, list):
            content = "".join(str(one.get("text", "")) for one in content if isinstance(one, dict))
        parts.append(f"{item.get('role', '')}\n{'' if content is None else content}\n")
    return "".join(parts)
