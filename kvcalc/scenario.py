"""One question: a model, a machine and a workload, with everything the user chose to override."""

import math
from collections.abc import Mapping
from dataclasses import field
from typing import Any

from kvcalc.engines.settings import EngineSettings
from kvcalc.model import Model
from kvcalc.profiles import Hardware
from kvcalc.records import record
from kvcalc.results import Source

ACCEPTANCE = 0.7
"""Share of drafted tokens that the model accepts where none is given [1]; assumed: EAGLE and MTP heads
are reported between 0.6 and 0.9 for the first token, less for those after it."""


SEED = 1
"""Seed of a simulation's random numbers where none is given [1], so that two runs give one answer."""


@record
class Range:
    """An input that is known to lie between two ends, nine times out of ten; planned with at its middle."""

    low: float
    middle: float
    high: float
    most: float = math.inf  # what it cannot exceed; nothing that may carry a range is negative
    spread: str = ""  # normal, lognormal or uniform where a distribution was given; else a normal each side
    parameters: tuple[float, float] = (0.0, 0.0)  # of the distribution: mean, SD; median, sigma; or both ends


@record
class Workload:
    """What the requests look like."""

    prompt: int = 4096  # text and images together
    generate: int = 512
    concurrency: int = 1
    rate: float | None = None  # requests per second
    cached: int | None = None  # prompt tokens that hit; None when neither cached nor hit was said
    images: int = 0  # images or audio clips in each prompt
    image_tokens: int = 0  # tokens of one of them
    hit_rate: float = 1.0  # share of requests that hit, each of them `cached` tokens

    @property
    def text(self) -> int:
        """Tokens of the prompt that are text."""
        return self.prompt - self.images * self.image_tokens


@record
class TierUse:
    """A slower tier that this question may restore from, with base-unit numbers."""

    name: str
    bandwidth: float  # byte/second into one GPU, or into all that share it
    bandwidth_range: tuple[float, float] | None = None
    setup: float | None = None  # second, lookup and submission; None leaves it to the mechanism
    capacity: float | None = None  # byte
    iops: float | None = None
    io_size: float | None = None
    source: Source | None = None
    mechanism: str | None = None  # how its bytes move; None: as the engine does
    kind: str | None = None  # what it is; None: what its name tells
    shared_by: float = 1.0  # GPUs that read it at once over what they share
    latency: float | None = None  # second, of one operation
    queue_depth: float | None = None  # operations in flight
    pageable: bool = False  # host memory that is not pinned
    numa: str = "local"  # remote: on the other CPU socket
    layerwise: bool = False  # each layer loads while the one before it computes
    write_bandwidth: float | None = None  # byte/second out of all GPUs that share it
    drive_writes: float | None = None  # times its capacity that it may be written each day
    store: str | None = None  # write_through, selective or write_back; None: as the mechanism does
    via: str | None = None  # the tier that its bytes are staged in, all of them before the next hop
    price: float | None = None  # USD/byte/second; None or 0 where it is paid for anyway
    chunk: int | None = None  # tokens that are kept and found together; None: as the mechanism does


@record
class PrefillPoint:
    """One measured prefill of the user's own machine."""

    tokens: int  # computed
    cached: int  # before them, whose KV was there
    seconds: float
    where: str = ""  # file and line, for messages


@record
class Measurements:
    """Measured prefills, and the file that they are from."""

    file: str
    points: tuple[PrefillPoint, ...]


@record
class Overrides:
    """What the user measured or decided instead of the models; None leaves the model in charge."""

    pool: float | None = None
    utilization: float | None = None
    weights_dtype: str | None = None
    prefill: float | None = None
    prefill_rate: float | None = None
    calibrate: Measurements | None = None
    queue: float = 0.0
    setup: float | None = None
    convert: float = 0.0
    sync: float = 0.0
    window: float | None = None
    price: float | None = None
    disaggregate: float | None = None  # byte/second, from a GPU that prefills to one that decodes


@record
class Serving:
    """What shares the memory with the model, and what of the model stays out of the GPU."""

    draft: str | None = None  # name of a separate draft model
    acceptance: float = ACCEPTANCE
    lora: int = 0  # adapters held at once
    lora_rank: int = 16  # as in vLLM's default of --max-lora-rank
    gpu_layers: int | None = None  # llama.cpp's -ngl; None puts all layers on the GPU
    host_reserve: float | None = None  # byte, of a memory shared with the host
    host_bandwidth: float | None = None  # byte/second, of the host's own memory


@record
class Scenario:
    """A complete question in base units."""

    model: Model
    hardware: Hardware
    gpus: int
    settings: EngineSettings
    workload: Workload = field(default_factory=Workload)
    tiers: tuple[TierUse, ...] = ()
    overrides: Overrides = field(default_factory=Overrides)
    serving: Serving = field(default_factory=Serving)
    draft: Model | None = None  # a separate draft; its cache and weights are in `model` as well
    inputs: Mapping[str, Any] = field(default_factory=dict)
    given: frozenset[str] = frozenset()  # keys the user said, so that defaults can be called assumed
    ranges: Mapping[str, Range] = field(default_factory=dict)  # of inputs that were given as one, by key
    draws: int = 0  # of a Monte Carlo simulation over all ranges; 0 judges by their ends
    seed: int = SEED  # of its random numbers
