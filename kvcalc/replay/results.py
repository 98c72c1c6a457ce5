"""What `kvcalc replay` answers: frozen results whose fields carry their unit in the annotation."""

from typing import Annotated

from kvcalc.quantity import Bytes, Count, PerSecond, Seconds, Share, Tokens
from kvcalc.records import record
from kvcalc.replay.serving_results import Serving
from kvcalc.results import Result

CAPACITY, POLICY, NO_GAP = "capacity", "policy", "none"
Gap = Annotated[str, (CAPACITY, POLICY, NO_GAP)]
Quota = Annotated[str, ("shared", "floor", "hard")]


@record
class TierRow:
    """One tier of a row's cache."""

    tier: str  # its name
    capacity_blocks: Count  # of this tier alone
    capacity_bytes: Bytes | None  # null where the bytes of a block are unknown
    hit_rate_tokens: Share  # input tokens that this tier gave
    hit_tokens: Tokens  # that it gave
    restored_bytes: Bytes | None  # read from it for hits; hits in the fastest tier need no reading
    written_blocks: Count  # put into it
    written_bytes: Bytes | None  # put into it
    evictions: Count  # blocks that left it to make room


@record
class TenantRow:
    """One tenant under a row's cache."""

    tenant: str  # as the trace names it
    quota_blocks: Count | None  # its own part of the cache; null without one
    requests: Count  # that count
    input_tokens: Tokens  # of them
    hit_tokens: Tokens  # of them
    hit_rate_tokens: Share  # hit tokens over input tokens
    recomputed_tokens: Tokens  # computed again although they had been computed before


@record
class ReplayRow:
    """One policy at one capacity."""

    policy: str  # by its name
    quota: Quota  # how tenants share the cache
    capacity: str  # as it was asked for
    capacity_blocks: Count | None  # null for a cache without end
    capacity_tokens: Tokens | None  # of full blocks
    capacity_bytes: Bytes | None  # null where the bytes of a block are unknown
    hit_rate: Share  # by the weight that was asked for
    hit_rate_tokens: Share  # hit tokens over input tokens
    hit_rate_blocks: Share  # hit blocks over blocks asked for
    hit_rate_requests: Share  # mean over requests of their own block hit rate
    hit_tokens: Tokens  # not computed
    hit_blocks: Count  # not computed
    computed_tokens: Tokens  # input tokens that were not hit
    recomputed_tokens: Tokens  # of them, those that an infinite cache would have hit
    restored_bytes: Bytes | None  # read for hits, not from the fastest of several tiers; null without bytes
    inserted_blocks: Count  # put into the cache
    evictions: Count | None  # blocks taken out to make room; null where a bound takes parts of blocks
    within_session: Share | None  # of all hit tokens, those of blocks their session had asked for before
    across_sessions: Share | None  # of all hit tokens, the others; null where the trace names no sessions
    lost_to_capacity: Share  # input tokens that the best policy could not hit at this capacity either
    lost_to_policy: Share  # input tokens that the best policy would have hit at this capacity
    quota_cost: Share | None  # hit tokens over input tokens that quotas cost; null without quotas
    gap: Gap  # the larger of the two; none where both together are below a thousandth
    tiers: tuple[TierRow, ...]  # fastest first; empty for a single cache
    tenants: tuple[TenantRow, ...]  # empty where the trace names none
    sampling_error: Share | None = None  # how far a sample's hit rates may be off; null for the whole trace
    serving: Serving | None = None  # what hits do on a machine; null where none is named


@record
class HitPoint:
    """One capacity of the LRU curve, which is exact unless a sample was followed."""

    capacity_blocks: Count  # of this point
    capacity_tokens: Tokens | None  # of full blocks
    capacity_bytes: Bytes | None  # null where the bytes of a block are unknown
    hit_rate_tokens: Share  # input tokens hit
    hit_rate_blocks: Share  # blocks hit
    gained_tokens_per_block: Tokens  # hit tokens that one block more brings, up to the next point
    gained_per_gib: Share | None  # hit rate that a cache of one GiB more has beyond this one


@record
class Knee:
    """Where the curve stops paying: its point farthest above the straight line from empty to full."""

    capacity_blocks: Count  # of the knee
    capacity_tokens: Tokens | None  # of full blocks
    capacity_bytes: Bytes | None  # null where the bytes of a block are unknown
    hit_rate_tokens: Share  # there
    share_of_infinite: Share  # of the hits of an infinite cache


@record
class BlockRounding:
    """What whole blocks cost: prefixes shorter than a block cannot be reused."""

    shortest_prefix: Tokens | None  # shortest prefix that can be reused; null where blocks differ
    lost_tokens_at_most: Tokens | None  # hit tokens that finer blocks would add at most, in an infinite cache
    lost_share_at_most: Share | None  # of the input tokens


@record
class Scan:
    """A loop over more than the cache: nearly all reuse comes back after the same distance."""

    distance_blocks: Count  # below which LRU hits little
    share_of_reuse: Share  # of all hits of an infinite cache, those that come back at about this distance


@record
class ReplayLoad:
    """What was replayed."""

    trace: str  # file
    dialect: str  # of its lines
    requests: Count  # all of them
    counted_requests: Count  # after the warm-up
    input_tokens: Tokens  # of the counted
    output_tokens: Tokens  # of the counted
    blocks: Count  # asked for by the counted
    distinct_blocks: Count  # working set of the whole trace
    distinct_bytes: Bytes | None  # null where the bytes of a block are unknown
    block_tokens: Tokens | None  # null where blocks differ
    sessions: Count  # that the trace names
    tenants: Count  # that the trace names
    duration: Seconds | None  # from the first arrival to the last; null without times


@record
class Sampling:
    """A replay of a sample of the trace instead of all of it (SHARDS)."""

    rate: Share  # of blocks that were followed
    requests: Count  # that hold one of them
    error: Share  # the largest of the rows, from parts of the sample


@record
class ReplayResult(Result):
    """Answer of `kvcalc replay`."""

    load: ReplayLoad  # what was replayed
    rows: tuple[ReplayRow, ...]  # by capacity and policy
    curve: tuple[HitPoint, ...]  # LRU, exact but for samples; empty where the semantics have no single curve
    no_curve: str | None  # why there is no curve; null where there is one
    knee: Knee | None  # null where there is no curve or no reuse
    scan: Scan | None  # null where reuse does not come back at one distance
    rounding: BlockRounding  # what whole blocks cost
    sampling: Sampling | None  # null for the whole trace
    findings: tuple[str, ...]  # what the reader noticed in the file
    seconds: Seconds  # that the replay took, reading not counted
    requests_per_second: PerSecond  # of the replay itself, over all capacities and policies

    SCHEMA = "kvcalc.replay/1"
