"""Restore against recompute, one row a tier or bandwidth; shared by `plan` and `restore`."""

import math
from collections.abc import Mapping, Sequence

from kvcalc.output.fields import text
from kvcalc.output.format import significant
from kvcalc.output.page import Cell, Grid, Lines, Style, grid
from kvcalc.output.pages.ranges import gain_text
from kvcalc.results import Offload

_PARTS = ("queue", "setup", "transfer", "convert", "sync", "remaining")
_LEAST_SPLIT = 0.1  # gain of a split that is worth a word
_SHARED = ("bytes", "break_even_bandwidth")
_VERDICT: dict[str, tuple[str, Style]] = {
    "restore": ("faster", "good"),
    "recompute": ("slower", "bad"),
    "too_close": ("too close to call", "warn"),
}


def verdict(item: Offload) -> Cell:
    """Return what restoring would be, in words with its factor."""
    if item.adds_nothing:
        return Cell("adds nothing", "bad")
    word, style = _VERDICT[item.verdict]
    factor = float(item.speedup)
    if not math.isfinite(factor):
        return Cell("nothing to compare", style)
    if item.verdict == "restore":
        return Cell(f"{significant(factor)}x {word}", style)
    if item.verdict == "recompute" and factor > 0:
        return Cell(f"{significant(1 / factor)}x {word}", style)
    return Cell(word, style)


def offload_grid(title: str, items: Sequence[Offload]) -> Grid:
    """Return one row a tier: the parts that add up to the total, the recompute, the verdict.

    Parts that are zero in every row are left out and named in a note, so that the sum still reads; a
    size or break-even that all rows share is left to the text around the grid.
    """
    zero = [name for name in _PARTS if all(float(getattr(item, name)) == 0 for item in items)]
    overlapped = any(item.overlapped_total is not None for item in items)
    parts = [name for name in _PARTS if name not in zero]
    totals = ["cached_total", *(["overlapped_total"] if overlapped else []), "recompute"]
    notes = (_zeros(zero),) if zero and items else ()
    return _grid(title, items, [*parts, *totals], totals, _PREFIX_STORE, notes)


def streaming_grid(title: str, items: Sequence[Offload]) -> Grid:
    """Return one row a tier: a decode step that streams against sequences that take turns."""
    return _grid(title, items, [*_STREAMING][:-1], ["overlapped_total", "recompute"], _STREAMING, ())


_PREFIX_STORE = {"cached_total": "total", "overlapped_total": "overlapped", "verdict": "restoring is"}
_STREAMING = {
    "transfer": "transfer",
    "remaining": "step without",
    "overlapped_total": "step with",
    "recompute": "taking turns",
    "verdict": "streaming is",
}


def _grid(
    title: str,
    items: Sequence[Offload],
    names: Sequence[str],
    totals: Sequence[str],
    heads: Mapping[str, str],
    notes: tuple[str, ...],
) -> Grid:
    varied = {name for name in _SHARED if len({text(item, name) for item in items}) > 1}
    everything = ["bytes", "bandwidth", *names, "break_even_bandwidth"]
    shown = [name for name in everything if name in varied or name not in _SHARED]
    rows: list[tuple[Cell | str, ...]] = [
        (
            item.tier,
            *(Cell(text(item, name), "bold" if name in totals else "") for name in shown),
            verdict(item),
        )
        for item in items
    ]
    columns = ({"break_even_bandwidth": "break-even"} | dict(heads)).get
    header = ("tier", *(columns(name, name) for name in shown), heads["verdict"])
    return grid(title, header, "l" + "r" * len(shown) + "l", rows, notes)


def reasons(items: Sequence[Offload], *, break_even: bool = True) -> tuple[Lines, ...]:
    """Return why each verdict is as it is, how sure it is, and from where on it turns."""
    lines = tuple(_reason(item, break_even) for item in items)
    return (Lines("", lines, bullet=True),) if lines else ()


def _reason(item: Offload, break_even: bool) -> str:
    parts = [f"adds nothing: {item.adds_nothing_reason}"] if item.adds_nothing else []
    parts += [f"were there a hit: {item.reason}" if item.adds_nothing else item.reason] if item.reason else []
    if break_even and item.break_even_bandwidth is not None:
        parts.append(f"break-even {text(item, 'break_even_bandwidth')}")
    if item.break_even_tokens is not None:
        parts.append(_lengths(item))
    if item.extra_wait is not None:
        parts.append(f"extra wait {text(item, 'extra_wait')}")
    parts += [said for said in (gain_text(item.gain), _split(item), _layers(item)) if said]
    if math.isfinite(float(item.speedup)):
        parts.append(f"confidence {_confidence(float(item.confidence))}")
    return f"{item.tier or text(item, 'bandwidth')}: {'; '.join(parts)}."


def _lengths(item: Offload) -> str:
    """Return which prefixes are worth restoring; long ones may lose again."""
    every = "" if item.break_even_tokens_every else ", not at every length"
    least = text(item, "break_even_tokens")
    if item.break_even_tokens_most is None:
        return f"pays from a prefix of {least} on{every}"
    if item.break_even_tokens_most == item.break_even_tokens:
        return f"pays for a prefix of {least} only"
    return f"pays for prefixes of {least} to {text(item, 'break_even_tokens_most')}{every}"


def _split(item: Offload) -> str:
    """Return what computing a part while loading the rest would gain, where it gains anything to speak of."""
    split = item.split
    if split is None or float(split.speedup) < 1 + _LEAST_SPLIT or split.expressible == "none":
        return ""
    if split.expressible == "back":
        first, others = f"the first {text(split, 'share')} of the prefix", "the rest loads"
        if split.recomputed is not None:
            first, others = f"the first {text(split, 'recomputed')}", "the others load"
        return (
            f"computing {first} while {others} would take "
            f"{text(split, 'time')}, {significant(float(split.speedup))} times faster than either alone"
        )
    return (
        f"computing a part while loading from the back would be {significant(float(split.speedup))} times "
        "faster than either alone, but this engine's connectors load from the front only"
    )


def _layers(item: Offload) -> str:
    """Return what loading while the prefill computes would gain, where it gains anything to speak of."""
    if item.layerwise_total is None or item.layer_group is None or item.overlapped_total is not None:
        return ""
    gain = float(item.cached_total) / float(item.layerwise_total)
    if not gain > 1 + _LEAST_SPLIT:
        return ""
    group = text(item, "layer_group")
    way = "layer by layer" if group == "1" else f"{group} layers at a time"
    return f"loaded {way} while they compute, a hit would take {text(item, 'layerwise_total')}"


def _zeros(names: Sequence[str]) -> str:
    if len(names) == 1:
        return f"The part {names[0]} is 0 s."
    return f"The parts {', '.join(names[:-1])} and {names[-1]} are 0 s."


def _confidence(share: float) -> str:
    """Never print certainty: the ranges themselves are estimates."""
    return "over 99 %" if 0.99 < share < 1 else f"{share:.0%}".replace("%", " %")
