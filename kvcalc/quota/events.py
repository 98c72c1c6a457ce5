"""KV events as vLLM and LMCache publish them: BlockStored, BlockRemoved, AllBlocksCleared.

An event is an object with `type`, or the list that msgspec makes of one, its name first.  A batch, an object
with `ts` and `events` or such a list, stands for its events.  `medium` is the tier; GPU where none is said.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kvcalc.documents import describe
from kvcalc.errors import ProfileError, SettingsError, did_you_mean
from kvcalc.quota.tree import Tree

_FIELDS: Mapping[str, tuple[str, ...]] = {
    "BlockStored": (
        "block_hashes",
        "parent_block_hash",
        "token_ids",
        "block_size",
        "lora_id",
        "medium",
        "lora_name",
    ),
    "BlockRemoved": ("block_hashes", "medium"),
    "AllBlocksCleared": (),
}
"""Fields of each event, in the order in which a list holds them (vllm/distributed/kv_events.py)."""

_OWNERS = ("tenant", "cache_salt", "lora_name")
"""Fields that tell whose a block is; the first that is there counts."""

GPU = "GPU"


@dataclass(frozen=True, slots=True)
class _Event:
    where: str
    name: str
    said: Mapping[str, Any]

    def hashes(self) -> list[Hashable]:
        """Return the hashes of its blocks."""
        found = self.said.get("block_hashes")
        if not isinstance(found, list) or not all(isinstance(key, int | str) for key in found):
            raise ProfileError(
                f"{self.where}: block_hashes: expected a list of hashes, not {describe(found)}"
            )
        return list(found)

    @property
    def on_gpu(self) -> bool:
        """Whether it speaks of device memory."""
        return (self.said.get("medium") or GPU).upper() == GPU


def events_of(lines: Sequence[tuple[str, Any]], at: float | None, block_tokens: int | None) -> Tree:
    """Return what is in the cache after the events, or after those up to the time `at`."""
    tree = Tree(block_tokens or 0)
    for where, item in lines:
        time, events = _batch(where, item)
        if at is not None and time is not None and time > at:
            break
        tree.now = time if time is not None else tree.now
        for event in events:
            _apply(tree, event, block_tokens)
    tree.now = at if at is not None else tree.now
    if not tree.block_tokens:
        raise SettingsError("--block-tokens: missing; no event says how many tokens a block has")
    return tree


def _batch(where: str, item: Any) -> tuple[float | None, list[_Event]]:  # noqa: ANN401 - a line of a file
    """Return the time and the events of a line: of a batch, or of one event."""
    if isinstance(item, Mapping) and "events" in item:
        time, events = item.get("ts"), item["events"]
    elif (
        isinstance(item, list)
        and len(item) >= 2
        and isinstance(item[1], list)
        and not isinstance(item[0], str)
    ):
        time, events = item[0], item[1]
    else:
        time, events = (item.get("ts") if isinstance(item, Mapping) else None), [item]
    if time is not None and (isinstance(time, bool) or not isinstance(time, int | float)):
        raise ProfileError(f"{where}: ts: expected seconds, not {describe(time)}")
    if not isinstance(events, list):
        raise ProfileError(f"{where}: events: expected a list, not {describe(events)}")
    return time, [_event(where, event) for event in events]


def _event(where: str, item: Any) -> _Event:  # noqa: ANN401 - a line of a file
    if isinstance(item, list) and item and isinstance(item[0], str):
        name = item[0]
        said: Mapping[str, Any] = dict(zip(_FIELDS.get(name, ()), item[1:], strict=False))
    elif isinstance(item, Mapping) and isinstance(item.get("type"), str):
        name, said = item["type"], item
    else:
        raise ProfileError(f"{where}: expected an event with a type, not {describe(item)}")
    if name not in _FIELDS:
        raise ProfileError(f"{where}: unknown event {name!r}{did_you_mean(name, list(_FIELDS))}")
    return _Event(where, name, said)


def _apply(tree: Tree, event: _Event, block_tokens: int | None) -> None:
    if event.name == "AllBlocksCleared":
        tree.clear()
    elif event.name == "BlockRemoved":
        _remove(tree, event)
    else:
        _store(tree, event, block_tokens)


def _remove(tree: Tree, event: _Event) -> None:
    for key in event.hashes():
        if event.on_gpu and not tree.remove(key):
            raise ProfileError(f"{event.where}: BlockRemoved: block {key} was never stored")
        if not event.on_gpu:
            tree.lower.discard(key)


def _store(tree: Tree, event: _Event, block_tokens: int | None) -> None:
    size = event.said.get("block_size", block_tokens)
    if isinstance(size, bool) or not isinstance(size, int) or size <= 0:
        raise ProfileError(
            f"{event.where}: block_size: expected a whole number above 0, not {describe(size)}"
        )
    if tree.block_tokens and size != tree.block_tokens:
        raise ProfileError(
            f"{event.where}: block_size: {size}, but other blocks have {tree.block_tokens} tokens"
        )
    tree.block_tokens = size
    parent = event.said.get("parent_block_hash")
    tenant = next((str(event.said[key]) for key in _OWNERS if event.said.get(key)), "")
    for key in event.hashes():
        if event.on_gpu:
            tree.store(key, parent, tenant)
        else:
            tree.lower.add(key)
        parent = key
