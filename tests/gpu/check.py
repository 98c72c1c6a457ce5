"""What the evidence of one GPU must show: `python3 tests/gpu/check.py EVIDENCE PROFILE`; else exits 1.

Needs Python alone, and checks the JSON Schema as well where jsonschema is installed.
"""

import json
import sys
from pathlib import Path

SMALL = 32 * 1024
"""Chunks up to this size [byte] must move slower scattered than the link moves large copies."""


def claims(body, profile):
    """Yield each claim with whether it holds."""
    rows = body["measurements"]
    top = {}
    for row in rows:
        size = row["chunk_bytes"] * row["n_chunks"]
        if row["bandwidth"] and size >= top.get(row["series"], (0, 0))[0]:
            top[row["series"]] = size, row["bandwidth"]
    bound = body["machine"]["devices"][0]["link"]["bound"]
    for side in ("h2d", "d2h"):
        pinned, pageable = top[f"{side}.pinned"][1], top[f"{side}.pageable"][1]
        if bound:
            yield (
                f"{side} {pinned / 1e9:.1f} GB/s is at most the {bound / 1e9:.1f} GB/s of the link",
                pinned <= bound,
            )
        yield (
            f"{side} pinned {pinned / 1e9:.1f} is above pageable {pageable / 1e9:.1f} GB/s",
            pinned > pageable,
        )
        single = [
            row["bandwidth"]
            for row in rows
            if row["series"].startswith(f"{side}.scattered.percall") and row["chunk_bytes"] <= SMALL
        ]
        yield (
            f"{side} scattered chunks of up to 32 KiB are slower than contiguous copies",
            max(single) < pinned,
        )
    compared = [row for row in rows if row["verified"] is not None]
    yield f"content was compared in {len(compared)} sizes", len(compared) >= 50
    yield "all of it arrived as it was sent", all(row["verified"] for row in compared)
    yield "the file is complete", body["complete"]
    ran = {test["id"]: test["status"] for test in body["tests"]}
    for name in ("F", "O1", "H1", "H2", "H3", "S1", "D1", "C1", "P1", "K1", "M1"):
        yield f"{name} ran: {ran.get(name)}", ran.get(name) in ("ok", "unstable")
    yield "nothing failed", "failed" not in ran.values()
    link = profile["host_to_device"]["bandwidth"]
    yield f"the profile has the link as measured: {link['value']}", link["kind"] == "measured"


def main(evidence, profile):
    """Print every claim and return the exit status."""
    body = json.loads(Path(evidence).read_text(encoding="utf-8"))
    held = list(claims(body, json.loads(Path(profile).read_text(encoding="utf-8"))))
    try:
        import jsonschema
    except ImportError:
        print("note  jsonschema is not installed: the schema is not checked here")
    else:
        rules = json.loads(Path("kvcalc/schemas/probe-1.json").read_text(encoding="utf-8"))
        errors = list(jsonschema.Draft202012Validator(rules).iter_errors(body))
        held.append((f"the evidence follows its schema ({len(errors)} errors)", not errors))
    for claim, holds in held:
        print("ok   " if holds else "WRONG", claim)
    return 0 if all(holds for _, holds in held) else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
