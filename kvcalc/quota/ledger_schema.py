"""The JSON Schema of a ledger file, for editors and for programs that write one."""

from typing import Any

from kvcalc.quota.document import SCHEMA
from kvcalc.quota.ledger import STATES

_SIZE = {"type": "string", "description": "A size with its unit, such as 20 GB or 512 MiB."}
_TIME = {"type": "string", "description": "A time with its unit, such as 120 s."}
_COUNT = {"type": "integer", "minimum": 1}
_BYTES = {
    "anyOf": [_SIZE, {"type": "integer", "minimum": 1}],
    "description": "Bytes of one block on one GPU.",
}
_TOKENS = {
    "anyOf": [{"type": "integer", "minimum": 0}, {"type": "string"}],
    "description": "Tokens, such as 32k.",
}
_BLOCKS = {
    "type": "array",
    "description": "Block numbers, and ranges [first, last], in the order of the tokens.",
    "items": {
        "anyOf": [
            {"type": "integer", "minimum": 0},
            {"type": "array", "items": {"type": "integer", "minimum": 0}, "minItems": 2, "maxItems": 2},
        ]
    },
}


def ledger_schema(dialect: str) -> dict[str, Any]:
    """Return the JSON Schema of `kvcalc.ledger/1`."""
    body = _object(
        {
            "schema": {"const": SCHEMA},
            "block": _object(
                {"tokens": _COUNT, "bytes": _BYTES}, ("tokens", "bytes"), "Of the one KV group."
            ),
            "groups": {
                "type": "object",
                "description": "KV groups of a hybrid model by name; a session needs blocks in each.",
                "additionalProperties": _group(),
            },
            "pool": _pool(),
            "tenants": {"type": "object", "additionalProperties": _tenant()},
            "sessions": {
                "description": "The sessions, or the name of a Parquet file beside this one.",
                "anyOf": [{"type": "array", "items": _session()}, {"type": "string"}],
            },
            "shared": _listed({"references": _COUNT}, "Blocks that several sessions hold; checked if given."),
            "pinned": _listed({"why": {"type": "string"}}, "Blocks that are used but never reclaimable."),
            "leased": _listed(
                {"to": {"type": "string"}, "until": _TIME},
                "Blocks that a transfer in flight reads or writes.",
            ),
            "copies": _listed({"tier": {"type": "string"}}, "Blocks that a lower tier holds too."),
            "waiting": {
                "type": "array",
                "items": _waiting(),
                "description": "Requests that wait for blocks.",
            },
        },
        ("pool", "tenants", "sessions"),
        "A snapshot of a KV pool: which session of which tenant holds which block.",
    )
    return {"$schema": dialect, "$id": SCHEMA, "title": "Ledger", **body,
            "oneOf": [{"required": ["block"]}, {"required": ["groups"]}]}  # fmt: skip


def _object(properties: dict[str, Any], required: tuple[str, ...], about: str) -> dict[str, Any]:
    return {
        "type": "object",
        "description": about,
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


def _group() -> dict[str, Any]:
    window = {**_COUNT, "description": "Tokens that a sliding window keeps."}
    state = {"type": "boolean", "description": "A recurrent state: one block a session."}
    return _object(
        {"tokens": _COUNT, "bytes": _BYTES, "window": window, "state": state},
        ("tokens", "bytes"),
        "A KV group.",
    )


def _pool() -> dict[str, Any]:
    blocks = {
        "description": "Blocks of the pool, or of each group's own pool by name.",
        "anyOf": [_COUNT, {"type": "object", "additionalProperties": _COUNT}],
    }
    share = {
        "type": "number",
        "exclusiveMinimum": 0,
        "maximum": 1,
        "description": "Share that may be filled.",
    }
    return _object(
        {"blocks": blocks, "dram": _SIZE, "dram_watermark": share, "dram_used": _SIZE},
        ("blocks",),
        "The memory.",
    )


def _tenant() -> dict[str, Any]:
    limit = {"type": "string", "description": "A size such as 20 GB, or tokens such as 500k tokens."}
    lengths = _object(
        {"p50": _TOKENS, "p95": _TOKENS}, ("p50", "p95"), "Lengths of its sessions, for admission."
    )
    rate = {"type": "string", "description": "A rate with its unit."}
    return _object(
        {
            "quota": limit,
            "kind": {"enum": ["hard", "soft"]},
            "floor": limit,
            "active": {"type": "boolean"},
            "lengths": lengths,
            "arrivals": rate,
            "check": _TIME,
            "writes": rate,
            "reuse_gap": _TIME,
        },
        (),
        "What a tenant may hold.",
    )


def _session() -> dict[str, Any]:
    return _object(
        {
            "id": {"type": ["string", "integer"]},
            "tenant": {"type": "string"},
            "state": {"enum": list(STATES)},
            "tokens": _TOKENS,
            "blocks": {"anyOf": [_BLOCKS, {"type": "object", "additionalProperties": _BLOCKS}]},
            "idle": _TIME,
            "p_reuse": {"type": "number", "minimum": 0, "maximum": 1},
            "remaining": {"type": "number", "minimum": 0},
        },
        ("id", "tenant", "state", "tokens", "blocks"),
        "A session and its block table.",
    )


def _listed(more: dict[str, Any], about: str) -> dict[str, Any]:
    one = _object({"blocks": _BLOCKS, "group": {"type": "string"}, **more}, ("blocks",), about)
    items = [*_BLOCKS["items"]["anyOf"], one]  # type: ignore[index]
    return {"type": "array", "description": about, "items": {"anyOf": items}}


def _waiting() -> dict[str, Any]:
    return _object(
        {"id": {"type": ["string", "integer"]}, "tokens": _TOKENS, "tenant": {"type": "string"}},
        ("id", "tokens"),
        "A request that waits.",
    )
