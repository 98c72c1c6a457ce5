"""A server of vLLM with LMCache under a load of prompts that share prefixes, simulated step by step.

The loop is that of vLLM's scheduler: running requests decode, the first that still computes its prompt takes
what is left of the step's tokens, then those that wait are let in, as long as their KV fits; LMCache loads in
the step that lets a request in, before it computes.  Blocks and chunks of idle prefixes go from the tail of
the one that was used longest ago.
"""

import heapq
import itertools
import random
from collections import OrderedDict, deque
from dataclasses import dataclass, field

PER_PREFIX, QUESTION, ANSWER = 20, 256, 512
"""Prompts of one prefix [1], their own tokens and those that are generated [token]."""

IN_FLIGHT = 200
"""Requests at once [1]: `--max-concurrency=200` of the report's command, which is for 1,000 tokens."""

STEP = 2048
"""Tokens of one step [token]: `--max_num_batched_tokens 2048`."""

CHUNK = 256
"""Tokens of one of LMCache's chunks [token]; a prompt's last, partly filled one is not stored."""


@dataclass(frozen=True)
class Costs:
    """What a step costs, in seconds, and what the GPUs hold."""

    linear: float  # of a token that is computed
    quadratic: float  # of a token that is computed, for each one before it
    step: float  # of a step that computes nothing but one token
    sequence: float  # of one more sequence in it
    context: float  # of each token of KV that it reads
    pool: float  # token
    bytes_per_token: float  # of all GPUs together
    host: tuple[float, float]  # once for a load, and for each token, from host memory
    drive: tuple[float, float]

    def chunk(self, new: float, cached: float) -> float:
        """Return the time of computing `new` tokens behind `cached` ones."""
        return self.linear * new + self.quadratic * new * (cached + new / 2)


@dataclass(eq=False)
class Request:
    """One request, and how far it is."""

    group: int
    sent: float
    prompt: int  # to compute, with what was generated before it lost its place
    left: int = ANSWER  # still to generate
    computed: int = 0
    own: int = 0  # tokens of KV that no other request shares, without those decoded since `since`
    since: int | None = None  # step in which it began to decode
    served: bool = False  # whether its first token is out


class Store:
    """A tier of LMCache: prefixes and chunks of one request's own, the oldest of which lose their tails."""

    def __init__(self, tokens: float) -> None:
        self.room = tokens
        self.held: OrderedDict[object, float] = OrderedDict()

    def tokens(self, key: object) -> float:
        """Return the tokens that are held of a prefix."""
        return self.held.get(key, 0.0)

    def put(self, key: object, tokens: float) -> None:
        """Hold at least so many tokens of a key, which is now the newest."""
        old = self.held.pop(key, 0.0)
        self.held[key] = max(old, tokens)
        self.room -= self.held[key] - old
        while self.room < 0:
            oldest = next(iter(self.held))
            lost = min(self.held[oldest], -self.room)
            self.held[oldest] -= lost
            self.room += lost
            if self.held[oldest] <= 0:
                del self.held[oldest]


@dataclass
class Means:
    """What came out: mean times of a request, and requests per second."""

    first: float
    whole: float
    rate: float


@dataclass
class Server:
    """vLLM under the load of one test; `stores` are those that it loads from, the faster first."""

    costs: Costs
    prefix: int
    groups: int
    stores: tuple[Store, ...] = ()
    in_flight: int = IN_FLIGHT
    now: float = 0.0
    step: int = 0
    resident: dict[int, float] = field(default_factory=dict)  # prefix -> tokens on the GPU
    users: dict[int, int] = field(default_factory=dict)  # prefix -> running requests
    idle: "OrderedDict[object, float]" = field(default_factory=OrderedDict)  # the oldest first
    waiting: "deque[Request]" = field(default_factory=deque)
    running: "dict[Request, None]" = field(default_factory=dict)  # in the order in which they were let in
    ending: list[tuple[int, int, Request]] = field(default_factory=list)
    turns: "itertools.count[int]" = field(default_factory=itertools.count)
    decoding: int = 0
    context: float = 0.0  # tokens that a step reads
    firsts: list[float] = field(default_factory=list)
    wholes: list[float] = field(default_factory=list)

    def run(self) -> Means:
        """Serve all requests."""
        order = [group for group in range(self.groups) for _ in range(PER_PREFIX)]
        random.Random(1).shuffle(order)
        self.todo = deque(order)
        self.free = self.costs.pool
        for _ in range(min(self.in_flight, len(order))):
            self.send()
        while len(self.wholes) < len(order):
            self.advance()
        count = len(order)
        return Means(sum(self.firsts) / count, sum(self.wholes) / count, count / self.now)

    def send(self) -> None:
        """Send the next request, if there is one."""
        if self.todo:
            self.waiting.append(Request(self.todo.popleft(), self.now, self.prefix + QUESTION))

    def advance(self) -> None:
        """Do one step of the scheduler."""
        self.step += 1
        while self.decoding and not self.take(self.decoding):
            self.preempt()
        read, decoding = self.context, self.decoding
        self.context += decoding
        left, work, loads, new, done = STEP - decoding, 0.0, 0.0, 0.0, []
        for request in [one for one in self.running if one.since is None]:
            tokens = min(left, request.prompt - request.computed)
            if tokens <= 0 or not self.hold(request, tokens):
                break
            work += self.costs.chunk(tokens, request.computed)
            left, new = left - tokens, new + tokens
            request.computed += tokens
            done += [request] if request.computed >= request.prompt else []
        while self.waiting and left > 0:
            request = self.waiting[0]
            load, start = self.found(request)
            tokens = min(left, request.prompt - int(start))
            if not self.admit(request, int(start), tokens):
                break
            loads += load
            work += self.costs.chunk(tokens, start)
            left, new = left - tokens, new + tokens
            done += [request] if request.computed >= request.prompt else []
        batch = self.costs.sequence * decoding + self.costs.context * read
        self.now += max(work, self.costs.step) + batch + loads
        if self.stores:
            self.now += new * self.costs.host[1]  # what was computed is copied out before the next step
        self.emit(done)
        self.finish()

    def found(self, request: Request) -> tuple[float, float]:
        """Return the time of loading what the GPU lacks of the prefix, and the tokens not to compute."""
        here = self.resident.get(request.group, 0.0)
        held = [store.tokens(request.group) for store in self.stores]
        start = max([here, *held])
        time, at = 0.0, here
        for tokens, (once, each) in zip(held, (self.costs.host, self.costs.drive), strict=False):
            if tokens > at:
                time += once + each * (tokens - at)
                at = tokens
        return time, start

    def admit(self, request: Request, start: int, tokens: int) -> bool:
        """Let a request in that computes `tokens` behind `start`; return whether they fit."""
        group, key = request.group, ("prefix", request.group)
        kept = self.idle.pop(key, None)
        self.users[group] = self.users.get(group, 0) + 1
        request.computed = start
        if not self.hold(request, tokens):
            self.users[group] -= 1
            if kept is not None:
                self.idle[key] = kept
                self.idle.move_to_end(key, last=False)
            return False
        for store in self.stores:
            if store.tokens(group):
                store.put(group, start if store is self.stores[0] else 0.0)
        request.computed += tokens
        self.waiting.popleft()
        self.running[request] = None
        return True

    def hold(self, request: Request, tokens: int) -> bool:
        """Take room for `tokens` more of a prompt, what it loads included; return whether there was some."""
        end, here = request.computed + tokens, self.resident.get(request.group, 0.0)
        shared = max(0.0, min(self.prefix, end) - here)
        own = max(0, end - self.prefix) - max(0, request.computed - self.prefix)
        if not self.take(shared + own):
            return False
        self.resident[request.group] = here + shared
        request.own += own
        return True

    def take(self, tokens: float) -> bool:
        """Take so many tokens of the pool, from idle prefixes and answers if need be."""
        while self.free < tokens and self.idle:
            key = next(iter(self.idle))
            lost = min(self.idle[key], tokens - self.free)
            self.idle[key] -= lost
            self.free += lost
            if isinstance(key, tuple) and key[0] == "prefix":
                self.resident[key[1]] -= lost
            if self.idle[key] <= 0:
                del self.idle[key]
        if self.free < tokens:
            return False
        self.free -= tokens
        return True

    def preempt(self) -> None:
        """Take its place from the request that was let in last; what it generated joins its prompt."""
        request = next(reversed(self.running))
        generated = 0 if request.since is None else self.step - 1 - request.since
        self.release(request, generated)
        request.prompt += generated
        request.left -= generated
        request.computed, request.own, request.since = 0, 0, None
        self.waiting.appendleft(request)

    def release(self, request: Request, generated: int) -> None:
        """Free what a request holds; its KV stays until its room is needed."""
        del self.running[request]
        if request.since is not None:
            self.decoding -= 1
            self.context -= request.prompt + generated
        self.idle[("own", request, self.step)] = request.own + generated
        self.users[request.group] -= 1
        if not self.users[request.group] and self.resident.get(request.group):
            self.idle[("prefix", request.group)] = self.resident[request.group]

    def emit(self, done: list[Request]) -> None:
        """Give the requests whose prompts are computed their next token, and store their chunks."""
        for request in done:
            if not request.served:
                request.served = True
                self.firsts.append(self.now - request.sent)
                for store in self.stores:
                    store.put(request.group, self.prefix // CHUNK * CHUNK)
                    store.put(request, CHUNK)
            request.since = self.step
            request.left -= 1
            self.decoding += 1
            self.context += request.prompt
            heapq.heappush(self.ending, (self.step + request.left, next(self.turns), request))

    def finish(self) -> None:
        """Let go of the requests whose last token is out, and send as many others."""
        while self.ending and self.ending[0][0] <= self.step:
            at, _, request = heapq.heappop(self.ending)
            if request.since is None or request.since + request.left != at or request not in self.running:
                continue  # it lost its place in between
            self.release(request, self.step - request.since)
            self.wholes.append(self.now - request.sent)
            self.send()
