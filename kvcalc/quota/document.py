"""Reads a ledger file that people or programs write: YAML, JSON, or Parquet with a head in JSON.

Strict: an unknown key, a bare number where a unit belongs, a block that does not exist and a count that
does not match are refused with file, key and id.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from kvcalc.documents import Section, describe, parse_json, read, read_text, to_quantity
from kvcalc.errors import ProfileError, UnitError, UnknownProfileError, did_you_mean
from kvcalc.quota.checks import check
from kvcalc.quota.exceptions import exceptions
from kvcalc.quota.ledger import Group, Host, Ledger, Pool, Tenant, Waiting
from kvcalc.quota.sessions import Columns, from_rows

SCHEMA = "kvcalc.ledger/1"

MAX_JSON_BYTES = 2**30
"""Largest JSON ledger that is read [byte]: ten million blocks as single numbers are about 80 MB."""

MOST = 2**48
"""Blocks or tokens above which a count is a mistake [1]."""

_TOP = ("schema", "block", "groups", "pool", "tenants", "sessions")
_EXCEPTIONS = ("shared", "pinned", "leased", "copies")
_TENANT = ("quota", "kind", "floor", "active", "lengths", "arrivals", "check", "writes", "reuse_gap")


def read_ledger(path: str | Path) -> Ledger:
    """Return the ledger of a `.yaml`, `.json` or `.parquet` file.

    Raises
    ------
    UnknownProfileError
        If there is no such file.
    ProfileError
        If it is malformed or contradicts itself; the message names file, key and id.
    """
    file = Path(path)
    if not file.is_file():
        raise UnknownProfileError(f"{path!s:.200}: no such file")
    if file.suffix == ".parquet":
        from kvcalc.quota.parquet import read_parquet

        head, columns = read_parquet(file)
        return _ledger(head, str(path), lambda _groups, _pools: columns)
    if file.suffix == ".json":
        data = parse_json(read_text(file, MAX_JSON_BYTES), str(path), MAX_JSON_BYTES)
    else:
        data = _read_yaml(file)
    return of_document(data, str(path), file.parent)


def _read_yaml(file: Path) -> Any:  # noqa: ANN401 - plain data
    from kvcalc.documents import MAX_BYTES

    if file.stat().st_size > MAX_BYTES:
        raise ProfileError(
            f"{file}: larger than {MAX_BYTES // 2**20} MiB, which YAML is too slow for; write JSON or Parquet"
        )
    return read(file)


def of_document(data: Any, file: str, folder: Path = Path()) -> Ledger:  # noqa: ANN401 - plain data
    """Return the ledger of plain data; `sessions` may name a Parquet file beside it."""
    section = Section.of(data, file)

    def sessions(groups: tuple[Group, ...], pools: tuple[Pool, ...]) -> Columns:
        rows = section.data.get("sessions")
        if isinstance(rows, str):
            from kvcalc.quota.parquet import read_columns

            return read_columns(folder / rows)
        return from_rows(section.items("sessions"), file, groups, pools)

    return _ledger(section, file, sessions)


Rows = Callable[[tuple[Group, ...], tuple[Pool, ...]], Columns]


def _ledger(section: Section, file: str, rows: Rows) -> Ledger:
    section.check(("pool", "tenants"), (*_TOP, *_EXCEPTIONS, "waiting"))
    if section.data.get("schema", SCHEMA) != SCHEMA:
        section.fail("schema", repr(SCHEMA))
    groups, pools, host = _pool(section)
    tenants = _tenants(section, sum(g.bytes_per_token for g in groups if g.window is None))
    names = [tenant.name for tenant in tenants]
    columns = rows(groups, pools)
    known = exceptions(section, groups, pools, _EXCEPTIONS)
    ledger = Ledger(
        file=file,
        pools=pools,
        groups=groups,
        tenants=tenants,
        sessions=columns.sessions(file, names, tenants),
        holder=columns.holder,
        block=columns.block(file, groups, pools),
        group=columns.group,
        pinned=known["pinned"].blocks,
        leased=known["leased"].blocks,
        copied=known["copies"].blocks,
        host=host,
        waiting=_waiting(section, names),
    )
    return check(ledger, known)


def _pool(section: Section) -> tuple[tuple[Group, ...], tuple[Pool, ...], Host]:
    pool = section.section("pool")
    pool.check(("blocks",), ("dram", "dram_watermark", "dram_used"))
    if ("block" in section) == ("groups" in section):
        raise ProfileError(f"{section.where('block')}: give either block or groups")
    if isinstance(pool.data["blocks"], Mapping):
        own = pool.section("blocks")
        sizes = {name: _positive(own, name) for name in own.data}
        if not sizes:
            pool.fail("blocks", "a number of blocks for each group")
    else:
        sizes = {"": _positive(pool, "blocks")}
    pools, first = [], 0
    for name, blocks in sizes.items():
        pools.append(Pool(name, blocks, first))
        first += blocks
    groups = _groups(section, list(sizes))
    for index, one in enumerate(pools):
        pages = {group.bytes for group in groups if group.pool == index}
        if len(pages) > 1:
            raise ProfileError(
                f"{section.where('groups')}: groups of one pool have pages of one size; "
                "give pool.blocks by group"
            )
        if not pages:
            raise ProfileError(f"{pool.where('blocks')}.{one.name}: no group is named {one.name!r}")
    return groups, tuple(pools), _host(pool)


def _groups(section: Section, pools: list[str]) -> tuple[Group, ...]:
    if "block" in section:
        block = section.section("block")
        block.check(("tokens", "bytes"))
        return (Group("", _positive(block, "tokens"), _bytes(block, "bytes"), 0),)
    found = []
    named = section.section("groups")
    for name in named.data:
        one = named.section(name)
        one.check(("tokens", "bytes"), ("window", "state"))
        if pools != [""] and name not in pools:
            raise ProfileError(
                f"{section.where('pool.blocks')}.{name}: missing; each group has a pool or none has"
            )
        found.append(
            Group(
                name,
                _positive(one, "tokens"),
                _bytes(one, "bytes"),
                pools.index(name) if name in pools else 0,
                _positive(one, "window") if "window" in one else None,
                one.flag("state") if "state" in one else False,
            )
        )
    if not found:
        section.fail("groups", "at least one group")
    return tuple(found)


def _host(pool: Section) -> Host:
    capacity = _size(pool, "dram") if "dram" in pool else None
    watermark = pool.number("dram_watermark") if "dram_watermark" in pool else 1.0
    if not 0 < watermark <= 1:
        pool.fail("dram_watermark", "a share in (0, 1]")
    used = _size(pool, "dram_used") if "dram_used" in pool else 0.0
    if capacity is not None and used > capacity:
        raise ProfileError(f"{pool.where('dram_used')}: more than pool.dram holds")
    return Host(capacity, watermark, used)


def _tenants(section: Section, bytes_per_token: float) -> tuple[Tenant, ...]:
    named = section.section("tenants")
    return tuple(_tenant(name, named.section(name), bytes_per_token) for name in named.data)


def _tenant(name: str, one: Section, bytes_per_token: float) -> Tenant:
    one.check((), _TENANT)
    kind = one.text("kind") if "kind" in one else "hard"
    if kind not in ("hard", "soft"):
        raise ProfileError(
            f"{one.where('kind')}: unknown kind {kind!r}{did_you_mean(kind, ('hard', 'soft'))}"
        )
    quota, by_tokens = _limit(one, "quota", bytes_per_token)
    floor, _ = _limit(one, "floor", bytes_per_token)
    if quota is not None and (floor or 0.0) > quota:
        raise ProfileError(f"{one.where('floor')}: above the quota of tenant {name!r}")
    lengths = one.section("lengths") if "lengths" in one else None
    if lengths is not None:
        lengths.check(("p50", "p95"))
    return Tenant(
        name=name,
        quota=quota,
        by_tokens=by_tokens,
        soft=kind == "soft",
        floor=floor or 0.0,
        active=one.flag("active") if "active" in one else True,
        length_p50=None if lengths is None else _tokens(lengths, "p50"),
        length_p95=None if lengths is None else _tokens(lengths, "p95"),
        arrivals=_optional(one, "arrivals", "1/second"),
        check=_optional(one, "check", "second"),
        writes=_optional(one, "writes", "byte/second"),
        reuse_gap=_optional(one, "reuse_gap", "second"),
    )


def _limit(one: Section, key: str, bytes_per_token: float) -> tuple[float | None, bool]:
    """Return a quota or a floor in bytes, and whether it was given in tokens."""
    if key not in one:
        return None, False
    text = one.data[key]
    if isinstance(text, str) and text.rstrip().endswith(("token", "tokens")):
        return _tokens(one, key) * bytes_per_token, True
    return _size(one, key), False


def _tokens(one: Section, key: str) -> int:
    from kvcalc.units import to_tokens

    value = one.data[key]
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str):
        one.fail(key, "tokens, such as 32k")
    number = value.strip().removesuffix("s").removesuffix("token")
    try:
        return to_tokens(number)
    except UnitError as error:
        raise ProfileError(f"{one.where(key)}: {error}") from None


def _positive(one: Section, key: str) -> int:
    value = one.integer(key)
    if not 0 < value < MOST:
        one.fail(key, "a whole number above 0" if value <= 0 else f"less than {MOST}")
    return value


def _bytes(one: Section, key: str) -> float:
    """Return the bytes of a block; this key is named for its unit, so a bare number is bytes."""
    value = one.data.get(key)
    bare = isinstance(value, int | float) and not isinstance(value, bool)
    size = float(value) if bare and value is not None else one.quantity(key, "byte")
    if not size > 0 or not size.is_integer():
        one.fail(key, "whole bytes above 0")
    return size


def _size(one: Section, key: str) -> float:
    size = one.quantity(key, "byte")
    if size < 0:
        one.fail(key, "bytes, not less than none")
    return size


def _optional(one: Section, key: str, unit: str) -> float | None:
    if key not in one:
        return None
    value = to_quantity(one.data[key], unit, one.where(key))
    if value < 0:
        one.fail(key, "a value that is not negative")
    return value


def _waiting(section: Section, tenants: list[str]) -> tuple[Waiting, ...]:
    found = []
    for index, item in enumerate(section.items("waiting") if "waiting" in section else ()):
        one = Section.of(item, section.file, f"waiting[{index}]")
        one.check(("id", "tokens"), ("tenant",))
        tenant = one.text("tenant") if "tenant" in one else ""
        if tenant and tenant not in tenants:
            raise ProfileError(
                f"{one.where('tenant')}: unknown tenant {tenant!r}{did_you_mean(tenant, tenants)}"
            )
        if isinstance(one.data["id"], list | Mapping):
            raise ProfileError(f"{one.where('id')}: expected a name, not {describe(one.data['id'])}")
        found.append(Waiting(str(one.data["id"]), _tokens(one, "tokens"), tenant))
    return tuple(found)
