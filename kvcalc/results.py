"""What the commands answer: frozen results whose fields carry their unit in the annotation.

`to_dict()` is the JSON body: full-precision numbers in base units under stable keys, with `schema`,
`version`, `inputs`, `units`, `sources`, `warnings` and `assumptions`.  Rounding happens only in
`kvcalc.output.format`.
"""

from collections.abc import Mapping
from typing import Annotated, Any

from kvcalc.bodies import plain, public, units_of
from kvcalc.calibration_results import Calibration
from kvcalc.keys import input_units
from kvcalc.offload_results import BreakEvenCurve, CurvePoint, Fleet, GainRange, Handover, Split, Swing
from kvcalc.quantity import UNLIMITED as UNLIMITED  # of results, to those who read them
from kvcalc.quantity import (
    Bytes,
    BytesPerSecond,
    BytesPerToken,
    Count,
    Dollars,
    Flop,
    PerSecond,
    Seconds,
    Share,
    Tokens,
    TokensPerSecond,
)
from kvcalc.records import record
from kvcalc.trace_results import TraceHits

FirstLimit = Annotated[str, ("capacity", "bandwidth", "tie")]
Verdict = Annotated[str, ("restore", "recompute", "too_close")]
Mode = Annotated[str, ("prefix_store", "active_working_set")]
Severity = Annotated[str, ("error", "warning", "info")]
Bound = Annotated[str, ("memory", "compute")]
"""Texts of a few fixed words; the JSON Schemas list them."""


@record
class Source:
    """Where one value came from: nominal, measured, derived, assumed, published or given."""

    kind: str  # nominal, measured, derived, assumed, published or given
    source: str  # page, file or option
    as_printed: str = ""  # the value as its source prints it
    note: str = ""  # what else to know of it


@record
class Result:
    """What every answer carries beside its numbers."""

    inputs: Mapping[str, Any]  # what was asked, as it was understood
    sources: Mapping[str, Source]  # where each value came from, by key
    warnings: tuple[str, ...]  # what a careful reader should know
    assumptions: tuple[str, ...]  # what was assumed and mattered

    SCHEMA = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON body: schema and version first, then the numbers, units beside them."""
        from kvcalc import __version__

        body = {name: plain(value) for name, value in public(self).items()}
        asked = {f"inputs.{name}": unit for name, unit in input_units(self.inputs).items()}
        return {
            "schema": self.SCHEMA,
            "version": __version__,
            **body,
            "units": {**units_of(type(self)), **asked},
        }


@record
class Views:
    """Bytes of one sequence under three accounting views."""

    payload: Bytes  # the useful values alone
    serialized: Bytes  # with scales, metadata and padding, as stored or sent
    reserved: Bytes  # with page rounding, as the engine's allocator holds it


@record
class ComponentRow:
    """One component of the cache, all its layers together, one logical copy."""

    kind: str  # full_attention, sliding_window, mla, ...
    layers: int  # how many layers own one
    bytes_per_token: BytesPerToken  # of a further token; 0 once it no longer grows
    constant_bytes: Bytes  # per sequence, once it no longer grows
    cap_tokens: Tokens | None  # tokens kept at most; null if it is not capped by a window
    bytes: Bytes  # of one sequence of `tokens` tokens


@record
class PoolRow:
    """What a given KV memory per GPU holds, by the engine's own rule."""

    block_tokens: Tokens | None  # tokens in one block
    page_bytes: Bytes | None  # one block of one layer
    block_bytes: Bytes | None  # one block over all layers of a GPU
    num_blocks: Count | None  # blocks in the pool
    cpu_blocks: Count | None  # blocks of the swap space (vLLM before 0.8)
    kv_tokens: Tokens | None  # tokens that fit, as the engine prints them
    max_concurrency: Count | None  # sequences of --max-len at once


NO_ENGINE = "generic"
"""What `KV.engine` says where the bytes are those that the model must remember, under no engine's rules."""


@record
class KV:
    """What one token and one sequence cost."""

    model: str  # its name
    engine: str  # whose accounting this is
    kv_dtype: str  # storage format of the cache
    bytes_per_token: BytesPerToken  # of a further token, one logical copy
    bytes_per_token_per_gpu: BytesPerToken  # the same on the GPU that holds most
    constant_bytes: Bytes  # per sequence: full windows and states
    tokens: Tokens  # length of the sequence that the views count
    views: Views  # one sequence in the whole deployment; reserved counts every rank
    views_per_gpu: Views  # one sequence on the GPU that holds most
    components: tuple[ComponentRow, ...]  # by kind


@record
class Inverse:
    """Answers to the inverse questions for one pool."""

    sequences: Count | None  # most sequences of `tokens` tokens
    longest: Tokens | None  # longest context for the asked number of sequences
    smallest_pool: Bytes | None  # least KV memory per GPU for both


@record
class GrowthLine:
    """One component over the lengths of a `GrowthCurve`, one logical copy."""

    kind: str  # of the component
    layers: int  # how many layers own one
    cap_tokens: Tokens | None  # tokens kept at most; null if it is not capped by a window
    bytes: tuple[Annotated[float, "byte"], ...]  # one number a length


@record
class GrowthCurve:
    """Bytes of one sequence against its length; lengths are evenly spaced in their logarithm."""

    tokens: tuple[int, ...]  # the lengths
    lines: tuple[GrowthLine, ...]  # one a component


@record
class KVResult(Result):
    """Answer of `kvcalc kv`; its JSON has the fields of `kv` at the top level."""

    kv: KV
    memory: PoolRow | None = None  # with a pool only
    inverse: Inverse | None = None  # with a pool only
    growth: GrowthCurve | None = None  # with a curve only

    SCHEMA = "kvcalc.kv/1"
    EXTRAS = ("memory", "inverse", "growth")

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON body with the KV figures at the top level."""
        body = Result.to_dict(self)
        figures = body.pop("kv")
        body["units"] = {key.removeprefix("kv."): unit for key, unit in body["units"].items()}
        for extra in self.EXTRAS:
            if body[extra] is None:
                del body[extra]
        head = {key: body.pop(key) for key in ("schema", "version")}
        return {**head, **figures, **body}


@record
class MemoryUse:
    """Parts of the memory of one GPU."""

    total: Bytes  # as the driver reports it
    weights: Bytes  # on the GPU that holds most
    activations: Bytes  # peak of one step
    other: Bytes  # context, graphs, buffers, the driver's own, and `unused`; negative: missing
    kv_pool: Bytes  # left for KV


@record
class Memory(PoolRow, MemoryUse):
    """Where the memory of one GPU goes; the parts add up to `total`, the driver-visible memory."""

    unused: Bytes = 0.0  # of `other`, what nothing needs: the share that the engine may not use


@record
class Capacity:
    """Bytes needed at once against bytes left for KV, per GPU."""

    need: Bytes  # reserved by the asked concurrency
    budget: Bytes  # the KV pool
    utilization: Annotated[Share, UNLIMITED]  # need over budget; null without a budget
    shortfall: Bytes  # what is missing; 0 if it fits
    sessions: Count  # sequences that fit, over all replicas


@record
class Bandwidth:
    """Memory traffic of the target throughput against what the device sustains, per GPU."""

    need: BytesPerSecond  # read from device memory at the target throughput
    budget: BytesPerSecond  # what the device sustains
    utilization: Share  # need over budget
    target_tokens_per_second: TokensPerSecond  # asked, over all sequences


@record
class Decode:
    """One decode step at the planned concurrency."""

    step_time: Seconds  # `tokens_per_step` tokens for each running sequence
    tokens_per_second: TokensPerSecond  # over all sequences
    bound: Bound  # what the step waits for
    range: tuple[Seconds, Seconds]  # low and high of `step_time`
    tokens_per_second_range: tuple[TokensPerSecond, TokensPerSecond]  # low and high
    tokens_per_step: Tokens = 1.0  # that a sequence gains; more than 1 by speculation
    communication: Seconds = 0.0  # of the step: ranks adding up their results
    draft_time: Seconds = 0.0  # of the step: passes of the draft
    host_time: Seconds = 0.0  # of the step: layers that are left in host memory
    compute_bound_batch: Count | None = None  # sequences at once from which a step waits for compute
    reason: str | None = None  # why there is no such batch


@record
class HostShare:
    """The layers that llama.cpp keeps in host memory and computes there (-ngl)."""

    layers: Count  # decoder layers
    weights: Bytes  # with the input embedding
    kv: Bytes  # of these layers, for the asked concurrency
    bandwidth: BytesPerSecond  # of the host's memory
    step_time: Seconds  # their part of one decode step


@record
class Prefill:
    """Computing a whole prompt, nothing cached."""

    time: Seconds  # of one prompt
    flops: Flop  # a multiply-add counts as two
    source: str  # model or given
    range: tuple[Seconds, Seconds]  # low and high of `time`


@record
class Offload:
    """One tier in one mode: restore against recompute."""

    tier: str  # its name, or its rate
    mode: Mode  # prefix store: once per hit; active working set: in every decode step
    bytes: Bytes  # to move, per GPU
    bandwidth: BytesPerSecond  # of the path for pieces of the size it moves
    queue: Annotated[Seconds, UNLIMITED]  # wait before it starts; null where the link cannot serve the rate
    setup: Seconds  # lookup and submission
    transfer: Seconds  # bytes over bandwidth
    convert: Seconds  # dequantize or transpose afterwards
    sync: Seconds  # until all ranks agree
    restore: Annotated[Seconds, UNLIMITED]  # sum of the five parts
    remaining: Seconds  # prefill of what the hit does not cover; one decode step in a working set
    cached_total: Annotated[Seconds, UNLIMITED]  # restore and remaining, one after the other
    recompute: Annotated[Seconds, UNLIMITED]  # the same work without the tier; null where it never ends
    speedup: Annotated[Count, UNLIMITED]  # recompute over cached_total
    break_even_bandwidth: BytesPerSecond | None  # above it restoring wins; null where none does
    break_even_tokens: Tokens | None  # shortest prefix worth restoring
    extra_wait: Seconds | None  # what the overlap window does not hide
    overlapped_total: Seconds | None  # total with the overlap window
    verdict: Verdict  # which is faster
    confidence: Share  # 0 a coin toss, 1 certain under the ranges
    reason: str  # the verdict in words
    gain: GainRange | None = None  # time that restoring saves, over the ranges
    split: Split | None = None  # one part computed while the other is loaded; null for streaming
    mechanism: str | None = None  # how the bytes move
    piece_bytes: Bytes | None = None  # of one piece; null where everything is one
    queue_p99: Seconds | None = None  # wait that 99 of 100 restores stay below
    utilization: Share | None = None  # share of the time that the tier's link is busy at the planned rate
    first_restore: Seconds | None = None  # more for the first restore between two servers
    write_need: BytesPerSecond | None = None  # stored by one GPU at the planned rate
    write_budget: BytesPerSecond | None = None  # that its link and the device can take; null without stores
    layer_group: Count | None = None  # layers to load at a time, were it loaded while the prefill computes
    layerwise_total: Seconds | None = None  # time to the first token of a hit that is loaded so
    break_even_tokens_most: Tokens | None = (
        None  # longest prefix worth restoring; null where none is too long
    )
    break_even_tokens_every: bool | None = None  # whether all lengths between pay; null where none does
    prefetch_lead: Seconds | None = None  # before its KV is needed, for 99 of 100 restores to be in time
    adds_nothing: bool | None = (
        None  # whether it holds only what the GPUs hold, or no whole prefix; null where nobody says
    )
    adds_nothing_reason: str = ""  # the sizes in words, where it adds nothing


@record
class RestoreResult(Result):
    """Answer of `kvcalc restore`: one row per bandwidth or tier."""

    rows: tuple[Offload, ...]  # one per bandwidth or tier
    break_even_bandwidth: BytesPerSecond | None  # of the first row
    reason: str | None  # why there is no break-even
    curve: tuple[CurvePoint, ...] = ()  # over the prefix length, where a model says how the times grow
    tornado: tuple[Swing, ...] = ()  # what each uncertain input does, the largest swing first
    break_even_curve: BreakEvenCurve | None = None  # over the input that --curve names

    SCHEMA = "kvcalc.restore/1"


@record
class Eviction:
    """What losing one sequence costs."""

    recompute_time: Seconds  # of a sequence about to finish
    recompute_tokens: Tokens  # its tokens
    swap_time: Seconds | None  # out and back; null without a tier
    cheapest_mode: str  # swap or recompute
    thrash_evictions_per_second: PerSecond  # rate above which admission should stop


@record
class Flip:
    """A value at which an answer changes."""

    key: str  # the input
    value: float | str  # now
    at: float | str  # from here on
    verdict: str  # what then holds
    unit: str  # of both values
    tier: str = ""  # the tier whose verdict it is, where it is one's


@record
class ConfigCheck:
    """One remark on a launch file that was held against the plan."""

    id: str  # which check: stable, for filters
    severity: Severity  # error: it will not do what was asked; info: what a value means
    message: str  # the reason, with this run's numbers
    instead: str  # what to write; empty where nothing is to change
    where: str  # file and line
    source: str  # page that says so

    @property
    def stops_hits(self) -> bool:
        """Whether nothing can hit in a slower tier as it is launched."""
        return self.severity == "error" and self.id in STOPS_HITS


STOPS_HITS = frozenset({"full-chunks-only", "offload-size-unit", "tier-not-switched-on", "store-step"})
"""Checks whose errors mean that nothing is stored in a slower tier, or nothing of it found."""


@record
class PlanResult(Result):
    """Answer of `kvcalc plan`."""

    kv: KV
    memory: Memory  # of one GPU
    capacity: Capacity
    bandwidth: Bandwidth
    first_limit: FirstLimit  # which budget runs out first as load grows
    decode: Decode
    prefill: Prefill
    offload: tuple[Offload, ...]  # one per tier and mode
    eviction: Eviction
    flips: tuple[Flip, ...]  # what would change the answers
    cost_per_million_tokens: Dollars | None  # null without --price
    host: HostShare | None = None  # null where the GPU holds all layers
    tornado: tuple[Swing, ...] = ()  # what each uncertain input does, the largest swing first
    fleet: Fleet | None = None  # all replicas under --rate, with the tiers and without; else null
    transfer: Handover | None = None  # from prefill to decode workers with --disaggregate; else null
    config_checks: tuple[ConfigCheck, ...] = ()  # of the launch that --check-config names
    calibration: Calibration | None = None  # what measuring this machine changed; null where nobody has
    trace: TraceHits | None = None  # hits replayed at the plan's capacities with --trace; else null

    SCHEMA = "kvcalc.plan/1"

    @property
    def fits(self) -> bool:
        """Whether the target concurrency fits the KV memory."""
        return float(self.capacity.shortfall) <= 0
