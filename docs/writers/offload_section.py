"""The part of docs/accuracy.md on restores: errors by kind and row, what was left out, and what to trust."""

import json
from pathlib import Path

from docs.writers.markdown import code, escape, table

TABLE = Path(__file__).resolve().parents[1] / "offload_accuracy.json"
TITLES = {
    "ttft_pair": "time to first token of a hit, beside a recompute",
    "restore_only": "time to first token of a hit alone",
    "ratio": "restore over recompute",
    "transfer": "transfer from prefill to decode workers",
    "bandwidth_vs_block": "bandwidth by size of a piece",
    "throughput_vs_hit": "throughput by share of hits",
}


def offload_blocks() -> list[str]:
    """Return the section, where the tests recorded one."""
    if not TABLE.exists():
        return []
    found = json.loads(TABLE.read_text(encoding="utf-8"))
    kinds = [
        [TITLES[name], str(kind["rows"]), f"{kind['median']:.1%}", f"{kind['ninetieth']:.1%}"]
        for name, kind in found["kinds"].items()
    ]
    rows = [
        [code(row), TITLES[name], f"{error:+.0%}"]
        for name, kind in found["kinds"].items()
        for row, error in kind["errors"].items()
    ]
    left_out = [[code(name), escape(why)] for name, why in found["left_out"].items()]
    return [
        "## How far to trust the restores",
        "Published restores, predicted whole by the model alone. The constants of mechanisms were fitted on "
        "the odd-numbered rows (`benchmarks/fit_offload.py`); these are the even-numbered ones:",
        table(["kind", "rows", "median error", "nine tenths within"], kinds, "lrrr"),
        "These figures flatter the model, for three choices were made with all rows in view: which stacks "
        "are mechanisms of their own (each revision of llm-d's pulls between servers is one, as its authors "
        "report them apart, so their constants hold for that stack and no other), the 3 ms that a hit of few "
        "remaining tokens takes, without which restores of the 1B model missed by up to 48 %, and some "
        "priors of the fit. A new stack should be measured, and given with `--setup` and a bandwidth.",
        table(["row", "kind", "off"], rows, "llr"),
        "Rows that were left out. Those that are means under load count as misses for whoever asks how such "
        "a mean is predicted: it is not.",
        table(["row", "why"], left_out),
    ]
