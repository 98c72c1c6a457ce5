"""One question: a model, a machine and a workload, with everything the user chose to override.

`KEYS` is the one table of what can be asked: the command line makes its options from it, the
scenario file its keys, `kvcalc.plan(...)` its arguments and a sweep its axes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from kvcalc.engines.settings import EngineSettings
from kvcalc.model import Model
from kvcalc.profiles import Hardware
from kvcalc.results import Source

Kind = Literal["text", "integer", "tokens", "share", "number", "flag", "quantity"]


@dataclass(frozen=True, slots=True)
class Key:
    """One thing a user may say: its name, how its text is read, and what it means."""

    name: str
    kind: Kind
    help: str
    unit: str = ""  # base unit of a quantity
    group: str = "Engine"  # panel of the help page
    workload: bool = False  # stands under `workload:` in a scenario file
    commands: tuple[str, ...] = ("kv", "plan")

    @property
    def option(self) -> str:
        """Name on the command line."""
        return "--" + self.name.replace("_", "-")


_PLAN = ("plan",)
_RESTORE = ("plan", "restore")

KEYS: tuple[Key, ...] = (
    Key("gpus", "integer", "GPUs of the machine [tp*pp*dp]", group="Parallelism", commands=_PLAN),
    Key("tp", "integer", "Tensor parallelism [gpus/(pp*dp)]", group="Parallelism"),
    Key("pp", "integer", "Pipeline parallelism [1]", group="Parallelism"),
    Key("dp", "integer", "Data-parallel replicas [1]", group="Parallelism"),
    Key("ep", "integer", "Expert parallelism [1]", group="Parallelism"),
    Key("dcp", "integer", "Decode context parallelism [1]", group="Parallelism"),
    Key("kv_dtype", "text", "Precision of the KV cache: auto, bf16, fp8, q8_0, ... [auto]"),
    Key("k_type", "text", "K cache type (llama.cpp)"),
    Key("v_type", "text", "V cache type (llama.cpp)"),
    Key("ssm_dtype", "text", "Precision of recurrent states [auto]"),
    Key("engine", "text", "generic, vllm, sglang, llama.cpp or transformers [generic]"),
    Key("engine_version", "text", "Version of the engine [newest known]"),
    Key("block_size", "integer", "Tokens per KV block [the engine's own]"),
    Key("page_size", "integer", "Tokens per page (SGLang) [1]"),
    Key("max_len", "tokens", "Longest sequence the engine admits"),
    Key("max_batched_tokens", "tokens", "Tokens in flight per scheduler step"),
    Key("max_seqs", "integer", "Sequences the engine runs at once"),
    Key("spec_tokens", "integer", "Speculative tokens per step [0]"),
    Key("prefix_caching", "flag", "Prefix caching [on]"),
    Key("hybrid_manager", "flag", "vLLM's hybrid KV cache manager [on]"),
    Key("num_blocks", "integer", "Override the number of KV blocks"),
    Key("swa_full", "flag", "Keep full-size window caches (llama.cpp) [off]"),
    Key("parallel", "integer", "Server slots (llama.cpp) [1]"),
    Key("ubatch", "integer", "Physical batch (llama.cpp) [512]"),
    Key("compute_capability", "number", "CUDA compute capability [9.0, or of --on]"),
    Key("pool", "quantity", "KV memory per GPU, instead of deriving it", "byte", "Memory"),
    Key("utilization", "share", "Share of GPU memory the engine may use [the engine's own]", group="Memory"),
    Key(
        "weights_dtype", "text", "Precision of the weights [the checkpoint's]", group="Memory", commands=_PLAN
    ),
    Key("prompt", "tokens", "Prompt tokens [4096]", group="Workload", workload=True, commands=_RESTORE),
    Key("generate", "tokens", "Generated tokens [512]", group="Workload", workload=True, commands=_PLAN),
    Key("concurrency", "integer", "Sequences at once [1]", group="Workload", workload=True, commands=_PLAN),
    Key("rate", "quantity", "Requests per second, e.g. 10/s", "1/second", "Workload", True, commands=_PLAN),
    Key("cached", "tokens", "Prompt tokens that hit", group="Workload", workload=True, commands=_RESTORE),
    Key(
        "hit",
        "share",
        "Share of the prompt that hits [0]",
        group="Workload",
        workload=True,
        commands=_RESTORE,
    ),
    Key(
        "prefill",
        "quantity",
        "Time of a whole prefill, instead of the model",
        "second",
        "Times",
        commands=_RESTORE,
    ),
    Key(
        "prefill_rate",
        "quantity",
        "Prefill speed, instead of the model",
        "token/second",
        "Times",
        commands=_RESTORE,
    ),
    Key("queue", "quantity", "Wait before a restore starts [0]", "second", "Times", commands=_RESTORE),
    Key("setup", "quantity", "Lookup and submission of a restore", "second", "Times", commands=_RESTORE),
    Key(
        "convert",
        "quantity",
        "Dequantize or transpose after a restore [0]",
        "second",
        "Times",
        commands=_RESTORE,
    ),
    Key("sync", "quantity", "Make ranks agree after a restore [0]", "second", "Times", commands=_RESTORE),
    Key(
        "window",
        "quantity",
        "Independent compute that a restore can hide under",
        "second",
        "Times",
        commands=_RESTORE,
    ),
    Key(
        "bytes",
        "quantity",
        "KV bytes to restore, instead of the model's",
        "byte",
        "Times",
        commands=("restore",),
    ),
    Key(
        "remaining",
        "quantity",
        "Prefill that a hit leaves, instead of the model",
        "second",
        "Times",
        commands=("restore",),
    ),
    Key("price", "quantity", "Price of one GPU, e.g. 2.5 USD/hour", "USD/second", "Money", commands=_PLAN),
)


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


def key(name: str) -> Key:
    """Return the key of this name, or raise KeyError."""
    return next(item for item in KEYS if item.name == name)
