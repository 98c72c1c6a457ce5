"""The sequences that decode together.

Nothing here is done once per token or once per sequence and step.  Every decoding sequence grows by
one token a step, so one clock stands for all: who needs a block is known by the phase of its context
against the clock, who finishes first by a heap of clock readings.
"""

import heapq
from dataclasses import dataclass


@dataclass
class Joined:
    """Where a sequence stood when it began to decode."""

    clock: int
    context: int  # tokens of KV held
    end: int  # clock after its last step


class Batch:
    """Decoding sequences, by number."""

    def __init__(self, block: int) -> None:
        self.block = block  # tokens in one block
        self.clock = 0  # decode steps so far
        self.context = 0  # tokens of KV that all of them hold
        self.joined: dict[int, Joined] = {}
        self._phases = [0] * block  # sequences whose context was p at clock 0, modulo the block
        self._ends: list[tuple[int, int]] = []

    def __len__(self) -> int:
        return len(self.joined)

    def join(self, number: int, context: int, steps: int) -> None:
        """Let a sequence of `context` tokens decode for `steps` steps."""
        found = Joined(self.clock, context, self.clock + steps)
        self.joined[number] = found
        self.context += context
        self._phases[(context - self.clock) % self.block] += 1
        heapq.heappush(self._ends, (found.end, number))

    def leave(self, number: int) -> tuple[int, int]:
        """Take a sequence out; return its context and the steps it has left."""
        found = self.joined.pop(number)
        context = found.context + self.clock - found.clock
        self.context -= context
        self._phases[(context - self.clock) % self.block] -= 1
        return context, found.end - self.clock

    def context_of(self, number: int) -> int:
        """Return the tokens of KV that a sequence holds."""
        found = self.joined[number]
        return found.context + self.clock - found.clock

    def steps_of(self, number: int) -> int:
        """Return the steps that a sequence has left."""
        return self.joined[number].end - self.clock

    def growing(self) -> list[int]:
        """Return the sequences that need a block for the token of the next step."""
        return [number for number in self.joined if self.context_of(number) % self.block == 0]

    def needed(self) -> int:
        """Return how many blocks the next step needs."""
        return self._phases[-self.clock % self.block]

    def needed_for(self, steps: int) -> int:
        """Return how many blocks the next `steps` steps need."""
        cycles, rest = divmod(steps, self.block)
        return cycles * len(self) + sum(
            self._phases[-(self.clock + step) % self.block] for step in range(rest)
        )

    def steps_within(self, free: int, most: int) -> int:
        """Return how many steps, `most` at most, can be made with so many free blocks."""
        # Every sequence needs one block in each cycle of `block` steps.
        if -(-most // self.block) * len(self) <= free:
            return most
        cycles, left = divmod(free, len(self))
        step = cycles * self.block
        while step < most:
            left -= self._phases[-(self.clock + step) % self.block]
            if left < 0:
                break
            step += 1
        return step

    def until_first_end(self) -> int:
        """Return the steps until the first sequence finishes."""
        while True:
            end, number = self._ends[0]
            found = self.joined.get(number)
            if found is not None and found.end == end:
                return end - self.clock
            heapq.heappop(self._ends)

    def advance(self, steps: int) -> None:
        """Let every sequence grow by `steps` tokens."""
        self.clock += steps
        self.context += steps * len(self)

    def ended(self) -> list[int]:
        """Return the sequences that have made their last step; they still have to leave."""
        found: list[int] = []
        while self._ends and self._ends[0][0] <= self.clock:
            end, number = heapq.heappop(self._ends)
            known = self.joined.get(number)
            # A sequence that left and came back within one step is listed twice.
            if known is not None and known.end == end and number not in found:
                found.append(number)
        return found
