"""What storing costs: write traffic against link, device and wear, and tiers that hold nothing new."""

from dataclasses import replace
from typing import Any

import numpy as np

from kvcalc.engines.kinds import kind_of
from kvcalc.engines.vllm.versions import rules_for
from kvcalc.planning.notebook import Notebook
from kvcalc.planning.offload.route import Route, moved_bytes
from kvcalc.planning.speed import Speed
from kvcalc.quantity import Bytes, BytesPerSecond, Tokens
from kvcalc.scenario import TierUse
from kvcalc.tiers import kind_called, tier_kind
from kvcalc.wording import GIGABYTE, size_text, time_text

DAY = 86_400.0
"""Length of a day [second]."""

SERVICE_YEARS = 5.0
"""Years that a drive's writes per day are guaranteed for [1]: the usual warranty of data-centre drives."""


def write_need(speed: Speed, route: Route, cached: Tokens) -> BytesPerSecond | None:
    """Return the bytes per second that one GPU stores at the planned rate; arrays too.

    None where nobody says.  Write-through stores every new block of the prompts, all of those that miss;
    write-back as much once the pool is full, and a selective store what is seen again, of which the hit
    share is taken as the measure.
    """
    workload, store = speed.scenario.workload, route.tier.store or route.mechanism.store
    if workload.rate is None or store is None:
        return None
    prompt, hits = workload.prompt, workload.hit_rate
    new = hits * (prompt - cached) + (1 - hits) * prompt
    share = cached / prompt if store == "selective" else 1.0
    size = moved_bytes(speed.layout, np.asarray(prompt, dtype=float)[()])
    return workload.rate / speed.scenario.settings.dp * share * size * new / prompt


def stored(speed: Speed, route: Route, cached: Tokens) -> BytesPerSecond:
    """Return the bytes per second that stores send across the link meanwhile, 0 where nobody says."""
    need = write_need(speed, route, cached)
    return 0.0 if need is None else need


def tell_stores(
    speed: Speed, route: Route, need: float | None, size: float, pool: float | None, book: Notebook
) -> None:
    """Warn of stores that the link or the device cannot take, and of tiers too small to matter.

    `pool` is the KV memory of each GPU [byte]; None where the question does not say it.
    """
    tier, scenario = route.tier, speed.scenario
    whole = size * ranks_kept(speed, route)
    held = None if pool is None else held_alike(speed, route, pool)
    if adds_nothing(route, held, whole):
        book.warn(
            f"{tier.name}: adds nothing: {why_nothing(route, held, whole)}; what a hit from it is "
            "said to save is not to be had, and the fleet counts none"
        )
    elif held is not None and not _policy(route) and tier.capacity is not None and tier.capacity <= held:
        book.warn(
            f"{tier.name}: {_size(tier.capacity)} is no more than the {_size(held)} of KV that GPUs hold; "
            "with an engine that stores blocks at once it would add nothing, and nothing says whether this "
            "one does: name the engine, or the tier's store (write_through, write_back or selective)"
        )
    if need is None and scenario.workload.rate is not None:
        book.assume(
            f"{tier.name}: what new blocks take to be stored is not counted, since nothing says which are; "
            "store=write_through, write_back or selective of the tier counts it"
        )
    if not need:
        return
    budget = write_budget(route, scenario.hardware.device_to_host.bandwidth)
    if need > budget:
        book.warn(
            f"{tier.name}: storing takes {_rate(need)} of each GPU, more than the {_rate(budget)} that can "
            "be written; stores will be skipped and hits lost"
        )
    if (tier.store or route.mechanism.store) == "write_back":
        piece = float(route.piece(size))
        what = "each new prefix" if route.mechanism.piece == "whole" else "each new block"
        delay = piece / min(float(route.bandwidth(piece)), budget)
        book.assume(
            f"{tier.name}: write-back delays {what} by the copy of what it evicts, {time_text(delay)} for "
            f"{size_text(piece) if piece >= GIGABYTE else f'{piece / 1e6:.3g} MB'}"
        )
    _tell_wear(route, need * scenario.gpus, book)


LEAST_TAKEN = 0.01
"""Share of a restore's rate [1] that stores must take to be worth a word."""


def tell_opposite(route: Route, size: float, need: float | None, book: Notebook) -> None:
    """Say how much slower a restore is for what is stored meanwhile across the same link."""
    if need is None:
        return
    rate, alone = float(route.bandwidth(size)), float(replace(route, opposite=0.0).bandwidth(size))
    if rate < alone * (1 - LEAST_TAKEN):
        book.assume(
            f"{route.tier.name}: stores send {_rate(need)} across the same link the other way, which leaves "
            f"a restore {_rate(rate)} of {_rate(alone)}"
        )


def write_budget(route: Route, device_to_host: float) -> float:
    """Return what can be written from one GPU [byte/second]: the tighter of its link and the device."""
    written = written_to(route.tier)
    return min(device_to_host, (written or route.tier.bandwidth) / route.tier.shared_by)


def written_to(tier: TierUse) -> float | None:
    """Return what all who share a tier can write into it at once; None where nothing says more than reads."""
    kind = tier_kind(tier.kind) if tier.kind else kind_called(tier.name)
    if tier.write_bandwidth or kind is None or kind.write_share is None:
        return tier.write_bandwidth
    return tier.bandwidth * kind.write_share.value


def held_alike(speed: Speed, route: Route, pool: float) -> float:
    """Return the bytes that a tier takes for all that the GPUs hold, `pool` bytes each."""
    return pool * ranks_kept(speed, route) * speed.scenario.settings.dp


def ranks_kept(speed: Speed, route: Route) -> int:
    """Return the ranks whose bytes of one sequence the tier keeps: all that it lies on, or one for all.

    A latent is the same on each of them.  Under DP attention a sequence lies on its own group alone.
    """
    settings, shape = speed.scenario.settings, speed.scenario.model.shape
    parts = shape.components_for(settings.engine)
    alike = all(tensor.split == "replicated" for part in parts for tensor in part.entry)
    once = (
        route.mechanism.one_copy
        and kind_of(settings.engine).versioned
        and rules_for(settings.version).one_host_copy
    )
    if alike and once and settings.pp == settings.dcp == 1:
        return 1
    return settings.tp * settings.pp // (settings.dp if settings.dp_attention else 1)


def adds_nothing(route: Route, held: float | None, whole: Bytes) -> Any:  # noqa: ANN401 - truth by rows
    """Return whether no hit is to be had from a tier that the GPUs could not serve themselves; arrays too.

    It cannot hold one restored prefix of `whole` bytes, or holds no more than the GPUs and the same blocks;
    `held` is what it takes for all that they hold [byte].  None where nobody says what either holds.
    """
    capacity = route.tier.capacity
    if capacity is None:
        return None
    small = cannot_hold(capacity, whole)
    if held is None:
        return True if small else None
    return small | (_stores_the_same(route) and capacity <= held)


def cannot_hold(capacity: Bytes, whole: Bytes) -> Any:  # noqa: ANN401 - truth by rows
    """Return whether a tier is too small for one prefix of `whole` bytes; arrays too."""
    return whole > capacity


def why_nothing(route: Route, held: float | None, whole: float) -> str:
    """Return in words why such a tier adds nothing."""
    capacity = route.tier.capacity or 0.0
    size = _size(capacity)
    if held is None or cannot_hold(capacity, whole):
        return f"{size} cannot hold the {_size(whole)} of one restored prefix"
    return (
        f"{size} is no more than the {_size(held)} of KV that the GPUs hold, and it stores the same blocks "
        f"({_policy(route).replace('_', '-')}), so they serve every hit that it could"
    )


def _stores_the_same(route: Route) -> bool:
    """Whether the tier also holds what the GPU still has: a write-back holds what the GPU gave up."""
    return route.mechanism.inclusive and _policy(route) != "write_back"


def _policy(route: Route) -> str:
    return route.tier.store or route.mechanism.store or ""


def _tell_wear(route: Route, need: float, book: Notebook) -> None:
    tier, kind = route.tier, route.kind
    figure = kind.drive_writes if kind is not None else None
    writes = tier.drive_writes or (figure.value if figure is not None else None)
    if writes is None or tier.capacity is None:
        return
    allowed = tier.capacity * writes / DAY
    if need > allowed:
        years = SERVICE_YEARS * allowed / need
        book.warn(
            f"{tier.name}: storing {_rate(need)} wears the drives out in {years:.2g} years; over "
            f"{SERVICE_YEARS:g} years {writes:g} times their capacity a day may be written, {_rate(allowed)}"
        )


def _rate(value: float) -> str:
    return f"{value / 1e9:.3g} GB/s"


def _size(value: float) -> str:
    return f"{value / 1e9:.4g} GB"
