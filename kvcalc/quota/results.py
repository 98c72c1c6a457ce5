"""What the quota commands answer: frozen results whose fields carry their unit in the annotation."""

from dataclasses import dataclass
from typing import Annotated

from kvcalc.quantity import Bytes, BytesPerSecond, BytesPerToken, Count, PerSecond, Seconds, Share, Tokens
from kvcalc.results import Result

Rule = Annotated[str, ("fractional", "owner", "full")]
QuotaKind = Annotated[str, ("hard", "soft")]
Means = Annotated[str, ("free", "offload", "compress", "evict_tail", "preempt")]
Reason = Annotated[str, ("pinned", "shared", "leased", "running")]
Method = Annotated[str, ("exact", "greedy")]


@dataclass(frozen=True, slots=True)
class GroupRow:
    """One KV group: layers that share a block table."""

    group: str  # its name; empty where the model has one
    block_tokens: Tokens  # of one block
    block_bytes: Bytes  # of one block
    bytes_per_token: BytesPerToken  # of a token in a full block; 0 for a recurrent state
    pool_blocks: Count  # of the pool it takes blocks from, which other groups may share
    blocks: Count  # in use
    free_blocks: Count  # of that pool
    block_table_entries: Count  # blocks by session, shared ones once for each holder


@dataclass(frozen=True, slots=True)
class PoolTotals:
    """The pool against what is in it and what was promised."""

    blocks: Count  # of all pools
    bytes: Bytes  # of all pools
    used_blocks: Count  # taken
    used: Bytes  # taken
    free: Bytes  # to be handed out
    shared: Bytes  # held by several sessions
    saved_by_sharing: Bytes  # what private copies would take more
    pinned: Bytes  # used, and never reclaimable
    leased: Bytes  # in transfers
    unheld: Bytes  # pinned or in a transfer, but of no session any more
    unfilled: Bytes  # in blocks, but without a token
    quotas: Bytes  # sum over tenants
    floors: Bytes  # sum over tenants
    oversubscription: Share  # quotas over the pool's bytes
    floor_share: Share  # floors over the pool's bytes
    dram: Bytes | None  # capacity of the lower tier
    dram_used: Bytes  # in it already
    dram_room: Bytes  # before its watermark


@dataclass(frozen=True, slots=True)
class TenantRow:
    """What one tenant holds, is charged, and could give back."""

    tenant: str  # its name
    sessions: Count  # in the ledger
    running: Count  # of these
    blocks: Count  # distinct
    used: Bytes  # of these blocks, in full
    charged: Bytes  # by the rule in force
    charged_owner: Bytes  # by the rule owner
    charged_full: Bytes  # by the rule full
    charged_fractional: Bytes  # by the rule fractional
    quota: Bytes | None  # what it may hold; null without one
    kind: QuotaKind  # a soft quota may be exceeded between two checks
    over: Bytes  # what counts against the quota beyond it
    floor: Bytes  # what no neighbour may take
    tokens: Tokens  # of all its sessions
    resident_tokens: Tokens  # slots of its blocks that hold a token, shared ones once
    token_bytes: Bytes  # `used` less `unfilled`
    unfilled: Bytes  # gap between blocks and tokens
    fragmentation: Share  # unfilled over used
    pinned: Bytes  # of `used`
    shared: Bytes  # with other tenants
    leased: Bytes  # in transfers
    free: Bytes  # reclaimable at no cost now: finished, or copied in the lower tier
    offload: Bytes  # reclaimable by offloading: suspended
    compress: Bytes  # what compressing these would free
    evict_tail: Bytes  # what dropping these would free
    preempt: Bytes  # reclaimable by preempting: running
    unreclaimable: Bytes  # pinned, shared with others, or in transfers


@dataclass(frozen=True, slots=True)
class AdmissionRow:
    """How many sessions of a tenant fit its quota, and what it does between two checks."""

    tenant: str  # its name
    length_p50: Tokens  # of its sessions, given or found
    length_p95: Tokens  # of its sessions, given or found
    session_bytes_p50: Bytes  # of such a session, in whole blocks
    session_bytes_p95: Bytes  # of such a session, in whole blocks
    fit_p50: Count | None  # sessions of that length in the quota; null without one
    fit_p95: Count | None  # the same at the long length
    overshoot: Bytes | None  # of a soft quota at most, between two checks


@dataclass(frozen=True, slots=True)
class NeighbourRow:
    """How long a tenant's untouched blocks stay under one shared LRU, and in its own floor."""

    tenant: str  # its name
    writes: BytesPerSecond  # new KV
    survives_shared: Seconds  # under one LRU over all tenants
    survives_floor: Seconds | None  # in its floor alone; null without one
    reuse_gap: Seconds | None  # until it comes back
    hits_shared: bool | None  # whether it still finds its blocks; null without a gap
    hits_floor: bool | None  # whether its own floor would keep them


@dataclass(frozen=True, slots=True)
class QuotaShowResult(Result):
    """Answer of `kvcalc quota show`: who holds what."""

    rule: Rule  # by which shared blocks are charged
    bytes_per_token: BytesPerToken  # of a long session, over all groups
    pool: PoolTotals
    groups: tuple[GroupRow, ...]
    rows: tuple[TenantRow, ...]  # one a tenant
    admission: tuple[AdmissionRow, ...] = ()
    neighbours: tuple[NeighbourRow, ...] = ()

    SCHEMA = "kvcalc.quota-show/1"


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a reclaim plan: blocks of one session by one means, leaves first."""

    means: Means  # how the blocks go
    tenant: str  # whose they are
    session: str  # that holds them; of several, the last one
    blocks: Count  # freed
    bytes: Bytes  # freed
    cost_seconds: Seconds  # now, and later by its chance
    seconds: Seconds  # of the link, now
    later_seconds: Seconds  # when the session comes back, by its chance
    link_bytes: Bytes  # that cross the link now
    block_ids: tuple[tuple[int, int], ...]  # ranges of freed blocks, the leaf's first


@dataclass(frozen=True, slots=True)
class Unreclaimable:
    """Blocks of the tenant that cannot be had, whatever is asked."""

    reason: Reason  # the first that holds
    tenant: str  # whose they are
    session: str  # the first that holds them
    blocks: Count  # that stay
    bytes: Bytes  # that stay


@dataclass(frozen=True, slots=True)
class Left:
    """Blocks of the tenant that could be had, but were not taken."""

    means: Means  # by which they could
    blocks: Count  # that stay
    bytes: Bytes  # that stay
    why: str  # why not


@dataclass(frozen=True, slots=True)
class Cheapest:
    """The same bytes by least cost instead of by the fixed order."""

    freed_bytes: Bytes  # by this plan
    cost_seconds: Seconds  # of this plan
    lower_bound: Seconds  # no plan costs less
    method: Method  # exact up to 20 blocks, greedy by cost per byte above
    saves: Seconds | None  # what the fixed order costs more; null where one of them does not reach the bytes
    reason: str | None  # why there is no difference
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Charge:
    """What a tenant is charged before and after."""

    tenant: str  # its name
    before: Bytes  # the plan
    after: Bytes  # the plan
    quota: Bytes | None  # null without one
    over: Bytes  # of its quota, afterwards


@dataclass(frozen=True, slots=True)
class GroupRoom:
    """What the request needs of one KV group, against what is free after the plan."""

    group: str  # its name; empty where the model has one
    needs: Count  # blocks
    free: Count  # blocks of its pool
    short: Count  # blocks of its pool that all its groups together lack


@dataclass(frozen=True, slots=True)
class Placement:
    """Whether a request can be placed with the freed blocks."""

    request: str  # which one, or the bytes that were asked
    tokens: Tokens | None  # null where bytes were asked and nothing waits
    bytes: Bytes  # that it needs in whole blocks
    groups: tuple[GroupRoom, ...]
    placed: bool  # whether every group has the blocks
    rebalance: str  # what it takes, empty where it can be placed


@dataclass(frozen=True, slots=True)
class Watermark:
    """What the lower tier took, and what its watermark kept out."""

    room: Bytes  # before the plan
    offloaded: Bytes  # by the plan
    kept_out: Bytes  # could be offloaded, but past the watermark
    compressed: Bytes  # freed by compressing instead
    room_without: Bytes  # if the tier might be filled


@dataclass(frozen=True, slots=True)
class Decodes:
    """Running decodes of a tenant over its quota: preempt and replay, or let grow and admit nothing new."""

    sessions: Count  # running
    over: Bytes  # of the quota, now
    growth: Bytes | None  # still to come; null where a session's remaining tokens are not known
    peak: Bytes | None  # charged, once all have grown
    preempt_sessions: tuple[str, ...]  # whom it takes, cheapest first
    preempt_bytes: Bytes  # that this frees
    preempt_seconds: Seconds  # prefill of their contexts
    grow_seconds: Seconds | None  # until the last of them is done and nothing need be held back
    held_back: Count | None  # requests that arrive meanwhile; null without arrivals
    waited_seconds: Seconds | None  # that they wait together
    verdict: str  # which costs less


@dataclass(frozen=True, slots=True)
class QuotaReclaimResult(Result):
    """Answer of `kvcalc quota reclaim`: how to get bytes back from a tenant."""

    tenant: str  # from whom
    rule: Rule  # by which shared blocks are charged
    asked_bytes: Bytes  # to free
    steps: tuple[Step, ...]
    freed_bytes: Bytes  # by all steps
    freed_blocks: Count  # by all steps
    reached: bool  # whether as much is freed as was asked
    used_before: Bytes  # of all pools
    used_after: Bytes  # of all pools
    cost_seconds: Seconds  # of all steps
    unreclaimable: tuple[Unreclaimable, ...]
    left: tuple[Left, ...]
    usable_after: bool  # whether the request that waits can be placed
    placement: Placement
    least_cost: Cheapest
    watermark: Watermark | None  # null without a lower tier
    charges: tuple[Charge, ...]
    decodes: Decodes | None  # null where nothing runs over the quota
    recompute_rate: Annotated[float, "token/second"]  # what the prices assume for a long prompt
    out_bandwidth: BytesPerSecond  # of the link, device to host
    back_bandwidth: BytesPerSecond  # of the link, host to device
    arrivals: PerSecond | None = None  # requests that a closed admission holds back, as asked

    SCHEMA = "kvcalc.quota-reclaim/1"
