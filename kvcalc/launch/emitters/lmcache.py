"""A plan as `vllm serve` with LMCache and its configuration file."""

import math

from kvcalc.engines.vllm.deployment import is_state
from kvcalc.errors import SettingsError
from kvcalc.launch.emitters.plan import Target, script
from kvcalc.launch.emitters.vllm import GIB, engine_flags, version_notes
from kvcalc.launch.flags.lmcache import DEFAULT_CHUNK

_TRANSFER = '\'{"kv_connector": "LMCacheConnectorV1", "kv_role": "kv_both"}\''
_TENTH = 10


def emit(target: Target) -> str:
    """Return the launch.

    Raises
    ------
    SettingsError
        If the question names no host tier to size the cache by, or none can be used.
    """
    if target.host is None:
        raise SettingsError(
            f"--emit lmcache: a prefix of {target.prefix:,} tokens fills no block of {target.block:,}"
            if target.prefix < target.block
            else "--emit lmcache: name the host memory, e.g. --tier 'dram=512 GB@54 GB/s'"
        )
    parts = target.scenario.model.shape.components_for("vllm")
    if 0 < sum(map(is_state, parts)) < len(parts):
        raise SettingsError(
            f"--emit lmcache: {target.scenario.model.name} has recurrent states beside attention, for which "
            "vLLM needs its hybrid KV cache manager, and LMCache's connector turns that off; --emit vllm"
        )
    each = math.floor(target.host_of_replica / target.workers / GIB * _TENTH) / _TENTH
    workers = target.workers * target.scenario.settings.dp
    taken = "the one worker" if workers == 1 else f"each of {workers} workers"
    notes = [
        *target.notes(),
        *version_notes(target),
        *target.notes_on_store("write_through"),
        f"max_local_cpu_size is called GB by LMCache and is 2^30 bytes; it is taken by {taken}",
        "a connector turns vLLM's hybrid KV cache manager off before 0.22, and LMCache's does so still",
    ]
    config = f"chunk_size: {chunk(target)}\nlocal_cpu: true\nmax_local_cpu_size: {each:g}\n"
    before = f"cat > lmcache.yaml <<'EOF'\n{config}EOF\n"
    program = f"PYTHONHASHSEED=0 LMCACHE_CONFIG_FILE=lmcache.yaml vllm serve {target.model}"
    return script(notes, program, [*engine_flags(target), ("--kv-transfer-config", _TRANSFER)], before)


def chunk(target: Target) -> int:
    """Return LMCache's own chunk, or the most whole blocks that a shorter prefix fills."""
    block = target.block
    return min(max(block, DEFAULT_CHUNK // block * block), target.prefix // block * block)
