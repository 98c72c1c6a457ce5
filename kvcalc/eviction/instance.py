"""The state of one engine instance: its sequences and where each of them is, its pool, its clock."""

import math
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from kvcalc.eviction.batch import Batch
from kvcalc.eviction.crowd import Crowd
from kvcalc.eviction.load import Requests
from kvcalc.eviction.records import Record
from kvcalc.eviction.steps import StepTimes
from kvcalc.eviction.tactics import Choice, Limits, Tactic, choose


class Instance:
    """One instance before and while it serves a load under a tactic."""

    def __init__(
        self,
        requests: Requests,
        limits: Limits,
        times: StepTimes,
        tactic: Tactic,
        observe: Callable[[Any], None] | None = None,
        tick: Callable[[int], None] | None = None,
        single: bool = False,
    ) -> None:
        self.limits, self.times, self.tactic = limits, times, tactic
        self.observe, self.tick, self.single = observe, tick, single
        self.arrival: list[float] = requests.arrival.tolist()
        self.prompt: list[int] = requests.prompt.tolist()
        self.goal: list[int] = requests.generate.tolist()
        self.cached: list[int] = requests.cached.tolist()
        self.priority: list[float] = requests.priority.tolist()
        count = len(requests)
        self.generated = [0] * count
        self.known = list(self.cached)  # tokens at the front that have been computed once
        self.at = [0] * count  # tokens of KV held while prefilling, or kept while waiting
        self.last = [math.nan] * count  # second of the last token
        self.gone = [-math.inf] * count  # second of the last eviction
        self.entered = [0.0] * count
        self.rank = [0] * count  # by admission
        self.swapped: dict[int, int] = {}  # number -> tokens in the host's memory
        self.kept: dict[int, int] = {}  # number -> blocks that stay while it waits
        self.record = Record.of(count)
        self.now = self.arrival[0] if count else 0.0
        self.started = self.now
        self.free = limits.blocks
        self.promised = 0  # blocks that sequences in the engine may grow to, for queueing
        self.batch = Batch(limits.block)
        self.prefilling: list[int] = []
        self.stalled: list[int] = []
        self.returning: list[tuple[float, int]] = []
        self.waiting: deque[int] = deque()
        self.late: set[int] = set()  # decoding, but their last token is older than the last step
        self.next = 0  # next arrival
        self.finished = 0
        self.admitted = 0
        self.link_free = 0.0
        self.on_host = 0.0

    @property
    def active(self) -> int:
        """Sequences in the engine."""
        return len(self.batch) + len(self.prefilling) + len(self.stalled) + len(self.returning)

    def target(self, number: int) -> int:
        """Return the tokens whose KV a sequence needs before it can generate the next."""
        return self.prompt[number] + self.generated[number]

    def most_blocks(self, number: int) -> int:
        """Return the blocks that a sequence holds when it is done."""
        return self.limits.count(self.prompt[number] + self.goal[number] - 1)

    def choose(self, need: int) -> tuple[Choice | None, list[int]]:
        """Return who goes so that `need` blocks become free, and the numbers that the choice is from."""
        numbers = [*self.batch.joined, *self.prefilling, *self.stalled]
        if self.tactic.reserves or len(numbers) < 2:
            return None, numbers
        decoding = len(self.batch)
        held = [self.batch.context_of(n) for n in numbers[:decoding]] + [
            self.at[n] for n in numbers[decoding:]
        ]
        left = [self.batch.steps_of(n) for n in numbers[:decoding]]
        left += [self.goal[n] - self.generated[n] for n in numbers[decoding:]]
        waits = len(numbers) - len(self.stalled)
        idle = [0.0] * waits + [self.now - self.last[n] for n in numbers[waits:]]
        crowd = Crowd(
            done=np.array(held, dtype=float),
            remaining=np.array(left, dtype=float),
            priority=np.array([self.priority[n] for n in numbers]),
            idle=np.array(idle),
            evicted_ago=self.now - np.array([self.gone[n] for n in numbers]),
            finished=np.zeros(len(numbers), dtype=bool),
            age=np.array([self.rank[n] for n in numbers], dtype=float),
        )
        host = self.limits.host
        room = 0.0 if host is None else host.capacity - self.on_host
        wanted = max(need, self.limits.spare)
        return choose(self.tactic, crowd, wanted, self.limits, self.times, room), numbers
