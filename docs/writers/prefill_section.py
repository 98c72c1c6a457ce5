"""The part of docs/accuracy.md on prefill times: errors by kind, the picture, and each miss with why."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from docs.writers.markdown import code, escape, table

TABLE = Path(__file__).resolve().parents[1] / "prefill_accuracy.json"
TITLES = {
    "ttft_pair": "time to first token, even-numbered rows",
    "ttft_pair, new": "the same without rows that repeat a fitted measurement",
    "prefill_only": "prefill alone",
    "suffix_prefill": "suffix on a cached prefix",
    "suffix_prefill, without handling": "the same without the time per token outside the GPU",
    "fitted on": "time to first token, odd-numbered rows (fitted on)",
}


def prefill_blocks() -> list[str]:
    """Return the section, where the tests recorded one."""
    if not TABLE.exists():
        return []
    found = json.loads(TABLE.read_text(encoding="utf-8"))
    kinds = [
        [title, str(kind["rows"]), f"{kind['median']:.1%}", f"{kind['ninetieth']:.0%}"]
        for name, title in TITLES.items()
        for kind in [found["kinds"][name]]
    ]
    misses = [_miss(row) for row in found["rows"] if row["why"]]
    left_out = [[escape(name), escape(why)] for name, why in found["left_out"].items()]
    return [
        "## Prefill times",
        "Published times that name model, GPU and layout, against the profiles as they are. Two efficiencies "
        "a kind of GPU were fitted on the odd-numbered rows (`benchmarks/fit_prefill.py`, "
        "`hardware/prefill_fit.json`); the others were not seen by the fit. A kind of GPU without a row has "
        "a prior, which is called assumed.",
        "The figure for suffixes flatters: the time per token outside the GPU (`HANDLING` in "
        "`kvcalc/planning/pace.py`), which has sources of its own, was added after the median without it "
        "had been seen beyond the 25 % that the tests allow. The table shows both.",
        table(["kind", "rows", "median error", "nine tenths within"], kinds, "lrrr"),
        "Rows beyond 12 % (time to first token) or 25 % (the other kinds), and why:",
        table(["row", "measured", "predicted", "off", "why"], misses, "lrrrl"),
        "Rows that cannot be predicted:",
        table([f"row ({code('id')})", "why"], left_out),
    ]


def _miss(row: Mapping[str, Any]) -> list[str]:
    return [
        f"[{escape(row['id'])}]({row['source']})",
        f"{row['measured']:.3g} s",
        f"{row['predicted']:.3g} s",
        f"{row['error']:+.0%}",
        escape(row["why"]),
    ]
