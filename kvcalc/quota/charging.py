"""Three rules by which tenants are charged for blocks that they share."""

import numpy as np

from kvcalc.errors import SettingsError, did_you_mean
from kvcalc.formulas.quota import fractional_charge
from kvcalc.quota.holdings import Holdings
from kvcalc.quota.ledger import Integers, Ledger, Numbers

RULES = ("fractional", "owner", "full")
"""By references, to the first holder alone, or to everyone in full."""

MEANINGS = {
    "fractional": "each shared block is charged by references, 1/n each",
    "owner": "each shared block is charged to the tenant that held it first",
    "full": "each shared block is charged in full to every tenant that holds it",
}


def check_rule(rule: str) -> str:
    """Return the rule if it is one."""
    if rule not in RULES:
        raise SettingsError(f"--rule: unknown rule {rule!r}{did_you_mean(rule, RULES)}")
    return rule


def charges(holdings: Holdings, rule: str) -> Numbers:
    """Return the bytes that each tenant is charged."""
    ledger = holdings.ledger
    if rule == "full":
        return holdings.by_tenant(holdings.size)
    if rule == "owner":
        return holdings.by_tenant(
            np.where(_owner(ledger)[holdings.block] == holdings.tenant, holdings.size, 0.0)
        )
    references = ledger.references[holdings.block].astype(float)
    shares = fractional_charge(holdings.size, holdings.own.astype(float), references)
    return holdings.by_tenant(np.asarray(shares))


def _owner(ledger: Ledger) -> Integers:
    """Return the tenant that stands first in the file for each block."""
    owner = np.full(ledger.span, -1, dtype=np.int64)
    owner[ledger.block[::-1]] = ledger.tenant_of[::-1]  # the last assignment, the first in the file, stays
    return owner


def against_quota(ledger: Ledger, charged: Numbers) -> Numbers:
    """Return what counts against each quota: bytes of blocks, or of tokens where the quota is in tokens."""
    by_tokens = np.array([tenant.by_tokens for tenant in ledger.tenants], dtype=bool)
    return np.where(by_tokens, charged - unfilled(ledger), charged) if by_tokens.any() else charged


def unfilled(ledger: Ledger) -> Numbers:
    """Return the bytes of each tenant's blocks that have no token in them."""
    from kvcalc.formulas.quota import unfilled_bytes

    tenants, sessions = len(ledger.tenants), ledger.sessions
    total = np.zeros(tenants)
    for index, group in enumerate(ledger.groups):
        if group.state:
            continue
        held, filled = group_tokens(ledger, index)
        empty = unfilled_bytes(held, float(group.tokens), filled, group.bytes)
        total += np.bincount(sessions.tenant, weights=np.asarray(empty), minlength=tenants)
    return total


def group_tokens(ledger: Ledger, index: int) -> tuple[Numbers, Numbers]:
    """Return the blocks that each session holds in a group, and the tokens that are in them."""
    group = ledger.groups[index]
    holder = ledger.holder if len(ledger.groups) == 1 else ledger.holder[ledger.group == index]
    held = np.bincount(holder, minlength=len(ledger.sessions.ids)).astype(float)
    filled = np.minimum(group.kept(ledger.sessions.tokens), held * group.tokens)
    return held, filled.astype(float)
