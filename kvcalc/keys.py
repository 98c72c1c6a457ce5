"""Everything that can be asked, as one table.

The command line makes its options from it, the scenario file its keys, `kvcalc.plan(...)` its
arguments, a sweep its axes and JSON the units of its inputs.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal

from kvcalc.records import record

Kind = Literal["text", "integer", "tokens", "share", "number", "flag", "quantity"]


@record
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
_ALL = ("kv", "plan", "restore")

KEYS: tuple[Key, ...] = (
    Key("gpus", "integer", "GPUs of the machine [tp*pp*dp]", group="Parallelism", commands=_RESTORE),
    Key("tp", "integer", "Tensor parallelism [gpus/(pp*dp)]", group="Parallelism", commands=_ALL),
    Key("pp", "integer", "Pipeline parallelism [1]", group="Parallelism", commands=_ALL),
    Key("dp", "integer", "Data-parallel replicas [1]", group="Parallelism", commands=_ALL),
    Key("ep", "integer", "Expert parallelism [1]", group="Parallelism", commands=_ALL),
    Key("dcp", "integer", "Decode context parallelism [1]", group="Parallelism"),
    Key(
        "dp_attention",
        "flag",
        "SGLang: --dp groups share the tp ranks in attention [off]",
        group="Parallelism",
    ),
    Key("kv_dtype", "text", "Precision of the KV cache: auto, bf16, fp8, q8_0, ... [auto]", commands=_ALL),
    Key("k_type", "text", "K cache type (llama.cpp)"),
    Key("v_type", "text", "V cache type (llama.cpp)"),
    Key("ssm_dtype", "text", "Precision of recurrent states [auto]"),
    Key("engine", "text", "generic, vllm, sglang, llama.cpp or transformers [generic]", commands=_ALL),
    Key("engine_version", "text", "Version of the engine [newest known]", commands=_ALL),
    Key("block_size", "integer", "Tokens per KV block [the engine's own]", commands=_ALL),
    Key("page_size", "integer", "Tokens per page (SGLang) [1]"),
    Key("max_len", "tokens", "Longest sequence the engine admits"),
    Key("max_batched_tokens", "tokens", "Tokens in flight per scheduler step"),
    Key("max_seqs", "integer", "Sequences the engine runs at once"),
    Key("spec_tokens", "integer", "Speculative tokens per step [0]"),
    Key("prefix_caching", "flag", "Prefix caching [on]"),
    Key("hybrid_manager", "flag", "vLLM's hybrid KV cache manager [on]", commands=_ALL),
    Key("num_blocks", "integer", "Override the number of KV blocks"),
    Key("swa_full", "flag", "Keep full-size window caches (llama.cpp) [off]"),
    Key("parallel", "integer", "Server slots (llama.cpp) [1]"),
    Key("ubatch", "integer", "Physical batch (llama.cpp) [512]"),
    Key("compute_capability", "number", "CUDA compute capability [9.0, or of --on]"),
    Key("pool", "quantity", "KV memory per GPU, instead of deriving it", "byte", "Memory"),
    Key("utilization", "share", "Share of GPU memory the engine may use [the engine's own]", group="Memory"),
    Key(
        "weights_dtype",
        "text",
        "Precision of the weights: fp8, int4, q4_k_m, ... [the checkpoint's]",
        group="Memory",
        commands=_RESTORE,
    ),
    Key("host_reserve", "quantity", "Shared memory kept for the host", "byte", "Memory", commands=_PLAN),
    Key(
        "host_bandwidth",
        "quantity",
        "What the host reads of its memory, with --gpu-layers [the profile's, or 80 GB/s]",
        "byte/second",
        "Memory",
        commands=_PLAN,
    ),
    Key("gpu_layers", "integer", "Layers on the GPU, llama.cpp's -ngl [all]", group="Memory", commands=_PLAN),
    Key("acceptance", "share", "Drafted tokens that are accepted [0.7]", group="Guests", commands=_PLAN),
    Key(
        "draft", "text", "Draft model, instead of the model's own MTP layers", group="Guests", commands=_PLAN
    ),
    Key("lora", "integer", "LoRA adapters held at once [0]", group="Guests", commands=_PLAN),
    Key(
        "lora_rank",
        "integer",
        "Rank that each adapter's room is made for [16]",
        group="Guests",
        commands=_PLAN,
    ),
    Key("prompt", "tokens", "Prompt tokens [4096]", group="Workload", workload=True, commands=_RESTORE),
    Key("generate", "tokens", "Generated tokens [512]", group="Workload", workload=True, commands=_PLAN),
    Key("concurrency", "integer", "Sequences at once [1]", group="Workload", workload=True, commands=_PLAN),
    Key(
        "rate", "quantity", "Requests per second, e.g. 10/s", "1/second", "Workload", True, commands=_RESTORE
    ),
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
        "hit_rate",
        "share",
        "Share of requests that find their prefix in a tier; the others compute all of it [1]",
        group="Workload",
        workload=True,
        commands=_RESTORE,
    ),
    Key(
        "images",
        "integer",
        "Images or audio clips in each prompt, beside its text [0]",
        group="Workload",
        workload=True,
        commands=_PLAN,
    ),
    Key(
        "image_tokens",
        "tokens",
        "Tokens of one image or audio clip",
        group="Workload",
        workload=True,
        commands=_PLAN,
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
    Key(
        "calibrate",
        "text",
        "CSV of measured prefills (tokens,cached,seconds), to fit the model",
        group="Times",
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
    Key(
        "disaggregate",
        "quantity",
        "Path from prefill workers to decode workers, between two GPUs, e.g. 50 GB/s",
        "byte/second",
        "Times",
        commands=_PLAN,
    ),
    Key("price", "quantity", "Price of one GPU, e.g. 2.5 USD/hour", "USD/second", "Money", commands=_RESTORE),
    Key(
        "draws",
        "integer",
        "Monte Carlo draws over all ranges, written LOW..HIGH; 0 judges by their ends [0]",
        group="Ranges",
        commands=_RESTORE,
    ),
    Key("seed", "integer", "Seed of the random numbers [1]", group="Ranges", commands=_RESTORE),
)

TIER_UNITS: Mapping[str, str] = MappingProxyType(
    {
        "capacity": "byte",
        "bandwidth": "byte/second",
        "setup": "second",
        "iops": "1/second",
        "io_size": "byte",
        "price": "USD/byte/second",
        "shared_by": "1",
        "latency": "second",
        "queue_depth": "1",
        "write_bandwidth": "byte/second",
        "drive_writes": "1",
    }
)
"""What may be said of a slower tier in numbers, with the base unit of each."""

TIER_WORDS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "mechanism": (),
        "kind": (),
        "numa": ("local", "remote"),
        "store": ("write_through", "selective", "write_back"),
        "pageable": ("true", "false"),
        "layerwise": ("true", "false"),
        "via": (),
    }
)
"""What may be said of it in words, with those that are valid; none where `kvcalc.tiers` or the question
itself knows them."""

TIER_HELP: Mapping[str, str] = MappingProxyType(
    {
        "capacity": "What it holds, of all GPUs together",
        "bandwidth": "Into one GPU, or into all that share it; may be a range",
        "setup": "Lookup and submission, once for each restore, instead of the mechanism's fixed cost",
        "iops": "Operations a second, of all that share it",
        "io_size": "Bytes of one operation, where the mechanism has no pieces",
        "price": "Of a byte for a time, such as 0.2 USD/GB/month; 0 where it is paid for anyway",
        "shared_by": "GPUs that read it at once over what they share: a link, a switch, drives",
        "latency": "Of one operation",
        "queue_depth": "Operations of one restore in flight",
        "write_bandwidth": "Out of all GPUs that share it",
        "drive_writes": "Times its capacity that it may be written each day",
        "mechanism": "How its bytes move; the mechanisms below",
        "kind": "What it is; the kinds below",
        "numa": "On the GPU's own socket or on the other one",
        "store": "When new blocks are written to it",
        "pageable": "Whether its host memory is not pinned",
        "layerwise": "Whether each layer loads while the one before it computes",
        "via": "Name of another tier that all of its bytes are staged in before they go on",
    }
)
"""What each key of a tier means."""

_KIND_UNITS: Mapping[str, str] = MappingProxyType({"tokens": "token", "share": "1"})
_OTHER_UNITS: Mapping[str, str] = MappingProxyType(
    {
        **{"tokens": "token", "encoder_tokens": "token", "swap_space": "byte", "bandwidth": "byte/second"},
        **{"need": "byte", "bytes_per_token": "byte/token", "deadline": "second", "interval": "second"},
    }
)
"""Inputs that are quantities without being keys: arguments of one command, or settings of an engine."""


_RANKING = (
    *(
        "gpus",
        "tp",
        "pp",
        "dp",
        "ep",
        "dcp",
        "kv_dtype",
        "engine",
        "engine_version",
        "block_size",
        "page_size",
    ),
    *("compute_capability", "weights_dtype", "prefill_rate", "calibrate"),
)
_ENGINE = (
    *("gpus", "tp", "pp", "dp", "ep", "dcp", "kv_dtype", "engine", "engine_version", "block_size"),
    *("page_size", "max_len", "max_batched_tokens", "max_seqs", "spec_tokens", "hybrid_manager"),
    *("compute_capability", "utilization", "weights_dtype"),
)
_REPLAY = (
    *_ENGINE,
    *("dp_attention", "k_type", "v_type", "ssm_dtype", "pool", "num_blocks", "swa_full"),
    *("prompt", "generate", "concurrency", "prefill_rate", "calibrate", "price"),
)
_PLANNED = tuple(item.name for item in KEYS if "plan" in item.commands)
_ALSO: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "evict rank": _RANKING,
        "diagnose": _ENGINE,
        "replay": _REPLAY,
        "sweep": _PLANNED,
        "compare": _PLANNED,
    }
)
"""Keys that a command takes although they are listed with others."""


def keys_of(command: str) -> tuple[Key, ...]:
    """Return the keys that a command takes as options."""
    also = _ALSO.get(command, ())
    return tuple(item for item in KEYS if command in item.commands or item.name in also)


def key(name: str) -> Key:
    """Return the key of this name, or raise KeyError."""
    return next(item for item in KEYS if item.name == name)


def unit_of_key(name: str) -> str:
    """Return the base unit of an input by its dotted key, such as a range has one.

    >>> unit_of_key("tiers.dram.setup"), unit_of_key("hit"), unit_of_key("prefill_efficiency")
    ('second', '1', '1')
    """
    last = name.rpartition(".")[2]
    if name.startswith("tiers."):
        return TIER_UNITS[last]
    if last.endswith("_efficiency"):
        return "1"
    found = next((item for item in KEYS if item.name == name), None)
    return "second" if found is None else found.unit or _KIND_UNITS[found.kind]


def input_units(inputs: Mapping[str, Any]) -> dict[str, str]:
    """Return the base unit of each input that is a quantity, by dotted key.

    >>> input_units({"model": "a", "prompt": 4096, "tiers": {"dram": {"setup": 0.0}}})
    {'prompt': 'token', 'tiers.dram.setup': 'second'}
    """
    known = {item.name: item.unit or _KIND_UNITS.get(item.kind, "") for item in KEYS} | dict(_OTHER_UNITS)
    found = {name: known[name] for name in inputs if known.get(name)}
    for tier, values in (inputs.get("tiers") or {}).items():
        found |= {f"tiers.{tier}.{name}": TIER_UNITS[name] for name in values if name in TIER_UNITS}
    return found
