"""How layers share one pool of blocks: groups, equal pages, and what one block id costs.

Layers of a group share block tables; each group of a request takes its own block ids from the pool,
and a block id stands for one page in every layer of its group.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from kvcalc.engines.sizing import stage_bounds
from kvcalc.engines.vllm.caches import LayerCache
from kvcalc.engines.vllm.versions import Packing, Rules
from kvcalc.quantity import Count, Tokens

Layer = tuple[int, LayerCache]


@dataclass(frozen=True)
class Group:
    """Layers that share block tables; their pages may differ, their blocks may not."""

    layers: tuple[Layer, ...]

    @property
    def cache(self) -> LayerCache:
        """The cache that stands for the group."""
        return self.layers[0][1]

    @property
    def page_counts(self) -> Counter[int]:
        """Number of layers by page size."""
        return Counter(cache.page for _, cache in self.layers)

    def blocks(self, tokens: Tokens) -> Count:
        """Blocks that one request of `tokens` tokens takes."""
        return self.cache.blocks(tokens)


def group_layers(layers: Sequence[Layer], rules: Rules, side_by_side: bool) -> tuple[Group, ...]:
    """Return the groups of all layers of the model, whatever stage they are on."""
    if len({_type(cache) for _, cache in layers}) == 1:
        return (Group(tuple(layers)),)
    if side_by_side:
        return _side_by_side_groups(layers, rules.packing)
    return _equal_groups(_equal_pages(layers), rules.near_equal)


def _type(cache: LayerCache) -> LayerCache:
    """Return what layers must have in common to make up one group: all but the page of tokens."""
    return cache if cache.keeps == "state" else replace(cache, page=0)


def _equal_pages(layers: Sequence[Layer]) -> list[Layer]:
    """Give all layers the largest page: by more tokens per block where it divides, else by padding."""
    largest = max(cache.page for _, cache in layers)

    def unified(cache: LayerCache) -> LayerCache:
        times = 1 if cache.keeps == "state" or largest % cache.page else largest // cache.page
        return replace(cache, block=cache.block * times, page=largest)

    return [(layer, unified(cache)) for layer, cache in layers]


def _buckets(layers: Iterable[Layer], by_type: bool) -> list[list[Layer]]:
    buckets: dict[LayerCache, list[Layer]] = {}
    for layer, cache in layers:
        buckets.setdefault(_type(cache) if by_type else cache, []).append((layer, cache))
    return [sorted(bucket, key=lambda item: item[0]) for bucket in buckets.values()]


def _equal_groups(layers: Sequence[Layer], near_equal: float) -> tuple[Group, ...]:
    """Cut every kind into groups of as many layers as the smallest kind has.

    Where the largest kind has hardly more, its count is taken: that pads less.
    """
    buckets = _buckets(layers, by_type=False)
    counts = [len(bucket) for bucket in buckets]
    size = max(counts) if max(counts) < min(counts) * near_equal else min(counts)
    return tuple(group for bucket in buckets for group in _split(bucket, -(-len(bucket) // size)))


def _split(layers: Sequence[Layer], parts: int) -> list[Group]:
    """Deal layers out in turn, so that every pipeline stage holds some of every group."""
    return [Group(tuple(layers[part::parts])) for part in range(parts)]


def _side_by_side_groups(layers: Sequence[Layer], packing: Packing) -> tuple[Group, ...]:
    """Group layers whose pages lie side by side, by what they keep.

    A layer that has one page of each of several sizes makes a tuple of pages; the other kinds are
    cut into groups of about as many tuples, with the least padding.
    """
    buckets = [Group(tuple(bucket)) for bucket in _buckets(layers, by_type=True)]
    tuples = [max(bucket.page_counts.values()) for bucket in buckets]
    if packing == "widest":
        balanced = [len(set(bucket.page_counts.values())) == 1 for bucket in buckets]
        least = [
            count
            for bucket, count, even in zip(buckets, tuples, balanced, strict=True)
            if even and len(bucket.page_counts) > 1
        ]
    else:  # all that grows comes first and sets the least number of tuples
        balanced = [True] * len(buckets)
        least = [count for bucket, count in zip(buckets, tuples, strict=True) if bucket.cache.keeps == "all"]
        buckets = _pages_as_in_growing(buckets)
    counts = [count for count, even in zip(tuples, balanced, strict=True) if even]
    size = least_padding(counts, max(least)) if least else max(tuples)
    groups: list[Group] = []
    for bucket, count, even in zip(buckets, tuples, balanced, strict=True):
        parts = -(-count // size) if even else 1
        groups += _split_tuples(bucket, parts) if parts > 1 else [bucket]
    return tuple(groups)


def _pages_as_in_growing(buckets: list[Group]) -> list[Group]:
    """Pad every page to the next of the page sizes that layers which keep all tokens have."""
    sizes = sorted({cache.page for g in buckets for _, cache in g.layers if cache.keeps == "all"})

    def padded(cache: LayerCache) -> LayerCache:
        return replace(cache, page=next((size for size in sizes if size >= cache.page), cache.page))

    return [Group(tuple((layer, padded(cache)) for layer, cache in group.layers)) for group in buckets]


def _split_tuples(bucket: Group, parts: int) -> list[Group]:
    by_page = [
        [item for item in bucket.layers if item[1].page == page] for page in sorted(bucket.page_counts)
    ]
    return [Group(tuple(item for items in by_page for item in items[part::parts])) for part in range(parts)]


def least_padding(counts: Sequence[int], at_least: int) -> int:
    """Return the size that pads `counts` least when each is rounded up to a multiple; ties to larger.

    >>> least_padding([21, 43, 21, 20], 21)
    22
    """
    sizes = range(max(at_least, 1), max(*counts, at_least) + 1)
    return min(sizes, key=lambda size: (sum(-count % size for count in counts), -size))


def block_bytes(groups: Sequence[Group], packing: Packing, side_by_side: bool) -> int:
    """Return what one block id costs on a rank that holds all layers of `groups`."""
    counts = [group.page_counts for group in groups if group.layers]
    if not side_by_side or packing == "widest":
        return max((sum(page * count for page, count in pages.items()) for pages in counts), default=0)
    slots: Counter[int] = Counter()
    for pages in counts:
        slots |= pages  # as many slots of a size as the group that has most
    if packing == "slots":
        return sum(page * count for page, count in slots.items())
    return sum(slots) * max(slots.values(), default=0)


def stage_groups(groups: Sequence[Group], layers: int, pp: int) -> list[tuple[Group, ...]]:
    """Return the groups as each pipeline stage holds them; draft layers are on the last."""
    bounds = (*stage_bounds(layers, pp)[:-1], 1 << 31)
    return [
        tuple(Group(tuple(item for item in group.layers if start <= item[0] < stop)) for group in groups)
        for start, stop in pairwise(bounds)
    ]
