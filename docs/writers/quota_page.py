"""docs/quota.md: the ledger file key by key, the order of a plan, and the controls of real systems."""

from typing import Any

from docs.writers.markdown import code, document, prose, table
from kvcalc.output.schema import DIALECT
from kvcalc.quota.charging import MEANINGS
from kvcalc.quota.cheapest import EXACT_BLOCKS
from kvcalc.quota.controls import CONTROLS, controls_table
from kvcalc.quota.ledger_schema import ledger_schema

_MEANS = (
    (
        "free",
        "finished sessions, suspended ones of inactive tenants, and from the leaf on blocks that a lower "
        "tier holds already",
        "nothing now; a restore or a recompute by the chance that the session comes back",
    ),
    (
        "offload",
        "suspended sessions, longest idle first, up to the DRAM watermark",
        "the way out now, the way back by its chance",
    ),
    (
        "compress",
        "what the watermark kept out, unless --no-compress; lossy",
        "the way out, and the smaller way back",
    ),
    (
        "evict_tail",
        "tails of suspended contexts with --evict-tail, the longest first, never the first --keep tokens",
        "computing the tail again, by its chance",
    ),
    ("preempt", "running sessions with --preempt, as a whole", "computing the context again"),
)


def page() -> str:
    """Return the page."""
    schema = ledger_schema(DIALECT)
    rules = "\n".join(f"- {code(name)}: {prose(meaning)}" for name, meaning in MEANINGS.items())
    controls = [
        [one.means, one.system, prose(one.control), prose(one.counts), prose(one.note), one.source]
        for one in CONTROLS
    ]
    return document(
        "Quotas",
        "the code in `kvcalc/quota`",
        "`kvcalc quota show LEDGER` says who holds what of a KV pool, `kvcalc quota reclaim LEDGER` how to "
        "get bytes back from a tenant, `kvcalc quota import FILE` makes a ledger of KV events or of a "
        "trace. Examples lie in [examples/ledgers](../examples/ledgers).",
        "## The ledger",
        "YAML, JSON or Parquet. All bytes are those of one GPU. Parquet has a row a session and the rest "
        "as JSON in the metadata `kvcalc.ledger/1`; a YAML or JSON ledger may name such a file under "
        "`sessions`. A list of blocks holds numbers and ranges `[first, last]`; an item of `shared`, "
        "`pinned`, `leased` or `copies` may also be an object with `blocks`, and `group` where each group "
        "has a pool of its own. Reference counts follow from the sessions. [JSON "
        "Schema](../kvcalc/schemas/ledger-1.json).",
        table(["key", "type", "meaning"], list(_keys(schema, ""))),
        "## How shared blocks are charged",
        rules,
        "## The order of a plan",
        table(["means", "takes", "costs"], [[code(a), prose(b), prose(c)] for a, b, c in _MEANS]),
        "Leaves go first. A block goes only when no session holds it any more: another tenant's session, a "
        "running one, a pin or a transfer keeps it, and the plan says which. Beside the fixed order stands "
        f"the plan of least cost: exact up to {EXACT_BLOCKS} reclaimable blocks, above that greedy by cost "
        "per byte with a lower bound. It never compresses, since what that loses has no price in seconds.",
        "## What it is called elsewhere",
        table(["means", "system", "control", "counts", "note", "source"], controls),
        prose(controls_table().notes[0]),
    )


def _keys(schema: dict[str, Any], prefix: str) -> list[list[str]]:
    """Return a row for each key of an object, and of the objects inside it."""
    rows = []
    for name, one in schema["properties"].items():
        key = f"{prefix}{name}"
        rows.append([code(key), _type(one), prose(one.get("description", ""))])
        inner = _inner(one)
        if inner is not None:
            rows += _keys(inner, f"{key}{_joint(one)}")
    return rows


def _joint(one: dict[str, Any]) -> str:
    """Return what stands between a key and the keys inside it."""
    if one.get("type") != "object":
        return "[]."
    return "." if "properties" in one else ".NAME."


def _inner(one: dict[str, Any]) -> dict[str, Any] | None:
    """Return the object that a key holds, holds by name, or holds a list of."""
    found = [one, one.get("additionalProperties"), one.get("items")]
    for choice in one.get("anyOf", ()):
        found.append(choice.get("items"))
    return next((item for item in found if isinstance(item, dict) and "properties" in item), None)


def _type(one: dict[str, Any]) -> str:
    if "enum" in one:
        return "one of " + ", ".join(code(word) for word in one["enum"])
    if "const" in one:
        return code(one["const"])
    if "anyOf" in one:
        return " or ".join(dict.fromkeys(_type(choice) for choice in one["anyOf"]))
    kind = one.get("type", "")
    return " or ".join(kind) if isinstance(kind, list) else kind
