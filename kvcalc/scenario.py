"""One question: a model, a machine and a workload, with everything the user chose to override."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kvcalc.engines.settings import EngineSettings
from kvcalc.model import Model
from kvcalc.profiles import Hardware
from kvcalc.results import Source


@dataclass(frozen=True, slots=True)
class Workload:
    """What the requests look like."""

    prompt: int = 4096
    generate: int = 512
    concurrency: int = 1
    rate: float | None = None  # requests per second
    cached: int | None = None  # prompt tokens that hit; None when neither cached nor hit was said


@dataclass(frozen=True, slots=True)
class TierUse:
    """A slower tier that this question may restore from, with base-unit numbers."""

    name: str
    bandwidth: float  # byte/second into one GPU
    bandwidth_range: tuple[float, float] | None = None
    setup: float = 0.0  # second, lookup and submission
    capacity: float | None = None  # byte
    iops: float | None = None
    io_size: float | None = None
    source: Source | None = None


@dataclass(frozen=True, slots=True)
class Overrides:
    """What the user measured or decided instead of the models; None leaves the model in charge."""

    pool: float | None = None
    utilization: float | None = None
    weights_dtype: str | None = None
    prefill: float | None = None
    prefill_rate: float | None = None
    queue: float = 0.0
    setup: float | None = None
    convert: float = 0.0
    sync: float = 0.0
    window: float | None = None
    price: float | None = None


@dataclass(frozen=True, slots=True)
class Scenario:
    """A complete question in base units."""

    model: Model
    hardware: Hardware
    gpus: int
    settings: EngineSettings
    workload: Workload = field(default_factory=Workload)
    tiers: tuple[TierUse, ...] = ()
    overrides: Overrides = field(default_factory=Overrides)
    inputs: Mapping[str, Any] = field(default_factory=dict)
    given: frozenset[str] = frozenset()  # keys the user said, so that defaults can be called assumed
