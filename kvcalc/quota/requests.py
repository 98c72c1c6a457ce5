"""What a finite cache holds at a time of a trace: requests as Mooncake writes them, under plain LRU.

Fields: `timestamp` in milliseconds, `hash_ids` of whole prefixes, `input_length`; `tenant` may be added.
"""

from collections import OrderedDict
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from kvcalc.documents import describe
from kvcalc.errors import ProfileError, SettingsError
from kvcalc.quota.tree import Tree

MOONCAKE_BLOCK = 512
"""Tokens of one hash of a Mooncake trace [token]
(https://github.com/kvcache-ai/Mooncake, FAST25-release/traces)."""


def requests_of(
    lines: Sequence[tuple[str, Any]], at: float | None, blocks: int | None, block_tokens: int | None
) -> Tree:
    """Return what is cached after the requests up to the time `at` [second]."""
    tree = Tree(block_tokens or MOONCAKE_BLOCK)
    recent: OrderedDict[Hashable, None] = OrderedDict()
    for where, item in lines:
        time, hashes, tenant = _request(where, item)
        if at is not None and time > at:
            break
        tree.now = time
        if blocks is not None and len(hashes) > blocks:
            raise SettingsError(
                f"--blocks: {blocks} cannot hold the request of {where}, {len(hashes)} blocks"
            )
        _admit(tree, recent, hashes, tenant, blocks)
    tree.now = at if at is not None else tree.now
    return tree


def _admit(
    tree: Tree, recent: OrderedDict[Hashable, None], hashes: list[int], tenant: str, blocks: int | None
) -> None:
    """Take a request's blocks into the cache; the head is touched last, so that leaves go first."""
    for key in reversed(hashes):
        recent[key] = None
        recent.move_to_end(key)
    while blocks is not None and len(recent) > blocks:
        gone, _ = recent.popitem(last=False)
        tree.remove(gone)
    parent: Hashable | None = None
    for key in hashes:
        tree.store(key, parent, tenant)
        parent = key


def _request(where: str, item: Any) -> tuple[float, list[int], str]:  # noqa: ANN401 - a line of a file
    if not isinstance(item, Mapping):
        raise ProfileError(f"{where}: expected a request, not {describe(item)}")
    time, hashes = item.get("timestamp"), item.get("hash_ids")
    if isinstance(time, bool) or not isinstance(time, int | float):
        raise ProfileError(f"{where}: timestamp: expected milliseconds, not {describe(time)}")
    if not isinstance(hashes, list) or not all(isinstance(key, int) for key in hashes):
        raise ProfileError(f"{where}: hash_ids: expected a list of whole numbers, not {describe(hashes)}")
    return time / 1000, hashes, str(item.get("tenant") or "")
