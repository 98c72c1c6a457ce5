"""Writes a ledger: the same document that `document` reads."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from kvcalc.documents import write_text
from kvcalc.errors import SettingsError
from kvcalc.quota.document import SCHEMA
from kvcalc.quota.intervals import Blocks, ranges
from kvcalc.quota.ledger import STATES, Group, Ledger, Tenant

SUFFIXES = (".yaml", ".yml", ".json", ".parquet")


def write_ledger(path: str | Path, ledger: Ledger) -> None:
    """Write a ledger as YAML, JSON or Parquet, by the ending of its name; whole or not at all."""
    file = Path(path)
    if file.suffix not in SUFFIXES:
        raise SettingsError(f"{path}: a ledger is written as {', '.join(SUFFIXES)}")
    if file.suffix == ".parquet":
        from kvcalc.quota.parquet import write_parquet

        write_parquet(file, _head(ledger), _columns(ledger))
        return
    body = document_of(ledger)
    if file.suffix == ".json":
        import json

        write_text(file, json.dumps(body) + "\n")
    else:
        from kvcalc.documents import dump_yaml

        write_text(file, dump_yaml(body, inline_leaves=True))


def document_of(ledger: Ledger) -> dict[str, Any]:
    """Return a ledger as plain data; blocks are ranges."""
    head = _head(ledger)
    exceptions = {key: head.pop(key) for key in ("shared", "pinned", "leased", "copies")}
    waiting = {"waiting": head.pop("waiting")} if "waiting" in head else {}
    return {**head, "sessions": _sessions(ledger), **exceptions, **waiting}


def _head(ledger: Ledger) -> dict[str, Any]:
    pool: dict[str, Any] = {"blocks": ledger.pools[0].blocks}
    if len(ledger.pools) > 1:
        pool["blocks"] = {pool.name: pool.blocks for pool in ledger.pools}
    host = ledger.host
    if host.capacity is not None:
        pool |= {"dram": _bytes(host.capacity), "dram_watermark": host.watermark}
    if host.used:
        pool["dram_used"] = _bytes(host.used)
    one = {"block": _group(ledger.groups[0])} if not ledger.groups[0].name else {}
    several = {} if one else {"groups": {group.name: _group(group) for group in ledger.groups}}
    shared = np.flatnonzero(ledger.references > 1)
    waiting = [
        {"id": item.id, "tokens": item.tokens} | ({"tenant": item.tenant} if item.tenant else {})
        for item in ledger.waiting
    ]
    return {
        "schema": SCHEMA,
        **one,
        **several,
        "pool": pool,
        "tenants": {tenant.name: _tenant(tenant, ledger.bytes_per_token) for tenant in ledger.tenants},
        "shared": _listed(ledger, shared),
        "pinned": _listed(ledger, ledger.pinned),
        "leased": _listed(ledger, ledger.leased),
        "copies": _listed(ledger, ledger.copied),
        **({"waiting": waiting} if waiting else {}),
    }


def _group(group: Group) -> dict[str, Any]:
    size: float = int(group.bytes) if float(group.bytes).is_integer() else group.bytes
    said: dict[str, Any] = {"tokens": group.tokens, "bytes": size}
    if group.window is not None:
        said["window"] = group.window
    return said | ({"state": True} if group.state else {})


def _tenant(tenant: Tenant, bytes_per_token: float) -> dict[str, Any]:
    said: dict[str, Any] = {}
    if tenant.quota is not None:
        tokens = f"{round(tenant.quota / bytes_per_token)} tokens" if tenant.by_tokens else ""
        said["quota"] = tokens or _bytes(tenant.quota)
    if tenant.soft:
        said["kind"] = "soft"
    if tenant.floor:
        said["floor"] = _bytes(tenant.floor)
    if not tenant.active:
        said["active"] = False
    if tenant.length_p50 is not None and tenant.length_p95 is not None:
        said["lengths"] = {"p50": tenant.length_p50, "p95": tenant.length_p95}
    units = {"arrivals": "/s", "check": " s", "writes": " B/s", "reuse_gap": " s"}
    for key, unit in units.items():
        value = getattr(tenant, key)
        if value is not None:
            said[key] = f"{value!r}{unit}"
    return said


def _bytes(size: float) -> str:
    return f"{int(size)} B" if float(size).is_integer() else f"{size!r} B"


def _listed(ledger: Ledger, blocks: Blocks) -> list[Any]:
    if len(ledger.pools) == 1:
        return ranges(blocks)
    found = []
    for index, pool in enumerate(ledger.pools):
        inside = blocks[(blocks >= pool.first) & (blocks < pool.first + pool.blocks)] - pool.first
        group = next(group.name for group in ledger.groups if group.pool == index)
        if inside.size:
            found.append({"group": group, "blocks": ranges(inside)})
    return found


def _sessions(ledger: Ledger) -> list[dict[str, Any]]:
    sessions, tables = ledger.sessions, _tables(ledger)
    found = []
    for index, name in enumerate(sessions.ids):
        said: dict[str, Any] = {
            "id": name,
            "tenant": ledger.tenants[int(sessions.tenant[index])].name,
            "state": STATES[int(sessions.state[index])],
            "tokens": int(sessions.tokens[index]),
        }
        own = {group: ranges(flat[ends[index] : ends[index + 1]]) for group, (flat, ends) in tables.items()}
        said["blocks"] = own if ledger.groups[0].name else own[""]
        if not np.isnan(sessions.idle[index]):
            said["idle"] = f"{float(sessions.idle[index])!r} s"
        said["p_reuse"] = float(sessions.reuse[index])
        if not np.isnan(sessions.remaining[index]):
            said["remaining"] = float(sessions.remaining[index])
        found.append(said)
    return found


def _tables(ledger: Ledger) -> Mapping[str, tuple[Blocks, Blocks]]:
    """Return for each group the blocks of all sessions end to end, and where each session begins."""
    found = {}
    for index, group in enumerate(ledger.groups):
        chosen = ledger.group == index
        holder, blocks = ledger.holder[chosen], ledger.block[chosen]
        order = np.argsort(holder, kind="stable")
        ends = np.zeros(len(ledger.sessions.ids) + 1, dtype=np.int64)
        np.cumsum(np.bincount(holder, minlength=ends.size - 1), out=ends[1:])
        found[group.name] = (blocks[order] - ledger.pools[group.pool].first, ends)
    return found


def _columns(ledger: Ledger) -> dict[str, Any]:
    sessions = ledger.sessions
    tables = {f"blocks.{name}" if name else "blocks": table for name, table in _tables(ledger).items()}
    return {
        "id": list(sessions.ids),
        "tenant": [ledger.tenants[int(index)].name for index in sessions.tenant],
        "state": [STATES[int(index)] for index in sessions.state],
        "tokens": sessions.tokens,
        **tables,
        "idle": sessions.idle,
        "p_reuse": sessions.reuse,
        "remaining": sessions.remaining,
    }
