"""A ledger of what an engine says it stored: KV events, or a trace of requests up to a time.

Blocks in a cache belong to no session any more, so each chain from a root to a leaf stands as a finished
session; a prefix of several chains is shared by them.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kvcalc.documents import describe, parse_json, read_text, to_quantity
from kvcalc.errors import ProfileError, SettingsError, UnknownProfileError
from kvcalc.quota.document import MAX_JSON_BYTES
from kvcalc.quota.events import events_of
from kvcalc.quota.intervals import ranges
from kvcalc.quota.ledger import Ledger
from kvcalc.quota.requests import requests_of
from kvcalc.quota.tree import Chain, Tree

DEFAULT_TENANT = "_default"
"""Tenant of blocks without a salt or an adapter, named as LMCache names the rest of its quotas."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What an import needs besides the file, as text; None where nothing was said."""

    block_bytes: str
    blocks: str | None = None
    block_tokens: str | None = None
    at: str | None = None
    quota: str | None = None


def import_file(path: str | Path, wanted: Wanted) -> Ledger:
    """Return the ledger of a file of events or of requests.

    Raises
    ------
    UnknownProfileError
        If there is no such file.
    ProfileError
        If a line is neither an event nor a request, or contradicts the ones before it.
    """
    from kvcalc.quota.document import of_document

    file = Path(path)
    if not file.is_file():
        raise UnknownProfileError(f"{path!s:.200}: no such file")
    pool, width = _count(wanted.blocks, "--blocks"), _count(wanted.block_tokens, "--block-tokens")
    lines = list(_lines(file))
    at = None if wanted.at is None else to_quantity(wanted.at, "second", "--at")
    if lines and isinstance(lines[0][1], Mapping) and "hash_ids" in lines[0][1]:
        tree = requests_of(lines, at, pool, width)
    else:
        tree = events_of(lines, at, width)
    return of_document(_document(tree, wanted, pool), str(path))


def _lines(file: Path) -> Iterator[tuple[str, Any]]:
    """Yield the place and the value of each line of JSON, or of each item of one JSON list."""
    text = read_text(file, MAX_JSON_BYTES)
    if file.suffix == ".json":
        items = parse_json(text, str(file), MAX_JSON_BYTES)
        if not isinstance(items, list):
            raise ProfileError(f"{file}: expected a list of events or requests, not {describe(items)}")
        for index, item in enumerate(items):
            yield f"{file}: [{index}]", item
        return
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip():
            try:
                yield f"{file}:{number}", json.loads(line)
            except json.JSONDecodeError as error:
                raise ProfileError(f"{file}:{number}: not valid JSON: {error.msg}") from None


def _document(tree: Tree, wanted: Wanted, pool: int | None) -> dict[str, Any]:
    """Return the chains as a ledger document."""
    blocks = tree.highest + 1
    if pool is not None:
        if pool < blocks:
            raise SettingsError(f"--blocks: {pool} are fewer than the {blocks} that are in use at once")
        blocks = pool
    chains = tree.chains()
    names = sorted({chain.tenant or DEFAULT_TENANT for chain in chains}) or [DEFAULT_TENANT]
    limit = {} if wanted.quota is None else {"quota": wanted.quota}
    return {
        "block": {"tokens": tree.block_tokens, "bytes": wanted.block_bytes},
        "pool": {"blocks": max(1, blocks)},
        "tenants": {name: dict(limit) for name in names},
        "sessions": [_session(chain, tree) for chain in chains],
        "copies": ranges(np.array(sorted(tree.copied()), dtype=np.int64)),
    }


def _session(chain: Chain, tree: Tree) -> dict[str, Any]:
    said: dict[str, Any] = {
        "id": chain.name,
        "tenant": chain.tenant or DEFAULT_TENANT,
        "state": "finished",
        "tokens": len(chain.blocks) * tree.block_tokens,
        "blocks": ranges(np.array(chain.blocks, dtype=np.int64)),
    }
    if chain.touched is not None and tree.now is not None:
        said["idle"] = f"{tree.now - chain.touched!r} s"
    return said


def _count(text: str | None, option: str) -> int | None:
    if text is None:
        return None
    if not text.isdecimal() or int(text) == 0:
        raise SettingsError(f"{option}: expected a whole number above 0, not {text!r}")
    return int(text)
