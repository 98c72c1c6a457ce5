"""What `kvcalc replay --describe` answers: the trace itself, before any cache."""

from kvcalc.quantity import Count, PerSecond, Seconds, Share, Tokens
from kvcalc.records import record
from kvcalc.results import Result


@record
class TraceSize:
    """How large a trace is."""

    dialect: str  # whose format it is
    requests: Count  # of the trace
    block_accesses: Count  # blocks that all requests ask for, together
    unique_blocks: Count  # different ones
    block_tokens: Tokens | None  # of a full block; null where blocks differ
    input_tokens: Tokens  # of all requests
    output_tokens: Tokens  # of all requests
    unique_tokens: Tokens  # in all different blocks: what an infinite cache holds in the end
    duration: Seconds | None  # from the first request to the last; null without times
    request_rate: PerSecond | None  # over that time


@record
class InfiniteCache:
    """What a cache that never evicts would hit, from a cold start; four readings of one thing."""

    hit_rate_tokens: Share  # prefix hits over input tokens, of the whole trace
    hit_rate_blocks: Share  # prefix hits over block accesses
    hit_rate_requests: Share  # mean over requests of each one's own share of hit input
    hit_rate_tokens_last_half: Share  # of the last half of the requests, the first half being warm-up
    within_session: Share | None  # of the input: hit by blocks that the own session had before
    across_sessions: Share | None  # of the input: hit by those of other sessions alone
    component_hits: (
        Share | None
    )  # of the input: components that came before at any place; null: ids are chains
    requests_with_hits: Share  # of all requests


@record
class SessionFacts:
    """Conversations, or runs of agents."""

    sessions: Count  # of the trace
    requests_median: Count  # of a session
    requests_max: Count  # of a session
    duration_median: Seconds | None  # from the first to the last request of a session
    at_once_mean: Count | None  # sessions between their first and last request
    at_once_max: Count | None  # the same, at most
    consecutive_median: Share  # over sessions: blocks that a request shares with the one before
    consecutive_mean: Share  # the same, as a mean over sessions


@record
class LengthRow:
    """How long one part of the requests is."""

    part: str  # input, output, or what an infinite cache hits or does not
    mean: Tokens  # over all requests
    median: Tokens  # half are shorter
    p90: Tokens  # nine of ten are shorter
    p99: Tokens  # 99 of 100 are shorter
    longest: Tokens  # of all


@record
class WindowRow:
    """The working set: different blocks that are asked for within a window of time."""

    window: Seconds  # its length
    mean: Tokens  # over the windows of the trace
    largest: Tokens  # of all of them


@record
class BlockRow:
    """What larger blocks would leave of the hits of an infinite cache."""

    block_tokens: Tokens  # tokens of a block
    hit_rate_tokens: Share  # whole blocks that came before, over input tokens
    lost: Share  # of the input, against the trace's own blocks
    requests_without_hit: Share  # of all requests


@record
class Rounding:
    """What is lost because only whole blocks hit."""

    shortest_reusable_prefix: Tokens  # nothing shorter hits: one block
    requests_below: Count  # shorter than that
    never_cached: Tokens  # input behind the last block that the file has
    finer_at_most: Share  # of the input: what blocks of one token would add to the hits at most
    rows: tuple[BlockRow, ...]  # for larger blocks


@record
class Popularity:
    """How unevenly blocks are used."""

    used_once: Share  # of all different blocks
    top_tenth: Share  # of all repeated accesses: to the tenth of the blocks that is used most
    most: Count  # accesses of the most used block


@record
class TimeRow:
    """One part of the trace's time."""

    start: Seconds  # since the first request
    requests: Count  # that come in it
    input_tokens: Tokens  # of them
    hit_rate_tokens: Share | None  # of an infinite cache; null where nothing is asked
    new_tokens: Tokens  # in blocks that come for the first time
    working_set: Tokens  # in different blocks that are asked for
    live_tokens: Tokens  # in blocks that were asked for and will be again, at its end


@record
class FindingRow:
    """One thing that was noticed in the file."""

    name: str  # stable, for programs
    count: Count  # of what the text speaks of
    text: str  # for people
    lines: tuple[int, ...]  # the first of them
    warning: bool  # whether it changes what the numbers mean


@record
class DescribeResult(Result):
    """Answer of `kvcalc replay --describe`."""

    trace: TraceSize
    infinite: InfiniteCache
    sessions: SessionFacts | None
    lengths: tuple[LengthRow, ...]
    working_sets: tuple[WindowRow, ...]
    rounding: Rounding | None  # null where blocks differ
    popularity: Popularity
    live_tokens_max: Tokens | None  # most that was live at once: what a cache that knows the future holds
    rows: tuple[TimeRow, ...]  # over time; empty without times
    findings: tuple[FindingRow, ...]

    SCHEMA = "kvcalc.replay-describe/1"
