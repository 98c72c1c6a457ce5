"""A plan as `python -m sglang.launch_server`."""

import math

from kvcalc.launch.emitters.plan import Target, script

GB = 10**9
_SPELLED = {"bf16": "bfloat16", "fp8": "fp8_e4m3"}
_POLICIES = {"selective": "write_through_selective", "write_back": "write_back"}


def emit(target: Target) -> str:
    """Return the launch."""
    settings = target.scenario.settings
    given: list[tuple[str, object]] = [
        ("--model-path", target.model),
        ("--tp-size", settings.tp if settings.tp > 1 else None),
        ("--pp-size", settings.pp if settings.pp > 1 else None),
        ("--dp-size", settings.dp if settings.dp > 1 else None),
        ("--context-length", settings.max_len),
        ("--max-running-requests", target.sequences),
        ("--chunked-prefill-size", settings.max_batched_tokens),
        ("--mem-fraction-static", target.scenario.overrides.utilization),
        ("--kv-cache-dtype", target.dtype(_SPELLED)),
        ("--page-size", settings.page_size),
    ]
    flags = [(name, str(value)) for name, value in given if value is not None]
    flags += [] if settings.prefix_caching else [("--disable-radix-cache", "")]
    notes = [*target.notes()]
    if target.scenario.overrides.utilization is None:
        notes.append("--mem-fraction-static is left to SGLang, which chooses it by GPU, ranks and chunk")
    if target.scenario.overrides.pool is not None:
        notes.append("SGLang takes no pool in bytes, so that --pool is not written")
    if target.host is not None and settings.prefix_caching:
        size = math.floor(target.host_of_replica / target.workers / GB)
        flags += [
            ("--enable-hierarchical-cache", ""),
            ("--hicache-size", str(size)),
            ("--hicache-write-policy", _POLICIES.get(target.host.store or "", "write_through")),
        ]
        pool = float(target.result.memory.kv_pool)
        notes.append(
            "--hicache-size is GB (10^9 bytes) for each rank; it equals --hicache-ratio "
            f"{size * GB / pool:.2f} here"
        )
        if size * GB <= pool:
            notes.append(
                "SGLang asserts a host pool larger than the GPU's: before it starts, --hicache-size must be "
                f"more than {pool / GB:.1f}"
            )
    return script(notes, "python -m sglang.launch_server", flags)
