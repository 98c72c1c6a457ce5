"""Texts and ranges of one value of a profile, as its document holds them."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kvcalc.profiles import PROBE, Provenance

Entry = dict[str, Any]

BEFORE = ("value", "kind", "from", "range")
_UNITS = {
    "bandwidth": "byte/second",
    "nominal": "byte/second",
    "latency": "second",
    "per_piece": "second",
    "capacity": "byte",
}


def entry_of(found: Provenance, key: str) -> Entry:
    """Return a value of a profile as its document has it."""
    last = key.rpartition(".")[2]
    is_share = last.endswith("_efficiency")
    entry: Entry = {
        "value": float(found.as_printed) if is_share or last == "compute_capability" else found.as_printed,
        "kind": found.kind,
        "from": found.source,
    }
    if found.range is not None:
        unit = _UNITS.get(last, "flop/second" if "flops" in key else "watt")
        entry["range"] = list(found.range) if is_share else [f"{end!r} {unit}" for end in found.range]
    if found.note:
        entry["note"] = found.note
    return entry


def rate_text(value: float) -> str:
    """Return a rate [byte/second] with its unit."""
    return f"{value / 1e9:.6g} GB/s"


def flop_rate_text(value: float) -> str:
    """Return a rate of computing [flop/second] with its unit."""
    return f"{value / 1e12:.6g} TFLOP/s"


def time_text(value: float) -> str:
    """Return a time [second] with its unit."""
    return f"{value * 1e6:.4g} us"


def number(text: str) -> float:
    """Return the rate [byte/second] of a text that `rate_text` wrote."""
    return float(text.removesuffix(" GB/s")) * 1e9


def around(value: object, ends: Sequence[object], show: Callable[[float], str]) -> list[str]:
    """Return the ends of a range as texts that enclose the value's own text, whatever was rounded."""
    numbers = [float(str(item)) for item in (ends[0], value, ends[1])]
    texts = [show(number) for number in sorted(numbers)]
    return [texts[0], texts[2]]


def is_measured(part: Mapping[str, Any]) -> bool:
    """Tell whether any value of a profile was measured by the probe that wrote it."""
    if part.get("kind") == "measured":
        return part.get("from") == PROBE
    return any(
        is_measured(item) for name, item in part.items() if name != "before" and isinstance(item, dict)
    )
