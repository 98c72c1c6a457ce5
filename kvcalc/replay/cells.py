"""Which caches a question asks for: every capacity under every policy, tiers and quotas beside them."""

from collections.abc import Sequence

from kvcalc.errors import SettingsError, did_you_mean
from kvcalc.records import record
from kvcalc.replay.asked import Asked
from kvcalc.replay.capacities import Capacity, capacity_of
from kvcalc.replay.policies import ALWAYS, BOUNDS, INFINITE, LRU, policy
from kvcalc.replay.tasks import Task
from kvcalc.replay.tenants import MODES, SHARED, Quotas, parts_of
from kvcalc.replay.tiers import EXCLUSIVE, Stack
from kvcalc.replay.trace import Trace

DEFAULT_SHARES = (1, 5, 10, 25, 50)
"""Capacities where none is asked for, in percent of all different blocks of the trace [1]; chosen."""


@record
class Cell:
    """One cache, and how a row names it."""

    task: Task
    capacity: Capacity | None  # None: without end
    quota: str = SHARED


def cells_of(trace: Trace, asked: Asked) -> tuple[Cell, ...]:
    """Return the caches to replay, the infinite one last."""
    names = policies_of(asked)
    if asked.quota not in MODES:
        raise SettingsError(f"--quota: unknown word {asked.quota!r:.60}{did_you_mean(asked.quota, MODES)}")
    if asked.quota == SHARED and asked.shares:
        raise SettingsError("--tenant-quota: needs --quota floor or hard")
    found: list[Cell] = []
    for size in capacities_of(trace, asked):
        stack = _stack(size, trace, asked)
        whole = size if stack is None else _whole(size, stack, asked)
        found += [Cell(Task(name, whole.blocks, asked.options), whole) for name in names if name != INFINITE]
        if stack is not None:
            found.append(Cell(Task(LRU, whole.blocks, asked.options, tiers=stack), whole))
        if asked.quota != SHARED:
            quotas = Quotas(asked.quota, parts_of(trace, whole.blocks, asked.shares))
            found.append(Cell(Task(LRU, whole.blocks, asked.options, quotas=quotas), whole, asked.quota))
    return (*found, Cell(Task(INFINITE, 0), None))


def capacities_of(trace: Trace, asked: Asked) -> tuple[Capacity, ...]:
    """Return the capacities in order, each once; of a trace's own blocks if none is asked for."""
    if asked.capacities:
        found = [capacity_of(one, trace, asked.sizing, "--capacity") for one in asked.capacities]
    else:
        whole = trace.unique_blocks if trace.block_weight is None else int(trace.block_weight.sum())
        found = [Capacity(f"{share} %", share * whole // 100) for share in DEFAULT_SHARES]
        found = [one for one in found if one.blocks] or [Capacity("100 %", max(1, whole))]
    return tuple(sorted({one.blocks: one for one in found}.values(), key=lambda one: one.blocks))


def policies_of(asked: Asked) -> tuple[str, ...]:
    """Return the policies in the order of the rows: the usual ones, those asked for, the bounds."""
    for name in asked.policies:
        policy(name)
    usual = [name for name in ALWAYS if name not in BOUNDS]
    return tuple(dict.fromkeys([*usual, *(p for p in asked.policies if p not in ALWAYS), *BOUNDS]))


def _stack(size: Capacity, trace: Trace, asked: Asked) -> Stack | None:
    if not asked.tiers:
        return None
    names = (asked.fastest, *(name for name, _ in asked.tiers))
    for index, name in enumerate(names):
        if name in names[:index]:
            raise SettingsError(f"--tier: {name!r:.60} is given twice")
    slower = [capacity_of(text, trace, asked.sizing, f"--tier {name}") for name, text in asked.tiers]
    return Stack(names, (size.blocks, *(one.blocks for one in slower)), asked.inclusion, asked.write)


def _whole(size: Capacity, stack: Stack, asked: Asked) -> Capacity:
    parts: Sequence[str] = (size.text, *(str(text) for _, text in asked.tiers))
    joined = " + ".join(parts) if asked.inclusion == EXCLUSIVE else f"largest of {', '.join(parts)}"
    return Capacity(joined, stack.capacity)
