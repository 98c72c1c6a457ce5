"""The prefix tree of a cache: blocks by hash, each behind the block that its tokens follow."""

import heapq
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field


@dataclass(slots=True)
class Node:
    """One block of the cache."""

    block: int
    parent: Hashable | None
    tenant: str
    touched: float | None = None  # second of its last use


@dataclass(frozen=True, slots=True)
class Chain:
    """A root, a leaf and all between them."""

    name: str
    tenant: str
    blocks: tuple[int, ...]
    touched: float | None
    whole: bool  # whether it begins with a root; else nothing can hit it


@dataclass
class Tree:
    """What is in the cache while events are read; block numbers of removed blocks are used again."""

    block_tokens: int = 0
    now: float | None = None
    nodes: dict[Hashable, Node] = field(default_factory=dict)
    lower: set[Hashable] = field(default_factory=set)  # hashes that a lower tier holds
    free: list[int] = field(default_factory=list)
    highest: int = -1

    def store(self, key: Hashable, parent: Hashable | None, tenant: str) -> None:
        """Store a block, or use it again."""
        found = self.nodes.get(key)
        if found is None:
            if self.free:
                block = heapq.heappop(self.free)
            else:
                self.highest += 1
                block = self.highest
            found = self.nodes[key] = Node(block, parent, tenant)
        found.touched = self.now

    def remove(self, key: Hashable) -> bool:
        """Remove a block; tell whether it was there."""
        found = self.nodes.pop(key, None)
        if found is None:
            return False
        heapq.heappush(self.free, found.block)
        return True

    def clear(self) -> None:
        """Remove all blocks, but not those of lower tiers."""
        for key in list(self.nodes):
            self.remove(key)

    def copied(self) -> Iterator[int]:
        """Yield the blocks that a lower tier holds too."""
        return (node.block for key, node in self.nodes.items() if key in self.lower)

    def chains(self) -> list[Chain]:
        """Return the chain of every leaf, in the order in which the leaves were stored."""
        inner = {node.parent for node in self.nodes.values()}
        return [self._chain(key) for key in self.nodes if key not in inner]

    def _chain(self, leaf: Hashable) -> Chain:
        blocks: list[int] = []
        key: Hashable | None = leaf
        node = self.nodes[leaf]
        while True:
            blocks.append(node.block)
            key = node.parent
            if key is None or key not in self.nodes:
                break
            node = self.nodes[key]
        last = self.nodes[leaf]
        return Chain(f"chain-{leaf}", last.tenant, tuple(reversed(blocks)), last.touched, key is None)
