"""Parts of results on offload: ranges of gains, splits, break-even curves, a fleet, and a handover.

Numbers are in base units, as everywhere; `kvcalc.results` puts these parts into its answers.
"""

from typing import Annotated

from kvcalc.quantity import (
    UNLIMITED,
    Bytes,
    BytesPerSecond,
    Count,
    Dollars,
    PerSecond,
    Seconds,
    Share,
    Tokens,
    TokensPerSecond,
)
from kvcalc.records import record

Expressible = Annotated[str, ("back", "prefix", "none")]
"""Which part of a prefix a connector can load while the rest is computed."""


@record
class GainRange:
    """The time that restoring saves, negative where it loses, over all ranges of the inputs."""

    low: Annotated[
        Seconds, "unlimited"
    ]  # fifth percentile of the draws; without draws, all ranges at their worse ends
    middle: Annotated[Seconds, "unlimited"]  # median of the draws; without draws, all inputs at their middles
    high: Annotated[
        Seconds, "unlimited"
    ]  # 95th percentile of the draws; without draws, all ranges at their better ends
    faster: Share | None  # of the draws in which restoring is faster; null without draws


@record
class Swing:
    """One input of one verdict, from one end of its range to the other while the others stay."""

    key: str  # the input
    tier: str  # whose verdict it is
    mode: str  # of the tier
    unit: str  # of `low` and `high`
    low: float  # end of the input's range
    high: float  # its other end
    gain_low: Seconds  # time that restoring saves with the input at `low`
    gain_high: Seconds  # the same at `high`
    swing: Seconds  # how far apart the two are
    decides: bool  # whether the input alone turns the verdict


@record
class Split:
    """Computing the front of a prefix while the rest of it is loaded, so that both finish together."""

    share: Share  # of the prefix's bytes that are not loaded but computed
    recomputed: Tokens | None  # from the front of the prefix; null for bare numbers, which name no tokens
    loaded: Tokens | None  # behind them
    time: Seconds  # until the first token, the suffix included
    speedup: Count  # over the better of restoring all and computing all
    prefix_loaded: (
        Tokens | None
    )  # best prefix to load before the rest is computed, for connectors of that kind
    prefix_time: Seconds  # until the first token that way
    connector: str  # of the engine
    expressible: Expressible  # back: this split; prefix: only the other way round; none: neither
    activations: Count | None  # bytes of hidden state over those of KV, of one layer; null if none grows
    reason: str  # what the connector and the hidden state allow, in words


@record
class CurvePoint:
    """The break-even at one prefix length, with the suffix of the question after it."""

    cached: Tokens  # length of the prefix
    bytes: Bytes  # to restore, per GPU
    recompute: Seconds  # prefill of prefix and suffix
    remaining: Seconds  # prefill of the suffix behind the prefix
    break_even_bandwidth: BytesPerSecond | None  # above it restoring wins; null where none does


@record
class CurveLine:
    """One quantity over the variable of a `BreakEvenCurve`; null where it has no value."""

    name: str  # of the quantity
    unit: str  # of `values`
    values: tuple[float | None, ...]  # one for each point of the curve


@record
class BreakEvenCurve:
    """Both sides of the question over one input, and where they cross."""

    variable: str  # bandwidth, prefix, hit, interval or piece
    unit: str  # of the variable
    tier: str  # from which would be restored
    points: tuple[float, ...]  # values of the variable
    lines: tuple[CurveLine, ...]  # restoring first, then what it is compared with
    break_even: float | None  # of the variable
    reason: str  # what the crossing means, or why there is none


@record
class FleetSide:
    """All replicas under the asked rate of requests, with or without the tiers."""

    utilization: Share  # of the GPUs by prefill; at 1 and above the queue grows without end
    wait: Seconds | None  # mean, for a replica of one's own; null where there is no steady state
    pooled_wait: Seconds | None  # mean, if every replica took requests from one queue
    ttft: Seconds | None  # expected, waiting included
    saturation_rate: PerSecond  # requests per second that can be served, over all replicas
    limited_by: str  # what saturates first: prefill, decode, or the tier whose path does
    tokens_per_second: TokensPerSecond  # prompt tokens at saturation
    tokens_per_dollar: Annotated[float, "token/USD"] | None  # at saturation; null without a price
    cost_per_million_tokens: Dollars | None  # of prompt, at saturation
    tokens_per_joule: Annotated[float, "token/joule"] | None  # at saturation; null where power is unknown
    reason: str  # why there is no steady state; empty where there is one


@record
class Fleet:
    """What the tiers do to a fleet of replicas under a rate of requests."""

    rate: PerSecond  # requests, over all replicas
    replicas: Count  # of the model, each on tp * pp GPUs
    hit_share: Share  # of requests that find their prefix in a tier
    tiers: tuple[str, ...]  # from which they restore; none where no tier adds anything to the GPUs
    link_utilization: Share  # of the busiest path to a tier
    decode_rate: PerSecond  # requests per second that decode can finish with as many as fit at once
    limited_by: str  # compute, decode, or the tier whose path saturates first
    without: FleetSide  # every prompt is computed
    with_tiers: FleetSide
    gain: Count  # saturation rate with the tiers over that without
    not_counted: tuple[str, ...] = ()  # tiers whose hits and whose path are in neither side
    reason: str = ""  # which tier is counted and why, in words


@record
class Handover:
    """KV on its way from prefill workers to decode workers, for one prompt."""

    bytes: Bytes  # per GPU
    bandwidth: BytesPerSecond  # of the path between two GPUs
    time: Seconds  # of the transfer by itself
    whole: Annotated[Seconds, UNLIMITED]  # that it adds, sent after the prefill, its wait for others included
    layerwise: Annotated[Seconds, UNLIMITED]  # the same where each layer is sent while the next one computes
    ttft_share_whole: Share  # of the time to first token
    ttft_share_layerwise: Share  # the same when layers are sent one by one
    hiding_bandwidth: BytesPerSecond  # from which all but the last layer hides behind the prefill
    average_bandwidth: BytesPerSecond | None  # that the rate of requests needs; null without --rate
    utilization: Share | None  # of the path by that rate
    verdict: Annotated[str, ("hidden", "exposed", "saturated")]  # of sending layer by layer
    reason: str  # the verdict in words
