"""What finer blocks would hit: a trace whose blocks are split as well as its coarse ids allow.

A hash of a coarse block tells that two requests share all of it or not, never how much.  Split blocks are put
together again under three rules (which reproduce figure 9 of the FAST'25 paper of Mooncake from the
ids that it released, within 0.001 and 0.004):

1. all requests share so many tokens of a system prompt, if that is said, and those that share no block
   behind it share no more;
2. a request that goes on behind all full blocks of an earlier, shorter one shares all of that one's input;
3. else the place inside the next block where it leaves the last request that came this way is drawn evenly.

The result is an upper estimate, since rule 2 takes every possible continuation for one.
"""

import random
from dataclasses import replace
from itertools import takewhile
from typing import TYPE_CHECKING

import numpy as np

from kvcalc.errors import SettingsError
from kvcalc.replay.trace import NOWHERE, Finding, Trace

if TYPE_CHECKING:
    from numpy.typing import NDArray

SEED = 1
"""Seed of rule 3; results do not hang on it."""


def refined(trace: Trace, block_tokens: int, shared_prefix: int = 0, seed: int = SEED) -> Trace:
    """Return the trace in blocks of `block_tokens` tokens.

    Parameters
    ----------
    trace : in coarser blocks, in the order of its replay
    block_tokens : a divisor of the trace's own [token]
    shared_prefix : tokens that all requests have in common [token]; 880 for Mooncake's conversation trace

    Raises
    ------
    SettingsError
        If the blocks of the trace differ in size, are no multiple of the finer ones, or show that requests do
        not all share so much.
    """
    if trace.block_tokens == 0:
        raise SettingsError(f"--refine: blocks of {trace.name} differ in size")
    if block_tokens < 1 or trace.block_tokens % block_tokens:
        raise SettingsError(
            f"--refine: {block_tokens} does not divide the {trace.block_tokens} tokens of a block"
        )
    if shared_prefix < 0:
        raise SettingsError(f"--shared-prefix: {shared_prefix} is below zero")
    most = _shared_at_most(trace)
    if shared_prefix > most:
        raise SettingsError(
            f"--shared-prefix: {shared_prefix:,} tokens, but the ids and lengths of {trace.name} show that "
            f"all requests share {most:,} at most"
        )
    parent, shared = _Branches(trace, block_tokens, shared_prefix, seed).find()
    return _rebuilt(trace, block_tokens, parent, shared)


def _shared_at_most(trace: Trace) -> int:
    """Return the tokens that all requests can share: up to the end of the first block that differs."""
    most = -(-int(trace.input_tokens.min()) // trace.block_tokens)
    common = _head(trace, 0, most)
    for request in range(1, trace.requests):
        own = _head(trace, request, len(common))
        same = (one == other for one, other in zip(common, own, strict=False))
        common = common[: sum(takewhile(bool, same))]
    return min(int(trace.input_tokens.min()), (len(common) + 1) * trace.block_tokens - 1)


def _head(trace: Trace, request: int, most: int) -> list[int]:
    """Return the first blocks of a request."""
    found: list[int] = []
    for run in range(int(trace.run_start[request]), int(trace.run_start[request + 1])):
        if len(found) >= most:
            break
        first = int(trace.run_first[run])
        found += range(first, first + min(int(trace.run_blocks[run]), most - len(found)))
    return found


class _Branches:
    """Where each request leaves which earlier one, in finer blocks."""

    def __init__(self, trace: Trace, fine: int, prefix: int, seed: int) -> None:
        self.trace = trace
        self.fine = fine
        self.ratio = trace.block_tokens // fine
        self.prefix = prefix // fine
        self.draw = random.Random(seed)
        self.through: dict[int, int] = {}  # coarse block -> the last request that has it
        self.ended: dict[int, list[int]] = {}  # last full block of requests -> them
        self.inputs = trace.input_tokens.tolist()
        self.first = NOWHERE

    def find(self) -> "tuple[list[int], list[int]]":
        """Return the request that each one leaves, and the finer blocks that they share."""
        parents, shares = [], []
        for request in range(self.trace.requests):
            chain = self._chain(request)
            depth = self._known(chain)
            parent, shared = self._branch(request, chain, depth)
            parents.append(parent)
            shares.append(shared)
            for block in chain:
                self.through[block] = request
            full = min(len(chain), self.inputs[request] // self.trace.block_tokens)
            self.ended.setdefault(chain[full - 1] if full else NOWHERE, []).append(request)
            self.through[NOWHERE] = request
        return parents, shares

    def _chain(self, request: int) -> list[int]:
        trace = self.trace
        runs = range(int(trace.run_start[request]), int(trace.run_start[request + 1]))
        return [
            block
            for run in runs
            for block in range(
                int(trace.run_first[run]), int(trace.run_first[run]) + int(trace.run_blocks[run])
            )
        ]

    def _known(self, chain: list[int]) -> int:
        """Return how many coarse blocks of a request were there before."""
        low, high = 0, len(chain)
        while low < high:
            middle = (low + high) // 2
            if chain[middle] in self.through:
                low = middle + 1
            else:
                high = middle
        return low

    def _branch(self, request: int, chain: list[int], depth: int) -> tuple[int, int]:
        here = chain[depth - 1] if depth else NOWHERE
        if here not in self.through:
            return NOWHERE, 0
        most = self.inputs[request] // self.fine
        last = self.through[here]
        if depth == len(chain):
            return last, -(-min(self.inputs[request], self.inputs[last]) // self.fine)
        most = min(most, self.inputs[last] // self.fine)
        if depth * self.ratio <= self.prefix < (depth + 1) * self.ratio:
            return last, min(self.prefix, most)
        goes_on = [one for one in self.ended.get(here, ()) if self.inputs[one] <= self.inputs[request]]
        if goes_on:
            best = goes_on[-1]
            return best, self.inputs[best] // self.fine
        return last, min(depth * self.ratio + self.draw.randrange(self.ratio), most)


def _rebuilt(trace: Trace, fine: int, parents: list[int], shares: list[int]) -> Trace:
    """Return the trace whose requests share so many blocks with their parents."""
    runs: list[list[tuple[int, int]]] = []
    count = 0
    for request, (parent, shared) in enumerate(zip(parents, shares, strict=True)):
        own = _cut(runs[parent], shared) if parent != NOWHERE else []
        new = -(-int(trace.input_tokens[request]) // fine) - sum(blocks for _, blocks in own)
        if new > 0:
            own.append((count, new))
            count += new
        runs.append(own)
    flat: NDArray[np.int64] = np.array([run for own in runs for run in own], np.int64).reshape(-1, 2)
    text = (
        f"an upper estimate: blocks of {trace.block_tokens} tokens were split into {fine}, with what "
        "their ids hide drawn or taken for shared"
    )
    return replace(
        trace,
        block_tokens=fine,
        run_first=flat[:, 0],
        run_blocks=flat[:, 1],
        run_start=np.concatenate(([0], np.cumsum([len(own) for own in runs]))),
        component=None,
        findings=(*trace.findings, Finding("refined", trace.requests, text, warning=True)),
    )


def _cut(runs: list[tuple[int, int]], blocks: int) -> list[tuple[int, int]]:
    """Return the first blocks of a chain."""
    found = []
    for first, count in runs:
        if blocks <= 0:
            break
        found.append((first, min(count, blocks)))
        blocks -= count
    return found
