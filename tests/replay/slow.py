"""A second implementation of caches, written from the definitions: lists, one block at a time, slow.

It shares no code with `kvcalc.replay`.  A request is a list of block ids; a cache is a list, the block that
goes next at its front.
"""


def replay(
    requests,
    capacity,
    policy="lru",
    touch="tail",
    oversize="truncate",
    lookup="atomic",
    hits="prefix",
):
    """Return which blocks of each request hit, as lists of booleans; those that do not count are false."""
    cache, found = [], []
    for number, request in enumerate(requests):
        at_start = [block in cache for block in request]
        kept = len(request)
        if len(request) > capacity and oversize == "truncate":
            kept = capacity
        if len(request) > capacity and oversize == "bypass":
            kept = 0
        order = range(kept)
        at_touch = [None] * len(request)
        for place in reversed(order) if touch == "tail" else order:
            block = request[place]
            at_touch[place] = block in cache
            _touch(cache, block, capacity, policy, request if oversize == "pin" else (), requests, number)
        for place in range(kept, len(request)):
            at_touch[place] = request[place] in cache
        seen = at_start if lookup == "atomic" else at_touch
        if hits == "prefix":
            first = seen.index(False) if False in seen else len(seen)
            seen = [place < first for place in range(len(seen))]
        found.append(seen)
    return found


def _touch(cache, block, capacity, policy, pinned, requests, number):
    if block in cache:
        if policy == "lru":
            cache.remove(block)
            cache.append(block)
        return
    if len(cache) >= capacity:
        free = [other for other in cache if other not in pinned]
        if not free:
            return
        if policy == "belady":
            free.sort(key=lambda other: -_next_use(other, requests, number))
        cache.remove(free[0])
    cache.append(block)


def _next_use(block, requests, number):
    later = (n for n in range(number + 1, len(requests)) if block in requests[n])
    return next(later, len(requests))


def best_possible(requests, capacity):
    """Return the most prefix blocks that any cache can hit, by trying every content after each request."""
    from itertools import combinations

    states = {frozenset(): 0}
    for request in requests:
        following = {}
        for cached, total in states.items():
            gained = 0
            while gained < len(request) and request[gained] in cached:
                gained += 1
            there = sorted(cached | set(request))
            size = min(capacity, len(there))
            for kept in combinations(there, size):
                state = frozenset(kept)
                following[state] = max(following.get(state, 0), total + gained)
        states = following
    return max(states.values())


def tokens(requests, found, block_tokens, inputs):
    """Return the tokens of hit blocks: all of a block, of a last one what is in it."""
    total = 0
    for request, seen, length in zip(requests, found, inputs, strict=True):
        for place, hit in enumerate(seen):
            last = place == len(request) - 1
            total += hit * (length - block_tokens * place if last else block_tokens)
    return total
