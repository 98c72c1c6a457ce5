"""Inner loops, written so that numba can compile them; without it they run as they are, on lists.

Every function here takes sequences of integers alone and writes into sequences that it was given.
"""

from typing import Any

Numbers = Any
"""A list or an array of integers; numba knows no protocol for both."""


def stack_depths(
    start: Numbers, owner: Numbers, size: Numbers, total: Numbers, above: Numbers, left: Numbers
) -> None:
    """Fill in, by group, what was touched after its owner (`above`), and what the owner had left (`left`).

    A binary indexed tree over requests holds what each has left.  One pass over all requests; the groups of
    one request are all looked up before any of them changes hands.
    """
    requests = len(total)
    tree = [0] * (requests + 1)
    remains = [0] * requests
    held = 0
    for request in range(requests):
        moved = 0
        for group in range(start[request], start[request + 1]):
            older = 0
            place = owner[group] + 1
            while place > 0:
                older += tree[place]
                place -= place & -place
            above[group] = held - older
            left[group] = remains[owner[group]]
        for group in range(start[request], start[request + 1]):
            taken = size[group]
            moved += taken
            remains[owner[group]] -= taken
            place = owner[group] + 1
            while place <= requests:
                tree[place] -= taken
                place += place & -place
        added = total[request]
        remains[request] = added
        held += added - moved
        place = request + 1
        while place <= requests:
            tree[place] += added
            place += place & -place


def lru_tail(
    start: Numbers, owner: Numbers, size: Numbers, keep: Numbers, capacity: int, left: Numbers, hits: Numbers
) -> int:
    """Replay one least-recently-used cache that touches tails first; return what it holds at the end.

    What a request leaves behind is one entry, which loses its head to later requests and its tail to
    eviction, so that the entries stay in the order of requests.  One that keeps nothing is looked up and
    leaves the cache as it is.
    """
    used = oldest = 0
    for request in range(len(keep)):
        kept = keep[request]
        found = 0
        for group in range(start[request], start[request + 1]):
            last = owner[group]
            have, wanted = left[last], size[group]
            if have < wanted:
                found += have
                if kept > 0:
                    left[last] = 0
                break
            found += wanted
            if kept > 0:
                left[last] = have - wanted
        hits[request] = found
        if kept == 0:
            continue
        left[request] = kept
        used += kept - found
        while used > capacity:
            over = used - capacity
            have = left[oldest]
            if have > over:
                left[oldest] = have - over
                used = capacity
            else:
                left[oldest] = 0
                oldest += 1
                used -= have
    return used


def lru_head(
    start: Numbers,
    owner: Numbers,
    size: Numbers,
    before: Numbers,
    keep: Numbers,
    capacity: int,
    begin: Numbers,
    end: Numbers,
    hits: Numbers,
) -> int:
    """Replay one least-recently-used cache that touches heads first; return what it holds at the end.

    What request q left behind is the part `begin[q]` to `end[q]` of its chain, whose head goes first.
    """
    used = oldest = 0
    for request in range(len(keep)):
        kept = keep[request]
        found = moved = 0
        broken = False
        for group in range(start[request], start[request + 1]):
            last, low = owner[group], before[group]
            high = low + size[group]
            stop = high if high < end[last] else end[last]
            first = low if low > begin[last] else begin[last]
            if first > low or stop <= low:
                broken = True
            if not broken:
                found += stop - low
            if stop < high:
                broken = True
            if kept > 0:
                if stop > first:
                    moved += stop - first
                if begin[last] < high:
                    begin[last] = high if high < end[last] else end[last]
        hits[request] = found
        if kept == 0:
            continue
        end[request] = kept
        used += kept - moved
        while used > capacity:
            over = used - capacity
            have = end[oldest] - begin[oldest]
            if have > over:
                begin[oldest] += over
                used = capacity
            else:
                begin[oldest] = end[oldest]
                oldest += 1
                used -= have
    return used


def fifo(
    start: Numbers,
    first: Numbers,
    blocks: Numbers,
    keep: Numbers,
    capacity: int,
    tail: bool,
    number: Numbers,
    hits: Numbers,
) -> int:
    """Replay first in, first out, with prefix hits and a lookup before any touch; return the insertions.

    `number` holds the insertion that brought each block; the last `capacity` of them are cached.
    """
    inserted = 0
    for request in range(len(keep)):
        low, high = start[request], start[request + 1]
        oldest = inserted - capacity
        found = total = 0
        whole = True
        for run in range(low, high):
            total += blocks[run]
            offset = 0
            while whole and offset < blocks[run]:
                whole = number[first[run] + offset] > oldest
                offset += 1
                found += whole
        hits[request] = found
        place = total if tail else 0
        for step in range(high - low):
            run = high - 1 - step if tail else low + step
            count = blocks[run]
            place -= count if tail else 0
            for one in range(count):
                offset = count - 1 - one if tail else one
                block = first[run] + offset
                if place + offset < keep[request] and number[block] <= inserted - capacity:
                    inserted += 1
                    number[block] = inserted
            place += 0 if tail else count
    return inserted
