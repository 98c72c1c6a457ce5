"""What a trace looks like: order of times, partial blocks, ids that are no chain hashes."""

from typing import TYPE_CHECKING

import numpy as np

from kvcalc.replay import sharing
from kvcalc.replay.readers.chains import Chained
from kvcalc.replay.readers.collect import Gathered
from kvcalc.replay.trace import NOWHERE, Finding, Trace
from kvcalc.wording import counted

if TYPE_CHECKING:
    from numpy.typing import NDArray

MOST_COUNTED = 20_000_000
"""Block accesses up to which both rates are counted while a file is read: some seconds [1]."""
SHOWN_LINES = 5
"""How many line numbers a finding names [1]."""

HAVE = ("request has", "requests have")
NAME = ("request names", "requests name")
TOKENS = ("token", "tokens")
TIMES = ("time", "different times")
"""What is counted here, of one and of many."""


def findings_of(found: Gathered, chains: Chained, block_tokens: int) -> tuple[Finding, ...]:
    """Return what was noticed in the requests of a file."""
    blocks = np.diff(np.concatenate(([0], np.cumsum(found.runs.blocks)))[found.runs.start])
    return (
        *_chains(chains, found),
        *(_blocks(found, blocks, block_tokens) if block_tokens else ()),
        *_times(found),
        *_empty(found, blocks),
    )


def both_rates(trace: Trace) -> tuple[Finding, ...]:
    """Tell, of ids that are no chain hashes, which of two hit rates is meant; nothing of those that are."""
    if trace.component is None or trace.accesses > MOST_COUNTED:
        return ()
    order = sharing.in_time(trace)
    asked = max(1, int(trace.input_tokens.sum()))
    prefix = int(sharing.prefix_tokens(trace, sharing.before(trace, order)).sum()) / asked
    anywhere = (sharing.component_hits(trace, order) or 0) / asked
    text = (
        f"An infinite cache hits {prefix:.4f} of the input tokens as prefixes, and that is what a hit "
        "means here; one of single components, wherever they stand in the prompt, would hit "
        f"{anywhere:.4f}."
    )
    return (Finding("prefix_or_component", trace.requests, text, warning=True),)


def first_lines(lines: "NDArray[np.int64]", where: "NDArray[np.bool_]") -> tuple[int, ...]:
    """Return the first line numbers of those that are marked."""
    return tuple(lines[where][:SHOWN_LINES].tolist())


def _chains(chains: Chained, found: Gathered) -> tuple[Finding, ...]:
    unique = found.runs.unique
    if chains.conflicting == 0:
        text = f"Block ids are chain hashes: each of the {unique:,} always follows the same block."
        return (Finding("chained", unique, text),)
    text = (
        f"Block ids are no chain hashes: {chains.conflicting:,} of {unique:,} follow different blocks. "
        "Each is taken together with all blocks before it, so that hits are prefix hits."
    )
    not_chained = Finding("not_chained", chains.conflicting, text, warning=True)
    if not chains.repeating:
        return (not_chained,)
    text = f"{counted(chains.repeating, *HAVE)} a block id twice; in a chain the two are different blocks."
    return (not_chained, Finding("repeated_ids", chains.repeating, text))


def _blocks(found: Gathered, blocks: "NDArray[np.int64]", size: int) -> tuple[Finding, ...]:
    rest = found.input_tokens - blocks * size
    result = []
    partial = rest < 0
    if partial.any():
        ending = counted(int(partial.sum()), "request ends", "requests end")
        text = f"{ending} in a block that is not full; the file counts it as one."
        result.append(Finding("partial_last_block", int(partial.sum()), text))
    dropped = (rest > 0) & (rest < size)
    if dropped.any():
        text = (
            f"{counted(int(dropped.sum()), *HAVE)} input behind their last full block that the file leaves "
            f"out ({counted(int(rest[dropped].sum()), *TOKENS)}): it can never hit."
        )
        result.append(Finding("dropped_last_block", int(dropped.sum()), text))
    short = (rest >= size) & (blocks > 0)
    if short.any():
        text = (
            f"{counted(int(short.sum()), *HAVE)} at least one block of input less than the length says "
            f"({counted(int(rest[short].sum()), *TOKENS)} without a block): these tokens can never hit."
        )
        lines = first_lines(found.lines, short)
        result.append(Finding("uncovered_input", int(short.sum()), text, lines, warning=True))
    return tuple(result)


def _times(found: Gathered) -> tuple[Finding, ...]:
    known = found.time[~np.isnan(found.time)]
    if not len(known):
        text = "The file has no times: requests are taken in the order of their lines."
        return (Finding("no_times", len(found.time), text),)
    result = []
    if len(known) < len(found.time):
        missing = np.isnan(found.time)
        text = (
            f"{int(missing.sum()):,} of {counted(len(missing), *HAVE)} no time: all are taken in the order "
            "of their lines."
        )
        result.append(
            Finding("some_times", int(missing.sum()), text, first_lines(found.lines, missing), warning=True)
        )
    early = np.zeros(len(found.time), bool)
    early[1:] = found.time[1:] < found.time[:-1]
    if early.any():
        text = f"Lines are not in the order of time (earlier than the line before: {int(early.sum()):,})."
        result.append(Finding("out_of_order", int(early.sum()), text, first_lines(found.lines, early)))
    different = len(np.unique(known))
    if different < len(known):
        text = (
            f"{counted(len(known), *HAVE)} {counted(different, *TIMES)}: the order of those that share "
            "one is that of the file."
        )
        result.append(Finding("tied_times", len(known) - different, text))
    return tuple(result)


def _empty(found: Gathered, blocks: "NDArray[np.int64]") -> tuple[Finding, ...]:
    result = []
    none = blocks == 0
    if none.any():
        text = f"{counted(int(none.sum()), *HAVE)} no block (an input shorter than one): it can never hit."
        result.append(Finding("no_blocks", int(none.sum()), text, first_lines(found.lines, none)))
    if (found.session == NOWHERE).any() and found.sessions:
        lacking = int((found.session == NOWHERE).sum())
        result.append(Finding("no_session", lacking, f"{counted(lacking, *NAME)} no session."))
    return tuple(result)
