"""The tiers that a launch names -> tiers of a plan: sizes, chunk, mechanism and disk as it says them."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from kvcalc.engines import lay_out
from kvcalc.launch.connectors import connectors_of, reaches, uses_lmcache
from kvcalc.launch.host import Device, HostTier, chunk_tokens, host_tier, stores_selectively
from kvcalc.launch.settings import LaunchSettings
from kvcalc.planning.memory import memory_of
from kvcalc.planning.notebook import Notebook
from kvcalc.planning.tiers import host_memory, local_drive
from kvcalc.scenario import Scenario, TierUse
from kvcalc.tiers import kind_called
from kvcalc.wording import said_size, size_text

ONE_LAYOUT = (0, 12)
"""First release whose offloaded block is one piece over all layers; before, a piece was one layer's."""

_CONNECTORS: Mapping[str, str] = {"SimpleCPUOffloadConnector": "vllm-batched"}
"""Mechanisms of vLLM's connectors beside its default one, by connector."""

_SILENT = {"remote": "remote_url", "storage": "--hicache-storage-backend"}
"""Fields that put a store behind the host tier without a word on its rate."""


_PLAIN = ("", "naive")
"""Values of LMCache's `remote_serde` that leave the bytes as they are."""


@dataclass(frozen=True)
class Launched:
    """The tiers of a launch, and what was assumed of them."""

    tiers: tuple[TierUse, ...]
    assumptions: tuple[str, ...]


def with_launched_tiers(scenario: Scenario, launch: LaunchSettings) -> tuple[Scenario, tuple[str, ...]]:
    """Return the scenario with the tiers of its launch, and what was assumed of them.

    A tier that the question names itself wins over one of the same kind in the launch, of which it takes
    only what it leaves unsaid.
    """
    found = launched_tiers(scenario, launch)
    if not found.tiers:
        return scenario, found.assumptions
    unsaid = {_kind(tier): tier for tier in found.tiers}
    renamed = {unsaid[_kind(tier)].name: tier.name for tier in scenario.tiers if _kind(tier) in unsaid}
    own = tuple(_filled(tier, unsaid.pop(_kind(tier), None)) for tier in scenario.tiers)
    tiers = tuple(
        replace(tier, via=renamed.get(tier.via, tier.via)) if tier.via else tier
        for tier in (*own, *unsaid.values())
    )
    told = dict(scenario.inputs.get("tiers") or {})
    told |= {tier.name: {**told.get(tier.name, {}), **_told(tier)} for tier in tiers}
    return replace(scenario, tiers=tiers, inputs={**scenario.inputs, "tiers": told}), found.assumptions


def launched_tiers(scenario: Scenario, launch: LaunchSettings) -> Launched:
    """Return host memory and disk as a launch sizes them, at the rates that the machine has."""
    if scenario.hardware.device.unified:
        return Launched((), ())
    layout = lay_out(scenario.model.shape, scenario.settings)
    memory = memory_of(scenario, layout, Notebook())
    block = int(memory.block_tokens or 1)
    settings = scenario.settings
    device = Device(
        settings.tp * settings.pp,
        float(memory.kv_pool),
        float(memory.block_bytes or layout.bytes_per_token_per_gpu),
    )
    host, said = host_tier(launch, device), [_silent(launch, name) for name in _SILENT]
    said.append(_compressed(launch))
    tiers = [] if host is None else [_host(scenario, launch, host, block)]
    if (disk := _disk(scenario, launch, block, staged=host is not None)) is not None:
        tiers.append(disk)
        said.append(
            f"{disk.name}: {launch.where('disk', 'secondary_tiers')} does not say its rate; one local drive "
            f"of {size_text(disk.bandwidth)}/s, shared by {disk.shared_by:g} GPU(s), is taken; --tier "
            "replaces it"
        )
    if host is not None:
        where = host.given.where if host.given else launch.file
        said.append(f"dram: {said_size(host.total)} a replica, as {where} has it, over the host link")
    return Launched(tuple(tiers), tuple(words for words in said if words))


def _silent(launch: LaunchSettings, name: str) -> str:
    given = launch.field(name)
    if given is None or not given.value:
        return ""
    return f"{given.where}: {given.flag} does not say a rate, so that tier is not planned; --tier names it"


def _compressed(launch: LaunchSettings) -> str:
    given = launch.field("serde")
    if given is None or given.value in _PLAIN:
        return ""
    return (
        f"{given.where}: {given.flag} {given.value} makes what goes to the remote store smaller; the plan "
        "counts it uncompressed, without the time to compress and to unpack it"
    )


def _host(scenario: Scenario, launch: LaunchSettings, host: HostTier, block: int) -> TierUse:
    selective = "selective" if stores_selectively(launch) else None
    tier = host_memory(scenario.hardware, host.total * scenario.settings.dp)
    return replace(
        tier,
        mechanism=_mechanism(launch),
        chunk=_chunk(launch, block),
        store=selective if host.inclusive else "write_back",
    )


def _mechanism(launch: LaunchSettings) -> str | None:
    """Return what moves the bytes; None leaves it to the engine's default."""
    if uses_lmcache(launch):
        return "lmcache"
    if launch.engine == "sglang":
        return hicache_mechanism(launch)
    if launch.engine != "vllm":
        return None
    if not reaches(launch, ONE_LAYOUT):
        return "vllm-per-layer"
    return next((_CONNECTORS[name] for name in connectors_of(launch) if name in _CONNECTORS), None)


def hicache_mechanism(launch: LaunchSettings) -> str:
    """Return how HiCache copies: by its kernel, if neither the backend nor the layout is a direct one.

    The default is `kernel` (python/sglang/srt/arg_groups/fields/memory.py of sgl-project/sglang at
    09eaaf15de2b), and the layout `page_first_direct` turns it into `direct` (hicache_hook.py beside it, at
    03ac438ac26f).
    """
    direct = launch.value("io_backend") == "direct"
    turned = launch.value("host_layout") == "page_first_direct" and launch.value("io_backend") in (
        None,
        "kernel",
    )
    return "hicache-direct" if direct or turned else "hicache-kernel"


def _chunk(launch: LaunchSettings, block: int) -> int | None:
    """Return the tokens of a chunk where it is more than a block of the engine."""
    found = chunk_tokens(launch, block)
    return found if found != block else None


def _disk(scenario: Scenario, launch: LaunchSettings, block: int, staged: bool) -> TierUse | None:
    settings = scenario.settings
    workers = settings.tp * settings.pp
    size = launch.field("disk_size")
    files = [item for item in launch.value("secondary_tiers") or () if _is_files(item)]
    lmcache = uses_lmcache(launch) and launch.value("disk") and size is not None and size.value > 0
    if not lmcache and not files:
        return None
    return replace(
        local_drive(scenario.hardware),
        capacity=size.bytes * workers * settings.dp if lmcache and size is not None else None,
        chunk=_chunk(launch, block),
        shared_by=float(workers),
        mechanism=None if lmcache else "vllm-fs",
        via="dram" if lmcache and staged else None,
    )


def _is_files(item: object) -> bool:
    return isinstance(item, dict) and item.get("type") == "fs"


def _kind(tier: TierUse) -> str:
    found = kind_called(tier.name)
    return tier.kind or (found.name if found else tier.name)


def _filled(own: TierUse, launched: TierUse | None) -> TierUse:
    """Return a tier of the question with what it leaves to the launch."""
    if launched is None:
        return own
    names = ("capacity", "mechanism", "chunk", "store", "via")
    return replace(own, **{name: getattr(launched, name) for name in names if getattr(own, name) is None})


def _told(tier: TierUse) -> dict[str, object]:
    """Return what a plan's inputs say of a tier, in base units."""
    names = ("bandwidth", "capacity", "mechanism", "chunk", "store", "via")
    found = {name: getattr(tier, name) for name in names if getattr(tier, name) is not None}
    return found | ({"shared_by": tier.shared_by} if tier.shared_by != 1 else {})
