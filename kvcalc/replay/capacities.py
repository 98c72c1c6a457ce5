"""How large a cache is: read from a text with a unit, told in blocks, tokens and bytes."""

import math
import re
from typing import Protocol

from kvcalc.errors import SettingsError, UnitError
from kvcalc.records import record
from kvcalc.replay.trace import Trace
from kvcalc.units import to_base, to_tokens

_BLOCKS = re.compile(r"\s*(\d[\d_,]*)\s*blocks?\s*")
_NO_BLOCKS = re.compile(r"\s*[-+\d.,_eE]+\s*blocks?\s*")
_TOKENS = re.compile(r"\s*(.*\S)\s*(?:tokens?|tok)\s*")
_SHARE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*%\s*")

EXAMPLE = "'5859 blocks', '10,000,000 tokens', '16Mi tokens', '40 GB' or '10 %' of all different blocks"


class Sizing(Protocol):
    """What blocks of a model take of a memory."""

    def blocks_in(self, size: float) -> int:
        """Return how many blocks fit into so many bytes."""

    def bytes_of(self, blocks: float) -> float:
        """Return what so many blocks take [byte]."""


@record
class PerBlock:
    """Every block takes the same."""

    block_bytes: float

    def blocks_in(self, size: float) -> int:
        """Return how many blocks fit into so many bytes."""
        return int(size // self.block_bytes)

    def bytes_of(self, blocks: float) -> float:
        """Return what so many blocks take [byte]."""
        return blocks * self.block_bytes


@record
class Capacity:
    """One cache size; blocks stand for tokens where the blocks of a trace differ in size."""

    text: str  # as it was asked for
    blocks: int


def capacity_of(said: "int | str", trace: Trace, sizing: Sizing | None, where: str = "capacity") -> Capacity:
    """Read one capacity; a number in Python is blocks, a text states its unit.

    Raises
    ------
    SettingsError
        If the unit is missing or ambiguous, the bytes of a block are unknown, or nothing would fit.
    """
    if isinstance(said, bool) or not isinstance(said, (int, str)):
        raise SettingsError(f"{where}: expected blocks or a text such as {EXAMPLE}, got {said!r:.60}")
    blocks = said if isinstance(said, int) else _read(said, trace, sizing, where)
    if blocks < 1:
        raise SettingsError(f"{where}: {said!r:.60} holds no block of {_block(trace, sizing)}")
    return Capacity(str(said) if isinstance(said, str) else f"{said} blocks", blocks)


def _read(text: str, trace: Trace, sizing: Sizing | None, where: str) -> int:
    if match := _BLOCKS.fullmatch(text):
        if trace.block_tokens == 0:
            raise SettingsError(f"{where}: {text!r:.60}: blocks of this trace differ in size; say tokens")
        return int(match[1].replace(",", "").replace("_", ""))
    if _NO_BLOCKS.fullmatch(text):
        raise SettingsError(f"{where}: {text!r:.60} is no whole number of blocks from 1 on")
    if match := _SHARE.fullmatch(text):
        whole = trace.unique_blocks if trace.block_weight is None else int(trace.block_weight.sum())
        return math.floor(float(match[1]) / 100 * whole)
    if match := _TOKENS.fullmatch(text):
        try:
            tokens = to_tokens(match[1])
        except UnitError as error:
            raise SettingsError(f"{where}: {error}") from None
        return tokens if trace.block_tokens == 0 else tokens // trace.block_tokens
    if re.fullmatch(r"\s*[\d.,_]+\s*(?:[kKmMgG]i?)?\s*", text):
        raise SettingsError(f"{where}: {text!r:.60} has no unit; write {EXAMPLE}")
    try:
        size = to_base(text, "byte")
    except UnitError as error:
        raise SettingsError(f"{where}: {error}; or write {EXAMPLE}") from None
    if sizing is None:
        raise SettingsError(
            f"{where}: {text!r:.60}: the bytes of a block are unknown; give --model or --bytes-per-token"
        )
    return sizing.blocks_in(size)


def _block(trace: Trace, sizing: Sizing | None) -> str:
    if sizing is not None:
        return f"{sizing.bytes_of(1):,.0f} bytes"
    return f"{trace.block_tokens} tokens" if trace.block_tokens else "any size"
