"""RAGPulse: requests as components (system prompt, passages, history, web search, question), ids of texts.

https://github.com/flashserve/RAGPulse, folder data: 0_trace.jsonl beside five files that give the tokens of
each component.  An id stands for a text wherever it comes in the prompt: it is no chain hash.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from kvcalc.errors import ProfileError
from kvcalc.replay.readers.collect import Request
from kvcalc.replay.readers.dialect import Asked, Dialect
from kvcalc.replay.readers.stream import CutOffError, lines, parser
from kvcalc.replay.readers.values import BrokenLineError, Row, inner, listed, name, seconds, whole
from kvcalc.replay.trace import Finding
from kvcalc.wording import counted

if TYPE_CHECKING:
    from numpy.typing import NDArray

PARTS = ("sys_prompt", "passages_ids", "history", "web_search", "user_input")
"""The components in the order in which a prompt has them."""
LENGTHS = ("1_sys_prompt", "2_passages", "3_history", "4_user_input", "5_web_search")
"""Files beside the trace with the tokens of each component."""


def of_requests(files: list[Path]) -> list[Path]:
    """Return the files of a folder that have requests: all but those that give components their tokens."""
    beside = [file for file in files if file.name.partition(".")[0] in LENGTHS]
    return files if len(beside) < len(LENGTHS) else [file for file in files if file not in beside]


class RagPulse(Dialect):
    """One request a line, as components with a length each."""

    name = "ragpulse"
    says = (
        "timestamp (s), input_length, hash_ids {sys_prompt, passages_ids, ...}, session_id; lengths beside it"
    )
    numbered = True

    def __init__(self, asked: Asked, file: Path) -> None:
        super().__init__(asked, file)
        self._tokens = _component_tokens(file)
        self._differing = 0
        if asked.block_tokens is not None:
            raise ProfileError("--trace-block: the components of RAGPulse have no common size")

    @classmethod
    def matches(cls, row: Row) -> bool:
        """Tell it by its named components."""
        return isinstance(row.get("hash_ids"), dict) and bool(row["hash_ids"].keys() & set(PARTS))

    def requests(self, row: Row) -> Iterable[Request]:
        """Return the request, its components in the order of the prompt."""
        parts = inner(row, "hash_ids")
        unknown = sorted(parts.keys() - set(PARTS))
        if unknown:
            raise BrokenLineError(
                f"hash_ids: {unknown[0]!r:.40} is no component; valid are {', '.join(PARTS)}"
            )
        blocks = [block for part in PARTS if part in parts for block in listed(parts, part)]
        for block in blocks:
            if isinstance(block, bool) or not isinstance(block, int) or block not in self._tokens:
                raise BrokenLineError(f"hash_ids: component {block!r:.40} has no length in the files beside")
        # The components are what is cached; the template around them is counted as input alone.
        length, tokens = whole(row, "input_length"), sum(self._tokens[block] for block in blocks)
        self._differing += length != tokens
        yield Request(
            blocks,
            tokens,
            whole(row, "output_length", 0),
            seconds(row, "timestamp"),
            name(row, "session_id"),
        )

    def findings(self) -> tuple[Finding, ...]:
        """Tell which length counts."""
        if not self._differing:
            return ()
        having = counted(self._differing, "request has", "requests have")
        text = (
            f"{having} another input_length than the components together; the tokens of "
            "the components count here."
        )
        return (Finding("lengths_differ", self._differing, text),)

    def weights(self, names: tuple[object, ...]) -> "NDArray[np.int64]":
        """Return the tokens of each component."""
        return np.array([self._tokens[int(str(one))] for one in names], np.int64)


def _component_tokens(file: Path) -> dict[int, int]:
    """Read the files beside a trace that give each component its tokens."""
    found: dict[int, int] = {}
    parse = parser()
    for stem in LENGTHS:
        beside = [file.parent / f"{stem}.jsonl{end}" for end in ("", ".gz", ".zst")]
        here = next((one for one in beside if one.exists()), None)
        if here is None:
            raise ProfileError(
                f"{file}: {beside[0].name} must lie beside it: it has the tokens of each component"
            )
        try:
            for number, line in lines(here):
                try:
                    row = parse(line)
                    key = next(key for key in row if key.endswith("_id"))
                    found[whole(row, key)] = whole(row, "token_length")
                except (ValueError, StopIteration, AttributeError, TypeError, BrokenLineError) as error:
                    raise ProfileError(
                        f"{here}:{number}: no component with its token_length ({error})"
                    ) from None
        except CutOffError:
            raise ProfileError(f"{here}: the compressed file is cut off") from None
    return found
