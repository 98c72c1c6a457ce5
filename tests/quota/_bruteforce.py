"""The cheapest plan by trying all of them: a second implementation that knows the ledger alone."""

import math

import numpy as np

from kvcalc.quota.ledger import RUNNING, SUSPENDED

WIDTH = 4  # tokens of a block in the random ledgers


class Block:
    def __init__(self, ledger, tenant, number, allowed, rates):
        sessions = ledger.sessions
        self.number = number
        holders = [int(s) for s in ledger.holder[ledger.block == number]]
        self.holders = holders
        self.state = max(int(sessions.state[s]) for s in holders)
        foreign = any(sessions.tenant[s] != tenant for s in holders)
        barred = number in ledger.pinned or number in ledger.leased or foreign
        self.eligible = not barred and (self.state != RUNNING or allowed.preempt)
        self.copied = number in ledger.copied
        chain = ledger.block[ledger.holder == holders[0]].tolist()
        self.place = chain.index(number)
        start = self.place * WIDTH
        longest = max(int(sessions.tokens[s]) for s in holders)
        chance = 1.0 if self.state == RUNNING else 1 - math.prod(1 - sessions.reuse[s] for s in holders)
        size = float(ledger.size_of[number])
        self.size = size
        recompute = float(rates.recompute(max(0, min(start + WIDTH, longest) - start), start))
        may_drop = self.state != SUSPENDED or self.copied
        may_drop |= allowed.evict_tail and start >= allowed.keep_tokens
        self.drop = chance * (size / rates.back if self.copied else recompute) if may_drop else math.inf
        may_store = not self.copied and self.state != RUNNING and ledger.host.capacity is not None
        self.store = size / rates.out + chance * size / rates.back if may_store else math.inf
        self.comes_back = self.copied and self.state == SUSPENDED


def cheapest(ledger, tenant, need, room, allowed, rates):
    """Return the most bytes that can be freed up to `need`, and the least cost of freeing as many."""
    held = sorted({int(b) for b in ledger.block[ledger.tenant_of == tenant]})
    blocks = {b: Block(ledger, tenant, b, allowed, rates) for b in held}
    chains = {
        int(s): [b for b in ledger.block[ledger.holder == s].tolist() if blocks[b].eligible]
        for s in np.flatnonzero(ledger.sessions.tenant == tenant)
    }
    order = sorted((b for b in held if blocks[b].eligible), key=lambda b: (-blocks[b].place, b))
    deeper = {
        b: {d for chain in chains.values() if b in chain for d in chain[chain.index(b) + 1 :]} for b in order
    }
    found = {}

    def record(choice):
        for chain in chains.values():
            own = [b for b in chain if len(blocks[b].holders) == 1 and blocks[b].state == RUNNING]
            if len({b in choice for b in own}) > 1:
                return  # a running session goes as a whole
        freed = sum(blocks[b].size for b in choice)
        cost = sum(blocks[b].store if kept else blocks[b].drop for b, kept in choice.items())
        found[freed] = min(cost, found.get(freed, math.inf))

    def go(at, choice, stored):
        if at == len(order):
            record(choice)
            return
        one = blocks[order[at]]
        go(at + 1, choice, stored)
        if not deeper[one.number] <= set(choice):
            return
        returns = any(choice[d] or blocks[d].comes_back for d in deeper[one.number])
        if math.isfinite(one.drop) and (one.copied or not returns):
            go(at + 1, {**choice, one.number: False}, stored)
        if math.isfinite(one.store) and stored + one.size <= room:
            go(at + 1, {**choice, one.number: True}, stored + one.size)

    go(0, {}, 0.0)
    goal = min(need, max(found))
    return goal, min(cost for freed, cost in found.items() if freed >= goal)
