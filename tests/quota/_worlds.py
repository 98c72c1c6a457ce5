"""Random ledgers: sessions grow on prefix trees, as engines build them."""

import random

from kvcalc.quota.document import of_document
from kvcalc.quota.rates import Rates

BLOCK = 1000


def rates(out=1e6, back=2e6, setup=0.0, per_token=1e-4):
    """Rates at which every means has its day: 1 ms a block out, 0.4 ms a token of 4."""
    return Rates(out=out, back=back, setup=setup, recompute=lambda new, cached: new * per_token, ratio=2.0)


def world(seed, blocks=12, tenants=2, wild=False, sessions_most=6, fresh_most=5):
    """A random ledger with at most `blocks` blocks in use; `wild` ones share any block with anybody."""
    dice = random.Random(seed)
    names = [f"t{i}" for i in range(tenants)]
    free = list(range(200))
    dice.shuffle(free)
    chains = [[]]
    sessions = []
    used = 0
    for index in range(dice.randint(1, sessions_most)):
        base = list(dice.choice(chains))
        base = base[: dice.randint(0, len(base))]
        fresh = [free.pop() for _ in range(dice.randint(0, min(fresh_most, blocks - used)))]
        used += len(fresh)
        chain = base + fresh
        if wild and chains:
            other = [b for b in dice.choice(chains) if b not in chain]
            chain += dice.sample(other, dice.randint(0, len(other)))
        chains.append(chain)
        tokens = max(0, len(chain) * 4 - dice.randint(0, 3)) if chain else 0
        sessions.append(
            {
                "id": f"s{index}",
                "tenant": dice.choice(names),
                "state": dice.choice(["running", "suspended", "suspended", "finished"]),
                "tokens": tokens,
                "blocks": chain,
                "idle": f"{dice.randint(0, 100)} s",
                "p_reuse": dice.choice([0.0, 0.1, 0.5, 1.0]),
            }
        )
    held = sorted({block for one in sessions for block in one["blocks"]})
    pick = lambda share: [b for b in held if dice.random() < share]  # noqa: E731
    data = {
        "block": {"tokens": 4, "bytes": BLOCK},
        "pool": {"blocks": 200},
        "tenants": {name: {} for name in names},
        "sessions": sessions,
        "pinned": pick(0.1),
        "leased": pick(0.1),
        "copies": pick(0.25),
    }
    if dice.random() < 0.8:
        data["pool"] |= {"dram": f"{dice.randint(0, 12)} kB", "dram_watermark": dice.choice([0.5, 0.9, 1.0])}
    return of_document(data, f"seed {seed}")
