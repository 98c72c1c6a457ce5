"""The sessions of a ledger file as columns, whatever they were written in."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from kvcalc.documents import Section, to_quantity
from kvcalc.errors import ProfileError, did_you_mean
from kvcalc.quota.intervals import Blocks, expand
from kvcalc.quota.ledger import FINISHED, STATES, Group, Integers, Numbers, Pool, Sessions, Tenant

_REQUIRED = ("id", "tenant", "state", "tokens", "blocks")
_OPTIONAL = ("idle", "p_reuse", "remaining")


@dataclass(frozen=True)
class Columns:
    """Sessions by column and their pairs; block numbers are those of the pool they are from."""

    ids: Sequence[str]
    tenant: Sequence[str]
    state: Sequence[str]
    tokens: Integers
    idle: Numbers
    reuse: Numbers
    remaining: Numbers
    holder: Integers
    raw: Blocks
    group: Integers

    def block(self, file: str, groups: tuple[Group, ...], pools: tuple[Pool, ...]) -> Blocks:
        """Return the blocks numbered through all pools, refusing those outside theirs."""
        if np.any(self.group >= len(groups)):
            raise ProfileError(f"{file}: sessions: more KV groups than groups names")
        of_group = np.array([group.pool for group in groups])
        limits = np.array([pool.blocks for pool in pools])[of_group][self.group]
        outside = (self.raw < 0) | (self.raw >= limits)
        if outside.any():
            at = int(np.argmax(outside))
            who = self.ids[int(self.holder[at])]
            raise ProfileError(
                f"{file}: sessions: {who}: block {self.raw[at]} does not exist; the pool has blocks 0 to "
                f"{limits[at] - 1}"
            )
        firsts: Integers = np.array([pool.first for pool in pools], dtype=np.int64)[of_group]
        return self.raw + firsts[self.group]

    def sessions(self, file: str, names: list[str], tenants: tuple[Tenant, ...]) -> Sessions:
        """Return the checked columns, tenants and states as numbers."""
        tenant = self._numbers(file, "tenant", self.tenant, names)
        state = self._numbers(file, "state", self.state, list(STATES))
        self._refuse(file, "tokens", self.tokens < 0, self.tokens, "tokens, not less than none")
        self._refuse(file, "idle", self.idle < 0, self.idle, "a time that is not negative")
        self._refuse(file, "remaining", self.remaining < 0, self.remaining, "tokens, not less than none")
        outside = (self.reuse < 0) | (self.reuse > 1)
        self._refuse(file, "p_reuse", outside, self.reuse, "a chance from 0 to 1")
        inactive = np.array([not one.active for one in tenants], dtype=bool)[tenant]
        done = (state == FINISHED) | (inactive & (state != STATES.index("running")))
        reuse = np.where(np.isnan(self.reuse), np.where(done, 0.0, 1.0), self.reuse)
        return Sessions(tuple(self.ids), tenant, state, self.tokens, self.idle, reuse, self.remaining)

    def _numbers(self, file: str, key: str, values: Sequence[str], known: list[str]) -> Integers:
        index = {name: number for number, name in enumerate(known)}
        try:
            return np.array([index[value] for value in values], dtype=np.int64)
        except (KeyError, TypeError):
            at = next(i for i, value in enumerate(values) if not isinstance(value, str) or value not in index)
            raise ProfileError(
                f"{file}: sessions: {self.ids[at]}: {key}: unknown {key} {values[at]!r}"
                f"{did_you_mean(str(values[at]), known)}"
            ) from None

    def _refuse(self, file: str, key: str, bad: Any, values: Any, expected: str) -> None:  # noqa: ANN401
        if bad.any():
            at = int(np.argmax(bad))
            raise ProfileError(
                f"{file}: sessions: {self.ids[at]}: {key}: expected {expected}, not {values[at]:g}"
            )


def from_rows(rows: Sequence[Any], file: str, groups: tuple[Group, ...], pools: tuple[Pool, ...]) -> Columns:
    """Return the columns of sessions that were written as mappings."""
    sections = [_section(row, file, index) for index, row in enumerate(rows)]
    held: list[Blocks] = []
    holder: list[tuple[int, int]] = []  # session and group of each list of blocks
    for index, one in enumerate(sections):
        for group, blocks in _tables(one, groups, pools):
            held.append(blocks)
            holder.append((index, group))
    lengths = np.array([part.size for part in held], dtype=np.int64)
    whose = np.array(holder, dtype=np.int64).reshape(-1, 2)
    return Columns(
        ids=[_id(one) for one in sections],
        tenant=[one.data["tenant"] for one in sections],
        state=[one.data["state"] for one in sections],
        tokens=np.array([_whole(one, "tokens") for one in sections], dtype=np.int64),
        idle=np.array([_time(one, "idle") for one in sections], dtype=float),
        reuse=np.array([_number(one, "p_reuse") for one in sections], dtype=float),
        remaining=np.array([_number(one, "remaining") for one in sections], dtype=float),
        holder=np.repeat(whose[:, 0], lengths),
        raw=np.concatenate(held) if held else np.zeros(0, dtype=np.int64),
        group=np.repeat(whose[:, 1], lengths),
    )


def _section(row: Any, file: str, index: int) -> Section:  # noqa: ANN401 - an item of a file
    one = Section.of(row, file, f"sessions[{index}]")
    if "id" in one:
        one = Section(one.data, file, f"sessions[{index}] ({one.data['id']})")
    one.check(_REQUIRED, _OPTIONAL)
    return one


def _tables(one: Section, groups: tuple[Group, ...], pools: tuple[Pool, ...]) -> list[tuple[int, Blocks]]:
    tables = one.data["blocks"]
    if isinstance(tables, Mapping):
        names = [group.name for group in groups]
        inner = one.section("blocks")
        inner.check((), tuple(names))
        found = {names.index(name): inner.items(name) for name in tables}
    elif len(groups) > 1:
        one.fail("blocks", "a list for each group: " + ", ".join(group.name for group in groups))
    else:
        found = {0: one.items("blocks")}
    return [
        (group, expand(items, pools[groups[group].pool].blocks, one.where("blocks")))
        for group, items in found.items()
    ]


def _id(one: Section) -> str:
    value = one.data["id"]
    if isinstance(value, bool) or not isinstance(value, str | int):
        one.fail("id", "a name")
    return str(value)


def _whole(one: Section, key: str) -> int:
    value = one.data[key]
    if type(value) is int and 0 <= value < 2**62:
        return value
    if isinstance(value, str):
        from kvcalc.errors import UnitError
        from kvcalc.units import to_tokens

        try:
            return to_tokens(value)
        except UnitError as error:
            raise ProfileError(f"{one.where(key)}: {error}") from None
    return one.fail(key, "a whole number of tokens, not less than none")


def _number(one: Section, key: str) -> float:
    return one.number(key) if key in one else float("nan")


def _time(one: Section, key: str) -> float:
    if key not in one:
        return float("nan")
    value = one.data[key]
    return _seconds(value) if isinstance(value, str) and _readable(value) else one.quantity(key, "second")


@lru_cache(maxsize=4096)
def _readable(text: str) -> bool:
    from kvcalc.errors import UnitError
    from kvcalc.units import to_base

    try:
        to_base(text, "second")
    except UnitError:
        return False
    return True


@lru_cache(maxsize=4096)
def _seconds(text: str) -> float:
    return to_quantity(text, "second", "")
