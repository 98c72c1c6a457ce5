"""The part of docs/accuracy.md on restores: errors by kind and row, what was left out, and what to trust."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from docs.writers.markdown import code, escape, table

TABLE = Path(__file__).resolve().parents[1] / "offload_accuracy.json"
NINETIETH = 0.30
"""Within which nine tenths of a kind's rows should be [1]."""

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
    return [
        "## How far to trust the restores",
        "Published restores, predicted whole by the model alone. The constants of mechanisms were fitted on "
        "the odd-numbered rows (`benchmarks/fit_offload.py`); these are the even-numbered ones whose quality "
        "is a table, a text or a digitised figure. *Stated* rows have every input beside their figure. *All* "
        "rows add those that need an input from elsewhere, and count as infinitely wrong those of which no "
        "question can be made.",
        table(_SUMMARY, [_summary(name, kind) for name, kind in found["kinds"].items()], "lrrrrrr"),
        *_verdict(found),
        *_signs(found["signs"]),
        table(["row", "kind", "off", "inputs"], _rows(found), "llrl"),
        "Rows beyond 30 %:",
        table(["row", "why"], [[code(name), escape(why)] for name, why in found["misses"].items()]),
        "Rows that were left out:",
        table(["row", "why"], [[code(name), escape(why)] for name, why in found["left_out"].items()]),
        *_loads(found["loads"], found["possible"]),
        *_checks(found["checks"]),
    ]


_SUMMARY = ["kind", "stated rows", "median", "nine tenths within", "all rows", "median", "nine tenths within"]


def _summary(name: str, kind: Mapping[str, Any]) -> list[str]:
    cells = [TITLES[name]]
    for which in ("stated", "all"):
        one = kind[which]
        last = "no bound" if one["ninetieth"] is None else f"{one['ninetieth']:.1%}"
        cells += [str(one["rows"]), f"{one['median']:.1%}", last]
    return cells


def _verdict(found: Mapping[str, Any]) -> list[str]:
    """Say in words which kinds keep the limits of 15 % and 30 % with all rows."""
    beyond = [
        TITLES[name]
        for name, kind in found["kinds"].items()
        if kind["all"]["ninetieth"] is None or kind["all"]["ninetieth"] > NINETIETH
    ]
    if not beyond:
        return [
            "Every kind keeps a median of 15 % and nine tenths within 30 %, with stated and with all rows."
        ]
    return [
        "With stated rows every kind keeps a median of 15 % and nine tenths within 30 %. With all rows, "
        f"{' and '.join(beyond)} does not."
    ]


RECOMPUTES = {"measured": "as the report measured it", "modelled": "as kvcalc predicts it"}
"""What a predicted restore is compared with, in the signs of the verdicts."""


def _signs(signs: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Say how often the verdict, restore or recompute, has the right sign, and which pairs it gets wrong."""
    rows = [
        [
            RECOMPUTES[name],
            str(one["pairs"]),
            f"{one['pairs'] - len(one['wrong'])} ({1 - len(one['wrong']) / one['pairs']:.1%})",
            f"{one['losing'] - one['wrong_losing']} of {one['losing']}",
        ]
        for name, one in signs.items()
    ]
    wrong = [
        [code(row), RECOMPUTES[name], f"{ratios['measured']:.2f}", f"{ratios['predicted']:.2f}"]
        for name, one in signs.items()
        for row, ratios in one["wrong"].items()
    ]
    one = next(iter(signs.values()))
    always = 1 - one["losing"] / one["pairs"]
    said = [
        "The sign of the verdict, whether restoring is faster or slower than computing again, over all pairs "
        f"that report both times, odd rows and even. Answering *restore* always is right in {always:.1%}"
        " of them, so the pairs in which restoring loses are counted apart.",
        table(["recompute", "pairs", "right", "right where restoring loses"], rows, "lrrr"),
    ]
    if not wrong:
        return [*said, "No pair has the wrong sign."]
    head = ["row", "recompute", "restore over recompute, measured", "predicted"]
    return [*said, "Pairs with the wrong sign:", table(head, wrong, "llrr")]


def _rows(found: Mapping[str, Any]) -> list[list[str]]:
    return [
        [code(row), TITLES[name], f"{error:+.0%}", escape(found["needs"].get(row, "stated"))]
        for name, kind in found["kinds"].items()
        for row, error in kind["errors"].items()
    ]


def _loads(loads: Mapping[str, Mapping[str, Any]], possible: Mapping[str, Any]) -> list[str]:
    """Return the ratios under load by how many requests are in flight, which the source says once."""
    many = [name for name in next(iter(loads.values())) if name.isdigit()]
    rows = [
        [code(name), "odd" if one["odd"] else "even", f"{one['measured']:.2f}"]
        + [f"{one[count]:.2f}" for count in many]
        + [f"{one['most']:.0%}", f"{one['share']:.0%}"]
        for name, one in loads.items()
    ]
    return [
        "Ratios of mean times under load (`benchmarks/load_cases.py`): the report's load generator and the "
        "launch that it links, simulated step by step with kvcalc's costs, nothing fitted. How many requests "
        "are in flight is said for prefixes of 1,000 tokens only, 200; the rows above take that. The last "
        "two columns are the first token's share of a request's time without the tiers: the most that the "
        "report's own table allows, and what 200 in flight make it. Where the latter is more, fewer were in "
        "flight, and the row cannot be predicted from what is stated; in that test (t3) the rate of the "
        f"drives is not stated either. Without those rows the {possible['rows']} even ratios have a median "
        f"error of {possible['median']:.1%}, nine tenths within {possible['ninetieth']:.1%}.",
        table(
            ["row", "", "measured", *(f"{count} in flight" for count in many), "at most", "at 200"],
            rows,
            "llr" + "r" * (len(many) + 2),
        ),
    ]


def _checks(checks: Mapping[str, Mapping[str, float]]) -> list[str]:
    kinds = list(TITLES)
    rows = [[escape(name), *(f"{one[kind]:.1%}" for kind in kinds)] for name, one in checks.items()]
    return [
        "These figures flatter the model, for three choices were made with all rows in view: which stacks "
        "are mechanisms of their own (each revision of llm-d's pulls between servers is one, as its authors "
        "report them apart; two of them rest on one report each, so their constants hold for that stack and "
        "no other), the 3 ms that a hit of few remaining tokens takes, and some priors of the fit. Medians "
        "with other fits and fewer choices (`benchmarks/offload_checks.py`), of stated rows of one request:",
        table(["", *(TITLES[kind] for kind in kinds)], rows, "l" + "r" * len(kinds)),
        "A new stack should be measured, and given with `--setup` and a bandwidth.",
    ]
