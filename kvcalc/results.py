"""What the commands answer: frozen results whose fields carry their unit in the annotation.

`to_dict()` is the JSON body: full-precision numbers in base units under stable keys, with `schema`,
`version`, `inputs`, `units`, `sources`, `warnings` and `assumptions`.  Rounding happens only in
`kvcalc.output.format`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from kvcalc.bodies import plain, public, units_of
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

FirstLimit = Annotated[str, ("capacity", "bandwidth", "tie")]
Verdict = Annotated[str, ("restore", "recompute", "too_close")]
Mode = Annotated[str, ("prefix_store", "active_working_set")]
Bound = Annotated[str, ("memory", "compute")]
"""Texts of a few fixed words; the JSON Schemas list them."""

UNLIMITED = "unlimited"
"""Marks a number that may be infinite (a use of nothing, a wait for ever); JSON has null for it."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where one value came from: nominal, measured, derived, assumed, published or given."""

    kind: str
    source: str
    as_printed: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Result:
    """What every answer carries beside its numbers."""

    inputs: Mapping[str, Any]
    sources: Mapping[str, Source]
    warnings: tuple[str, ...]
    assumptions: tuple[str, ...]

    SCHEMA = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON body: schema and version first, then the numbers, units beside them."""
        from kvcalc import __version__

        body = {name: plain(value) for name, value in public(self).items()}
        return {"schema": self.SCHEMA, "version": __version__, **body, "units": units_of(type(self))}


@dataclass(frozen=True, slots=True)
class Views:
    """Bytes of one sequence under three accounting views."""

    payload: Bytes
    serialized: Bytes
    reserved: Bytes


@dataclass(frozen=True, slots=True)
class ComponentRow:
    """One component of the cache, all its layers together, one logical copy."""

    kind: str
    layers: int
    bytes_per_token: BytesPerToken
    constant_bytes: Bytes
    cap_tokens: Tokens | None
    bytes: Bytes


@dataclass(frozen=True, slots=True)
class PoolRow:
    """What a given KV memory per GPU holds, by the engine's own rule."""

    block_tokens: Tokens | None
    page_bytes: Bytes | None
    block_bytes: Bytes | None
    num_blocks: Count | None
    cpu_blocks: Count | None
    kv_tokens: Tokens | None
    max_concurrency: Count | None


@dataclass(frozen=True, slots=True)
class KV:
    """What one token and one sequence cost."""

    model: str
    engine: str
    kv_dtype: str
    bytes_per_token: BytesPerToken
    bytes_per_token_per_gpu: BytesPerToken
    constant_bytes: Bytes
    tokens: Tokens
    views: Views
    views_per_gpu: Views
    components: tuple[ComponentRow, ...]


@dataclass(frozen=True, slots=True)
class Inverse:
    """Answers to the inverse questions for one pool."""

    sequences: Count | None  # most sequences of `tokens` tokens
    longest: Tokens | None  # longest context for the asked number of sequences
    smallest_pool: Bytes | None  # least KV memory per GPU for both


@dataclass(frozen=True, slots=True)
class KVResult(Result):
    """Answer of `kvcalc kv`; its JSON has the fields of `kv` at the top level."""

    kv: KV
    memory: PoolRow | None = None
    inverse: Inverse | None = None

    SCHEMA = "kvcalc.kv/1"

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON body with the KV figures at the top level."""
        body = Result.to_dict(self)
        figures = body.pop("kv")
        body["units"] = {key.removeprefix("kv."): unit for key, unit in body["units"].items()}
        if body["memory"] is None:
            del body["memory"]
        if body["inverse"] is None:
            del body["inverse"]
        head = {key: body.pop(key) for key in ("schema", "version")}
        return {**head, **figures, **body}


@dataclass(frozen=True, slots=True)
class ParameterCounts:
    """Parameters of a model: all of them, those one token uses, and by what they are for."""

    total: Count
    active: Count
    by_part: Mapping[str, Count]


@dataclass(frozen=True, slots=True)
class Weights:
    """Bytes of a model's weights, scales included, altogether and by storage format."""

    bytes: Bytes
    by_dtype: Mapping[str, Bytes]


@dataclass(frozen=True, slots=True)
class ModelResult(Result):
    """Answer of `kvcalc models show`."""

    name: str
    hub: str | None
    model_type: str
    layers: Count
    hidden: Count
    query_heads: Count
    max_tokens: Tokens | None
    dtype: str
    parameters: ParameterCounts | None  # None where this model_type's weights are not understood
    weights: Weights | None
    kv: KV

    SCHEMA = "kvcalc.model-show/1"


@dataclass(frozen=True, slots=True)
class HardwareValue:
    """One value of a machine, in base units and as its source prints it."""

    key: str  # dotted, as `--set` takes it
    value: float | None
    unit: str
    as_printed: str
    kind: str
    source: str  # key into `HardwareResult.references`, or "user"
    url: str | None
    range: tuple[float, float] | None
    note: str


@dataclass(frozen=True, slots=True)
class Reference:
    """A page, file or log that values were read from."""

    title: str
    url: str | None
    retrieved: str | None


@dataclass(frozen=True, slots=True)
class HardwareResult(Result):
    """Answer of `kvcalc hardware show`."""

    name: str
    title: str
    vendor: str
    aliases: tuple[str, ...]
    via: Mapping[str, str]  # what carries each link
    unified: bool  # CPU and device share one memory
    values: tuple[HardwareValue, ...]
    references: Mapping[str, Reference]
    notes: tuple[str, ...]

    SCHEMA = "kvcalc.hardware-show/1"


@dataclass(frozen=True, slots=True)
class Memory:
    """Where the memory of one GPU goes; the parts add up to `total`, the driver-visible memory."""

    total: Bytes
    weights: Bytes
    activations: Bytes
    other: Bytes
    kv_pool: Bytes
    block_tokens: Tokens | None
    page_bytes: Bytes | None
    block_bytes: Bytes | None
    num_blocks: Count | None
    cpu_blocks: Count | None
    kv_tokens: Tokens | None
    max_concurrency: Count | None


@dataclass(frozen=True, slots=True)
class Capacity:
    """Bytes needed at once against bytes left for KV, per GPU."""

    need: Bytes
    budget: Bytes
    utilization: Annotated[Share, UNLIMITED]
    shortfall: Bytes
    sessions: Count


@dataclass(frozen=True, slots=True)
class Bandwidth:
    """Memory traffic of the target throughput against what the device sustains, per GPU."""

    need: BytesPerSecond
    budget: BytesPerSecond
    utilization: Share
    target_tokens_per_second: TokensPerSecond


@dataclass(frozen=True, slots=True)
class Decode:
    """One decode step at the planned concurrency."""

    step_time: Seconds
    tokens_per_second: TokensPerSecond
    bound: Bound
    range: tuple[Seconds, Seconds]


@dataclass(frozen=True, slots=True)
class Prefill:
    """Computing a whole prompt, nothing cached."""

    time: Seconds
    flops: Flop
    source: str
    range: tuple[Seconds, Seconds]


@dataclass(frozen=True, slots=True)
class Offload:
    """One tier in one mode: restore against recompute."""

    tier: str
    mode: Mode
    bytes: Bytes
    bandwidth: BytesPerSecond
    queue: Seconds
    setup: Seconds
    transfer: Seconds
    convert: Seconds
    sync: Seconds
    restore: Seconds
    remaining: Seconds
    cached_total: Seconds
    recompute: Annotated[Seconds, UNLIMITED]
    speedup: Annotated[Count, UNLIMITED]
    break_even_bandwidth: BytesPerSecond | None
    break_even_tokens: Tokens | None
    extra_wait: Seconds | None
    overlapped_total: Seconds | None
    verdict: Verdict
    confidence: Share
    reason: str


@dataclass(frozen=True, slots=True)
class RestoreResult(Result):
    """Answer of `kvcalc restore`: one row per bandwidth or tier."""

    rows: tuple[Offload, ...]
    break_even_bandwidth: BytesPerSecond | None
    reason: str | None

    SCHEMA = "kvcalc.restore/1"


@dataclass(frozen=True, slots=True)
class Eviction:
    """What losing one sequence costs."""

    recompute_time: Seconds
    recompute_tokens: Tokens
    swap_time: Seconds | None
    cheapest_mode: str
    thrash_evictions_per_second: PerSecond


@dataclass(frozen=True, slots=True)
class Flip:
    """A value at which an answer changes."""

    key: str
    value: float | str
    at: float | str
    verdict: str
    unit: str


@dataclass(frozen=True, slots=True)
class PlanResult(Result):
    """Answer of `kvcalc plan`."""

    kv: KV
    memory: Memory
    capacity: Capacity
    bandwidth: Bandwidth
    first_limit: FirstLimit
    decode: Decode
    prefill: Prefill
    offload: tuple[Offload, ...]
    eviction: Eviction
    flips: tuple[Flip, ...]
    cost_per_million_tokens: Dollars | None
    summary: tuple[str, ...] = field(default=())

    SCHEMA = "kvcalc.plan/1"

    @property
    def fits(self) -> bool:
        """Whether the target concurrency fits the KV memory."""
        return float(self.capacity.shortfall) <= 0
