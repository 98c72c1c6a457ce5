"""Blocks of a plan's page on all replicas together, and on the way from prefill to decode workers."""

import math

from kvcalc.offload_results import Fleet, Handover
from kvcalc.output.fields import text
from kvcalc.output.format import human
from kvcalc.output.page import Cell, Grid, Lines, grid

_ROWS = {
    "utilization": "GPUs busy with prefill",
    "wait": "mean wait for a GPU",
    "pooled_wait": "the same with one queue for all",
    "ttft": "expected time to first token",
    "saturation_rate": "saturates at",
    "limited_by": "what saturates first",
    "tokens_per_second": "prompt tokens there",
    "cost_per_million_tokens": "a million of them cost",
    "tokens_per_dollar": "tokens for a dollar",
    "tokens_per_joule": "tokens for a joule",
}

_LIMITS = {"compute": "prefill", "decode": "decode"}


def fleet_block(fleet: Fleet) -> Grid:
    """Return both sides of a fleet, one quantity a row."""
    sides = (fleet.without, fleet.with_tiers)
    rows: list[tuple[Cell | str, ...]] = []
    for name, words in _ROWS.items():
        if name == "pooled_wait" and fleet.replicas == 1:
            continue
        unstable = [
            "no end" if name in ("wait", "pooled_wait", "ttft") and side.reason else "" for side in sides
        ]
        texts = [found or text(side, name) for found, side in zip(unstable, sides, strict=True)]
        rows.append((words, *texts))
    limit = _LIMITS.get(fleet.limited_by, f"the path to {fleet.limited_by}")
    tiers, hits = ", ".join(fleet.tiers or fleet.not_counted), text(fleet, "hit_share")
    gain = f"{fleet.gain:.3g}"
    change = "at the rate without" if gain == "1" else f"at {gain} times the rate without"
    rate = human(fleet.rate, "1/second")
    notes = [f"{hits} of {rate} hit {tiers}; with it {limit} saturates first, {change}."]
    if fleet.not_counted:
        notes = notes if fleet.tiers else []
        notes.append(f"{fleet.reason[:1].upper()}{fleet.reason[1:]}.")
    notes += [
        f"{name}: {side.reason}."
        for name, side in (("Without", fleet.without), ("With", fleet.with_tiers))
        if side.reason
    ]
    title = f"Fleet of {human(fleet.replicas, '1')} replica" + ("" if fleet.replicas == 1 else "s")
    return grid(title, ("", "without", f"with {tiers}"), "lrr", rows, tuple(notes))


def _added(transfer: Handover, name: str) -> str:
    """Return what a way of sending adds; on a saturated path that has no end."""
    return text(transfer, name) if math.isfinite(float(getattr(transfer, name))) else "without end"


def transfer_block(transfer: Handover) -> tuple[Grid | Lines, ...]:
    """Return what handing the KV over adds to the first token, sent whole or layer by layer."""
    rows: list[tuple[Cell | str, ...]] = [
        ("sent after the prefill", _added(transfer, "whole"), text(transfer, "ttft_share_whole")),
        ("sent layer by layer", _added(transfer, "layerwise"), text(transfer, "ttft_share_layerwise")),
    ]
    said = (
        f"{text(transfer, 'bytes')} from each GPU at {text(transfer, 'bandwidth')}: {transfer.reason}. "
        f"From {text(transfer, 'hiding_bandwidth')} on the sending itself hides behind the prefill"
        f"{', its wait for other prompts does not' if transfer.average_bandwidth is not None else ''}."
    )
    if transfer.average_bandwidth is not None:
        said += (
            f" The planned rate needs {text(transfer, 'average_bandwidth')} on average, "
            f"{text(transfer, 'utilization')} of the path."
        )
    header = ("", "adds", "of the time to first token")
    return (grid("From prefill to decode workers", header, "lrr", rows, (said,)),)
