"""What a ledger says of single blocks: shared, pinned, leased to a transfer, or copied to a lower tier."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from kvcalc.documents import Section
from kvcalc.errors import ProfileError
from kvcalc.quota.intervals import Blocks, expand
from kvcalc.quota.ledger import Group, Pool

_KEYS: Mapping[str, tuple[str, ...]] = {
    "shared": ("references",),
    "pinned": ("why",),
    "leased": ("to", "until"),
    "copies": ("tier",),
}
"""What an object of each list may say besides its blocks and their group."""


@dataclass(frozen=True)
class Listed:
    """Blocks of one list, sorted, with what was said of them."""

    key: str
    blocks: Blocks
    said: bool  # whether the file has the list
    counts: tuple[tuple[str, Blocks, int], ...] = ()  # place, blocks, references that the file states


def exceptions(
    section: Section, groups: tuple[Group, ...], pools: tuple[Pool, ...], keys: tuple[str, ...]
) -> dict[str, Listed]:
    """Return the lists of the file by key; one that is absent is empty."""
    return {key: _listed(section, key, groups, pools) for key in keys}


def _listed(section: Section, key: str, groups: tuple[Group, ...], pools: tuple[Pool, ...]) -> Listed:
    if key not in section:
        return Listed(key, np.zeros(0, dtype=np.int64), False)
    items = section.items(key)
    plain = [item for item in items if not isinstance(item, Mapping)]
    parts, counts = [], []
    if plain:
        parts.append(_numbered(section, key, plain, None, groups, pools))
    for index, item in enumerate(items):
        if not isinstance(item, Mapping):
            continue
        one = Section.of(item, section.file, f"{key}[{index}]")
        one.check(("blocks",), ("group", *_KEYS[key]))
        group = one.text("group") if "group" in one else None
        blocks = _numbered(one, "blocks", one.items("blocks"), group, groups, pools)
        parts.append(blocks)
        if "references" in one:
            counts.append((one.where("references"), blocks, one.integer("references")))
    joined = np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)
    sorted_blocks = np.unique(joined)
    if sorted_blocks.size < joined.size:
        twice = int(np.sort(joined)[:-1][np.diff(np.sort(joined)) == 0][0])
        raise ProfileError(f"{section.where(key)}: block {twice} is listed twice")
    return Listed(key, sorted_blocks, True, tuple(counts))


def _numbered(
    one: Section,
    key: str,
    items: list[Any],
    group: str | None,
    groups: tuple[Group, ...],
    pools: tuple[Pool, ...],
) -> Blocks:
    """Return blocks numbered through all pools; with several pools the group says which one."""
    names = [known.name for known in groups]
    if group is not None and group not in names:
        raise ProfileError(f"{one.where('group')}: no group is named {group!r}")
    if group is None and len(pools) > 1:
        raise ProfileError(f"{one.where(key)}: name the group, as in {{group: {names[0]}, blocks: [[0, 7]]}}")
    pool = pools[groups[names.index(group)].pool if group is not None else 0]
    return expand(items, pool.blocks, one.where(key)) + pool.first
