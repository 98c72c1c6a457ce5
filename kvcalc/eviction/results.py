"""What `kvcalc evict` answers: frozen results whose fields carry their unit in the annotation."""

from dataclasses import dataclass
from typing import Annotated

from kvcalc.eviction.rules import QUEUE_NEW
from kvcalc.quantity import Bytes, Count, PerSecond, Seconds, Share, Tokens, TokensPerSecond
from kvcalc.results import Result

FREE = "free"
"""What becomes of a sequence that is finished: its blocks are released, nothing is lost."""

VictimMode = Annotated[str, (FREE, "recompute", "tail", "swap")]
Fallback = Annotated[str, (QUEUE_NEW,)]


@dataclass(frozen=True, slots=True)
class Victim:
    """One sequence that goes, in the order in which they go."""

    id: str  # as the file names it
    reason: str  # why it goes, and goes now
    cost: Seconds | None  # computing it again, or swapping it out and in; null where no speed is known
    benefit: Tokens  # still to generate: for so many steps its memory would have stayed taken
    ratio: Count | None  # tokens done over tokens to go; null for a finished one
    mode: VictimMode  # what becomes of it
    freed_bytes: Bytes | None  # really freed, shared blocks left out; null where no size is known
    dropped_tokens: Tokens  # to be computed again if it is not swapped


@dataclass(frozen=True, slots=True)
class Spared:
    """One sequence that stays."""

    id: str  # as the file names it
    reason: str  # why it stays


@dataclass(frozen=True, slots=True)
class RankResult(Result):
    """Answer of `kvcalc evict rank`."""

    policy: str  # by which victims are ordered
    need: Bytes | None  # to be freed; null ranks all
    victims: tuple[Victim, ...]  # in the order in which they go
    protected: tuple[Spared, ...]  # may not go
    kept: tuple[Spared, ...]  # might go, but need not, or their going would free nothing
    freed_bytes: Bytes | None  # by all victims together
    cost: Seconds | None  # of all victims together
    queue_cost: Seconds | None  # of letting the new request wait instead; null where it is unknown
    fallback: Fallback | None  # what to do as the victims do not free enough; null when they do

    SCHEMA = "kvcalc.evict-rank/1"


@dataclass(frozen=True, slots=True)
class Percentiles:
    """Three percentiles of a time; null where nothing was measured."""

    p50: Seconds | None  # half of them take no longer
    p95: Seconds | None  # 95 % of them take no longer
    p99: Seconds | None  # 99 % of them take no longer


@dataclass(frozen=True, slots=True)
class SimulatedRow:
    """One policy under one load."""

    policy: str  # as the file names it
    rate: PerSecond  # requests that arrive
    load: Count  # that rate over the one that was asked
    requests: Count  # how many were simulated
    ttft: Percentiles  # from arrival to the first token
    itl: Percentiles  # between two tokens of one sequence
    total: Percentiles  # from arrival to the last token
    goodput: PerSecond  # requests that finish whole within the deadline
    throughput: PerSecond  # requests that finish
    tokens_per_second: TokensPerSecond  # generated
    evictions: Count  # all together
    evictions_per_second: PerSecond  # over the whole run
    evicted_share: Share  # requests that were evicted at least once
    recomputed_share: Share  # tokens computed again, among all computed
    repeat_evictions: Count  # requests that were evicted more than once
    most_evictions: Count  # of one request
    near_complete_evictions: Count  # of sequences about to finish
    held_back: Count  # times a sequence waited for a block, as nobody might go
    truncated: Count  # requests cut where the pool or the longest sequence ends
    rejected: Count  # requests whose prompt alone is longer
    occupancy: Share  # blocks in use, on average
    running: Count  # sequences in the engine, on average
    swapped_bytes: Bytes  # moved out
    eviction_value: Share  # recompute cost times eviction frequency: the most that a policy can win
    thrashing: bool  # evictions or recomputed share above the rule: admission should be closed
    stable: bool  # whether the number of requests in the system stays bounded


@dataclass(frozen=True, slots=True)
class StabilityRow:
    """What closed forms say of one load, before any simulation."""

    rate: PerSecond  # requests that arrive
    running: Count | None  # sequences at once; null where the queue grows without end
    occupancy: Share | None  # of the pool, on average
    overrun_probability: Share | None  # that growing sequences want more than the pool
    safe_concurrency: Count  # sequences at once that overrun it once in a hundred times
    evictions_per_second: PerSecond | None  # to be expected
    loop_gain: Count | None  # further evictions that one causes; above 1 it feeds itself
    stable: bool  # whether the load can be served and the loop dies out
    reason: str  # why, in words


@dataclass(frozen=True, slots=True)
class Limit:
    """Where one policy turns bad as the load grows; null where no simulated load is that high."""

    policy: str  # as the file names it
    unstable_rate: PerSecond | None  # lowest simulated load under which the queue grows without end
    close_admission_rate: PerSecond | None  # lowest at which the thrash rule closes admission


@dataclass(frozen=True, slots=True)
class Finding:
    """A misdiagnosis that these figures rule out, or advice that they support."""

    name: str  # of the row of the table of misdiagnoses
    policy: str  # that shows it
    text: str  # what was seen, and what to change


@dataclass(frozen=True, slots=True)
class SimulateResult(Result):
    """Answer of `kvcalc evict simulate`."""

    rows: tuple[SimulatedRow, ...]  # by policy and load
    stability: tuple[StabilityRow, ...]  # by load
    turning_rate: PerSecond  # highest rate that the closed forms call stable
    limits: tuple[Limit, ...]  # by policy
    findings: tuple[Finding, ...]  # misdiagnoses that apply
    lru_is_enough: bool  # whether no policy would do noticeably better
    advice: str  # in a sentence

    SCHEMA = "kvcalc.evict-simulate/1"
