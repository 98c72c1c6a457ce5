"""Whether the freed blocks can serve the next request in every KV group, and what it takes if not."""

import math

from kvcalc.quota.ledger import Ledger, Waiting
from kvcalc.quota.results import GroupRoom, Placement


def placement_of(after: Ledger, request: Waiting | None, asked: float) -> Placement:
    """Return whether the request can be placed once the plan is done; without one, whether `asked` bytes can.

    No prefix hit is assumed, so the request needs all of its blocks.
    """
    needs = after.needed(request.tokens) if request is not None else _blocks_for(after, asked)
    free = after.free_blocks()
    short = [
        max(
            0,
            sum(count for group, count in zip(after.groups, needs, strict=True) if group.pool == pool)
            - free[pool],
        )
        for pool in range(len(after.pools))
    ]
    rooms = tuple(
        GroupRoom(group.name, count, free[group.pool], short[group.pool])
        for group, count in zip(after.groups, needs, strict=True)
    )
    size = sum(count * group.bytes for group, count in zip(after.groups, needs, strict=True))
    return Placement(
        request=f"{asked:,.0f} bytes" if request is None else request.id,
        tokens=None if request is None else request.tokens,
        bytes=float(size),
        groups=rooms,
        placed=not any(short),
        rebalance=_rebalance(after, short, needs),
    )


def largest(ledger: Ledger) -> Waiting | None:
    """Return the waiting request that needs most bytes."""
    return max(ledger.waiting, key=lambda item: ledger.session_bytes(item.tokens), default=None)


def _blocks_for(ledger: Ledger, asked: float) -> tuple[int, ...]:
    """Return the blocks of a request of so many bytes, in the proportions of one long session."""
    if len(ledger.groups) == 1:
        return (math.ceil(asked / ledger.groups[0].bytes),)
    if asked <= 0 or ledger.bytes_per_token == 0:
        return tuple(0 for _ in ledger.groups)
    return ledger.needed(math.ceil(asked / ledger.bytes_per_token))


def _rebalance(after: Ledger, short: list[int], needs: tuple[int, ...]) -> str:
    if not any(short):
        return ""
    free = after.free_blocks()
    said = []
    for index, missing in enumerate(short):
        if not missing:
            continue
        name = f" of {after.pools[index].name}" if after.pools[index].name else ""
        size = missing * after.page(index)
        said.append(f"{missing:,} more blocks{name} ({size:,.0f} bytes) must be freed")
        for other, pool in enumerate(after.pools):
            used = sum(n for group, n in zip(after.groups, needs, strict=True) if group.pool == other)
            spare = (free[other] - used) * after.page(other)
            if other != index and spare >= size:
                said.append(
                    f"or as many bytes moved to it from the pool of {pool.name}, which keeps "
                    f"{spare:,.0f} bytes free"
                )
    total_free = sum(free[index] * after.page(index) for index in range(len(free)))
    total_need = sum(n * group.bytes for group, n in zip(after.groups, needs, strict=True))
    if total_free >= total_need:
        said.append("the free bytes would do altogether, but lie in the wrong group")
    return "; ".join(said)
