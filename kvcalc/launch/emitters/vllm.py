"""A plan as `vllm serve`."""

import json
import math

from kvcalc.engines.vllm.versions import parse_version
from kvcalc.launch.emitters.plan import Target, script
from kvcalc.launch.flags.vllm import SELECTIVE_FROM, THRESHOLD_FROM

GIB = 2**30
_SPELLED = {"bf16": "bfloat16", "fp16": "float16", "fp8_e4m3": "fp8"}

NOTES = (
    "--kv-offloading-size is GiB for all ranks of one replica together; vLLM 0.11 to 0.13 also need "
    "--kv-offloading-backend native, and older releases know neither",
)


def engine_flags(target: Target) -> list[tuple[str, str]]:
    """Return the flags that have nothing to do with tiers below the GPU."""
    settings = target.scenario.settings
    given: list[tuple[str, object]] = [
        ("--tensor-parallel-size", settings.tp if settings.tp > 1 else None),
        ("--pipeline-parallel-size", settings.pp if settings.pp > 1 else None),
        ("--data-parallel-size", settings.dp if settings.dp > 1 else None),
        ("--decode-context-parallel-size", settings.dcp if settings.dcp > 1 else None),
        ("--max-model-len", settings.max_len),
        ("--max-num-seqs", target.sequences),
        ("--max-num-batched-tokens", settings.max_batched_tokens),
        ("--kv-cache-dtype", target.dtype(_SPELLED)),
        ("--block-size", settings.block_size),
        ("--num-gpu-blocks-override", settings.num_blocks),
    ]
    if target.scenario.overrides.pool is None:
        given.append(("--gpu-memory-utilization", f"{target.utilization:g}"))
    else:
        given.append(("--kv-cache-memory-bytes", f"{target.scenario.overrides.pool:.0f}"))
    flags = [(name, str(value)) for name, value in given if value is not None]
    flags += [("--enable-expert-parallel", "")] if settings.ep > 1 else []
    flags += [] if settings.prefix_caching else [("--no-enable-prefix-caching", "")]
    flags += [] if settings.hybrid_manager else [("--disable-hybrid-kv-cache-manager", "")]
    return flags


def version_notes(target: Target) -> list[str]:
    """Return where the flags differ between releases."""
    notes = ["the default of --gpu-memory-utilization is 0.90 before vLLM 0.20 and 0.92 since"]
    if target.scenario.overrides.pool is not None:
        notes.append("--kv-cache-memory-bytes is bytes a GPU, from vLLM 0.10 on")
    if target.scenario.settings.spec_tokens:
        notes.append(
            "speculation needs --speculative-config with the draft model, which the plan does not name"
        )
    return notes


def emit(target: Target) -> str:
    """Return the launch."""
    flags, notes = engine_flags(target), [*target.notes(), *version_notes(target)]
    if target.host is not None and target.host.store == "selective" and _has_threshold(target):
        flags.append(("--kv-transfer-config", _selective(target)))
        notes.append(
            "cpu_bytes_to_use is bytes for all ranks of one replica together; store_threshold "
            f"{SELECTIVE_FROM} stores a block at its second lookup, from vLLM 0.18 on"
        )
    elif target.host is not None:
        flags.append(("--kv-offloading-size", str(math.floor(target.host_of_replica / GIB))))
        notes += [*target.notes_on_store("write_through"), *NOTES]
    elif not target.scenario.tiers:
        notes.append("no tier in host memory was named (--tier 'dram=512 GB@54 GB/s'), so none is written")
    return script(notes, f"vllm serve {target.model}", flags)


def _has_threshold(target: Target) -> bool:
    version = target.scenario.settings.version
    return version is None or parse_version(version)[:2] >= THRESHOLD_FROM


def _selective(target: Target) -> str:
    extra = {"cpu_bytes_to_use": math.floor(target.host_of_replica), "store_threshold": SELECTIVE_FROM}
    config = {
        "kv_connector": "OffloadingConnector",
        "kv_role": "kv_both",
        "kv_connector_extra_config": extra,
    }
    return f"'{json.dumps(config)}'"
