"""One engine instance, step by step: paged pool, continuous batching, chunked prefill, eviction.

Steps without prefill in which nobody comes, finishes or lacks a block are made in one go; their times
grow evenly, so the result is that of single steps.
"""

import heapq
import math

from kvcalc.eviction.instance import Instance
from kvcalc.eviction.records import Record
from kvcalc.eviction.tactics import Choice

NEAR = 512
"""Tokens to go below which an evicted sequence counts as near completion, as the rules' default has it."""

_PATIENCE = 16  # steps after which sequences that wait for a block are looked at again
_TICK = 256  # finished requests between two reports of progress


class Engine(Instance):
    """One run of one tactic on one load."""

    def run(self) -> Record:
        """Serve all requests."""
        while self.finished < len(self.arrival):
            self._arrive()
            self._return()
            self._resume()
            self._admit()
            if self.batch or self.prefilling:
                self._make_room()
            if not (self.batch or self.prefilling):
                self._idle()
            elif self.prefilling and len(self.batch) < self.times.budget:
                self._mixed()
            else:
                self._decode()
            if self.observe is not None:
                self.observe(self)
        self.record.generated[:] = self.generated
        self.record.duration = self.now - self.started
        return self.record

    # Requests come in.

    def _arrive(self) -> None:
        while self.next < len(self.arrival) and self.arrival[self.next] <= self.now:
            number, longest = self.next, self.limits.longest
            self.next += 1
            if self.prompt[number] > longest:
                self.record.rejected[number] = True
                self._count_finished()
                continue
            # The last token is never computed, so that it needs no room.
            most = longest - self.prompt[number] + 1
            if self.goal[number] > most:
                self.goal[number] = most
                self.record.truncated[number] = True
            self.waiting.append(number)

    def _admit(self) -> None:
        """Let waiting requests in, first come first served, while there is room above the watermark."""
        if self.stalled:
            return
        pending = sum(self.target(number) - self.at[number] for number in self.prefilling)
        while self.waiting and self.active < self.times.most and pending < self.times.budget:
            number = self.waiting[0]
            back = self.swapped.get(number)
            tokens = self.target(number) if back is None else back
            need = self.limits.count(tokens) - self.kept.get(number, 0)
            if need > self.free - (self.limits.spare if self.active else 0):
                return
            if self.tactic.reserves and self.promised + self.most_blocks(number) > self.limits.blocks:
                return
            self.waiting.popleft()
            self.free -= need
            self.kept.pop(number, None)
            self.promised += self.most_blocks(number)
            self.rank[number], self.admitted = self.admitted, self.admitted + 1
            self.entered[number] = self.now
            if back is None:
                self.at[number] = max(self.at[number], self.cached[number])
                self.prefilling.append(number)
                pending += tokens - self.at[number]
            else:
                self._swap_in(number, back)

    def _swap_in(self, number: int, tokens: int) -> None:
        host = self.limits.host
        if host is None:
            raise AssertionError("a sequence is on a host that is not there")
        size = tokens * self.limits.bytes_per_token
        self.link_free = max(self.now, self.link_free) + host.setup + size / host.back
        heapq.heappush(self.returning, (self.link_free, number))

    def _return(self) -> None:
        while self.returning and self.returning[0][0] <= self.now:
            number = heapq.heappop(self.returning)[1]
            tokens = self.swapped.pop(number)
            self.on_host -= tokens * self.limits.bytes_per_token
            self._join(number, tokens, late=True)

    def _resume(self) -> None:
        """Let sequences that lacked a block go on, the first admitted first."""
        while self.stalled and self.free > self.batch.needed():
            number = min(self.stalled, key=self.rank.__getitem__)
            self.stalled.remove(number)
            self._join(number, self.at[number], late=True)

    def _join(self, number: int, context: int, late: bool = False) -> None:
        self.batch.join(number, context, self.goal[number] - self.generated[number])
        if late:
            self.late.add(number)

    # Time passes.

    def _idle(self) -> None:
        """Wait for the next event, or force one where there is none."""
        events = [self.returning[0][0]] if self.returning else []
        if self.next < len(self.arrival):
            events.append(self.arrival[self.next])
        if not self.returning and (self.stalled or self.waiting):
            self._unlock()
        elif events:
            self._pass(min(events) - self.now, 0)

    def _pass(self, duration: float, grown: int) -> None:
        """Let time pass, in which `grown` blocks are taken evenly."""
        used = self.limits.blocks - self.free
        self.record.used += duration * (used - grown / 2)
        self.record.active += duration * self.active
        self.now += duration

    def _mixed(self) -> None:
        """Make one step with a chunk of prefill, the sequences that decode beside it."""
        room, new, pairs = self.times.budget - len(self.batch), 0, 0
        for number in self.prefilling:
            chunk = min(self.target(number) - self.at[number], room - new)
            pairs += chunk * (self.at[number] - new)
            again = max(0, min(self.known[number] - self.at[number], chunk))
            self.record.recomputed[number] += again
            self.at[number] += chunk
            self.known[number] = max(self.known[number], self.at[number])
            new += chunk
            if new == room:
                break
        time = self.times.step(len(self.batch), self.batch.context, new, pairs)
        self.record.processed += new
        self._steps(1, time, 0.0)
        for number in [n for n in self.prefilling if self.at[n] == self.target(n)]:
            self.prefilling.remove(number)
            self._first_token(number)

    def _first_token(self, number: int) -> None:
        """Note the token that a finished prefill gives, and let the sequence decode."""
        if self.generated[number]:
            self.record.paused(number, self.now - self.last[number])
        else:
            self.record.first[number] = self.now
        self.generated[number] += 1
        self.last[number] = self.now
        context, self.at[number] = self.at[number], 0
        if self.generated[number] == self.goal[number]:
            self._finish(number, context)
        else:
            self._join(number, context)

    def _decode(self) -> None:
        """Make as many steps as change nothing but lengths."""
        batch, times = self.batch, self.times
        most = min(batch.until_first_end(), batch.steps_within(self.free, batch.until_first_end()))
        if self.stalled:
            most = min(most, _PATIENCE)
        if self.late or self.single or self.prefilling:
            most = 1
        first = times.step(len(batch), batch.context)
        growth = times.context[len(batch)] * len(batch)
        until = self._next_event()
        steps = most if until is None else _steps_until(until - self.now, first, growth, most)
        self._steps(steps, first, growth)

    def _next_event(self) -> float | None:
        """Return the next second at which something may join, if it could."""
        events = [self.returning[0][0]] if self.returning else []
        could = not self.waiting and not self.stalled and self.active < self.times.most
        if could and self.next < len(self.arrival):
            events.append(self.arrival[self.next])
        return min(events, default=None)

    def _steps(self, steps: int, first: float, growth: float) -> None:
        """Make steps that take `first` seconds and then `growth` more each."""
        batch = self.batch
        grown = batch.needed_for(steps)
        self.free -= grown
        time = first * steps + growth * steps * (steps - 1) / 2
        self._pass(time, grown)
        self.record.busy += time
        self.record.processed += steps * len(batch)
        self.record.gaps.run(first, growth, steps, len(batch) - len(self.late))
        for number in self.late:
            self.record.paused(number, self.now - self.last[number])
        self.late.clear()
        batch.advance(steps)
        for number in batch.ended():
            context, _ = batch.leave(number)
            self.known[number] = context
            self.generated[number] = self.goal[number]
            self._finish(number, context)

    def _finish(self, number: int, context: int) -> None:
        self.free += self.limits.count(context)
        self.promised -= self.most_blocks(number)
        self.record.end[number] = self.now
        self.record.served[number] += self.now - self.entered[number]
        self._count_finished()

    def _count_finished(self) -> None:
        self.finished += 1
        if self.tick is not None and self.finished % _TICK == 0:
            self.tick(self.finished)

    # Sequences lose their blocks.

    def _make_room(self) -> None:
        """Evict until the next step finds the blocks it needs; hold back those that find none."""
        while self.batch.needed() > self.free:
            need = self.batch.needed() - self.free
            choice, numbers = self.choose(need)
            if choice is None:
                self._hold_back()
                return
            self._evict(numbers[choice.place], choice)

    def _leave(self, number: int) -> int:
        """Take a sequence out of the engine; return the tokens of KV it held."""
        if number in self.batch.joined:
            context = self._pause(number)
        elif number in self.prefilling:
            self.prefilling.remove(number)
            context = self.at[number]
        else:
            self.stalled.remove(number)
            context = self.at[number]
        self.record.served[number] += self.now - self.entered[number]
        self.promised -= self.most_blocks(number)
        return context

    def _pause(self, number: int) -> int:
        """Take a sequence out of the batch; return the tokens of KV it holds."""
        context, left = self.batch.leave(number)
        self.generated[number] = self.goal[number] - left
        self.known[number] = context
        if number in self.late:
            self.late.remove(number)
        else:
            self.last[number] = self.now
        return context

    def _evict(self, number: int, choice: Choice) -> None:
        """Take the blocks of a sequence and put it at the head of the queue."""
        decoded = number not in self.prefilling
        blocks = self.limits.count(self.target(number)) if not decoded else 0
        context = self._leave(number)
        blocks = blocks or self.limits.count(context)
        self.record.evictions[number] += 1
        self.record.restarts.append(self.now)
        self.record.near_complete += self.goal[number] - self.generated[number] < NEAR < context
        self.gone[number] = self.now
        self.at[number] = 0
        if choice.mode == "swap" and decoded:
            self._swap_out(number, context)
        elif choice.mode == "tail":
            kept = min(choice.kept, context // self.limits.block)
            self.kept[number] = kept
            self.at[number] = kept * self.limits.block
            blocks -= kept
        self.free += blocks
        self.waiting.appendleft(number)

    def _swap_out(self, number: int, tokens: int) -> None:
        host = self.limits.host
        if host is None:
            raise AssertionError("nothing can be swapped to a host that is not there")
        size = tokens * self.limits.bytes_per_token
        self.swapped[number] = tokens
        self.on_host += size
        self.record.swapped += size
        self.link_free = max(self.now, self.link_free) + size / host.out

    def _hold_back(self) -> None:
        """Let those decode for whom there are blocks, the first admitted first; the others wait."""
        growing = sorted(self.batch.growing(), key=self.rank.__getitem__)
        for number in growing[self.free :]:
            self.at[number] = self._pause(number)
            self.stalled.append(number)
            self.record.held_back += 1

    def _unlock(self) -> None:
        """Free blocks where nothing can go on: first prefixes of waiting ones, then the last admitted."""
        if self.kept:
            number = next(n for n in reversed(self.waiting) if n in self.kept)
            self.free += self.kept.pop(number)
            self.at[number] = 0
        elif len(self.stalled) > 1:
            self.record.forced += 1
            self._evict(max(self.stalled, key=self.rank.__getitem__), Choice(0, "recompute"))
        else:
            raise AssertionError("a request that was admitted does not fit the pool")


def _steps_until(duration: float, first: float, growth: float, most: int) -> int:
    """Return how many steps, `most` at most and one at least, reach over a duration.

    >>> _steps_until(0.25, first=0.1, growth=0.0, most=10), _steps_until(0.3, 0.1, 0.1, 10)
    (3, 2)
    """

    def elapsed(steps: int) -> float:
        return first * steps + growth * steps * (steps - 1) / 2

    if elapsed(most) < duration:
        return most
    half = first - growth / 2
    if growth > 0:
        guess = (math.sqrt(half * half + 2 * growth * max(duration, 0.0)) - half) / growth
    else:
        guess = duration / first
    steps = min(max(1, math.ceil(guess)), most)
    while steps > 1 and elapsed(steps - 1) >= duration:
        steps -= 1
    while steps < most and elapsed(steps) < duration:
        steps += 1
    return steps
