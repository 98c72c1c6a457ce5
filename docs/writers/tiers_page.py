"""docs/tiers.md: what can be said of a slower tier, the kinds of tier, and the ways to move bytes."""

from collections.abc import Iterator

from docs.writers.markdown import code, codes, document, escape, prose, table
from kvcalc.catalog.ranges import DISTRIBUTIONS
from kvcalc.keys import TIER_HELP, TIER_UNITS, TIER_WORDS
from kvcalc.output.format import human
from kvcalc.tiers import Figure, Mechanism, Rates, TierKind, mechanisms, tier_kinds

FIGURES = {
    "latency": ("of one operation", "second"),
    "iops": ("operations a second of one drive", "1/second"),
    "drive_bandwidth": ("what one drive reads", "byte/second"),
    "queue_depth": ("operations in flight that the device takes", "1"),
    "streams": ("operations in flight that one request keeps", "1"),
    "write_share": ("of the read bandwidth", "1"),
    "drive_writes": ("of its capacity a day", "1"),
    "remote_share": ("of the bandwidth from the other socket", "1"),
}
"""Figures of a kind -> meaning and unit; its price has a note in words."""

RATES = {
    "per_piece": ("for each piece", "second"),
    "streams": ("pieces in flight", "1"),
    "share": ("of the link that endless pieces reach", "1"),
    "limit": ("at most into one GPU", "byte/second"),
    "host_limit": ("at most into all GPUs of a host", "byte/second"),
    "fixed": ("once for each restore", "second"),
    "first": ("more for the first restore between two servers", "second"),
}


_SGLANG = "https://github.com/sgl-project/sglang/blob/"

_DISTRIBUTIONS = [
    [code(f"{{{name}: {DISTRIBUTIONS[name]}}}"), means]
    for name, means in (
        ("normal", "mean and standard deviation, both with a unit"),
        ("lognormal", "median with a unit, and sigma of the natural logarithm"),
        ("uniform", "lowest and highest value, both with a unit"),
    )
]


def page() -> str:
    """Return the page."""
    return document(
        "Slower tiers",
        "`kvcalc/keys.py`, `kvcalc/tiers/kinds.json` and `kvcalc/tiers/mechanisms.json`",
        '`--tier "NAME=CAPACITY@BANDWIDTH,KEY=VALUE,..."` and `tiers:` of a scenario file take these keys. '
        "What is not said is taken from the kind of the tier, which its name tells or `kind` says, and from "
        "the mechanism that moves its bytes, the engine's own unless `mechanism` names another.",
        table(["key", "unit or words", "meaning"], list(_keys())),
        "## Ranges and distributions",
        "Each number of a tier, and every quantity, share and count of prompt tokens of a question, may be a "
        "range `LOW..HIGH` such as `40..54 GB/s`, that holds it nine times out of ten, or a distribution, of "
        "which the range is the central 90 %; `--draws` draws from it with a fixed seed (`--seed`). Files "
        "and the library take a distribution as it stands here, options take the same as text: "
        '`--tier "nvme=4 TB@{lognormal: [6 GB/s, 0.3]}"`. Values of a profile (`--set`) take ranges.',
        table(["distribution", "two numbers"], _DISTRIBUTIONS),
        "## Kinds",
        "A restore waits for the latency of its first operation on a drive or a network, unless the "
        "mechanism states a cost of its own for that. Pieces of a known size are limited by the operations "
        "in flight (Little's law) and by those of the drives a second. The price is that of `--curve hit` "
        "and `--curve interval` where none is said; give your own, since prices date quickly.",
        table(["kind", "names", "shared", "figures"], [_kind(kind) for kind in tier_kinds().values()]),
        "## Tiers that add nothing",
        "A tier that stores what the GPUs hold at once (write-through), and no more of it than they hold, "
        "serves no hit that they do not serve, and one that cannot hold a restored prefix serves none: "
        "`adds_nothing` of its row is true and `adds_nothing_reason` says why. `verdict` and `speedup` still "
        "compare one restore from it with computing; the fleet, the best tier of a sweep or a frame, what a "
        "running sequence is swapped to and the flips leave it out.",
        "## Mechanisms",
        "Fitted figures are those of `benchmarks/fit_offload.py`; [accuracy.md](accuracy.md) has how far "
        "they hold. The first row of a mechanism holds for machines that no other row names.",
        table(["mechanism", "moves", "reads", "piece", "on", "figures"], list(_mechanisms())),
        "SGLang's HiCache copies with its kernel by default ([fields/memory.py]"
        f"({_SGLANG}09eaaf15de2b273855a0f9855cd267fe073daf79/python/sglang/srt/arg_groups/fields/memory.py))"
        ", and directly with `--hicache-io-backend direct` or the layout `page_first_direct` "
        "([hicache_hook.py]"
        f"({_SGLANG}03ac438ac26f42a737e861ca64d0cd2fdce26a5e/python/sglang/srt/arg_groups/hicache_hook.py)): "
        "one copy for each page, layer, and keys or values ([transfer.cu]"
        f"({_SGLANG}7f1f5bc113cea04dc96cdec553455d73879df04d/sgl-kernel/csrc/kvcacheio/transfer.cu)).",
        "## Sources of mechanisms",
        table(["mechanism", "sources"], [[code(name), _sources(one)] for name, one in mechanisms().items()]),
    )


def _keys() -> Iterator[list[str]]:
    for name, unit in TIER_UNITS.items():
        yield [code(name), code(unit), prose(TIER_HELP[name])]
    for name, words in TIER_WORDS.items():
        yield [code(name), codes(words), prose(TIER_HELP[name])]


def _kind(kind: TierKind) -> list[str]:
    told = [
        f"{name.replace('_', ' ')} {human(figure.value, unit)} {means} ({figure.kind})"
        for name, (means, unit) in FIGURES.items()
        if (figure := getattr(kind, name)) is not None
    ]
    if kind.price is not None:
        told.append(f"price {kind.price.note} ({kind.price.kind})")
    return [code(kind.name), codes(kind.called), escape(kind.shared), escape("; ".join(told))]


def _mechanisms() -> Iterator[list[str]]:
    for name, found in mechanisms().items():
        rows: dict[str, Rates] = {"": found.general}
        for machine, rates in found.special.items():
            same = next((on for on, other in rows.items() if on and other == rates), None)
            if same is not None:
                rows[f"{same}, {machine}"] = rows.pop(same)
            else:
                rows[machine] = rates
        for machines, rates in rows.items():
            first = machines == ""
            yield [
                code(name) if first else "",
                escape(found.title) if first else "",
                codes(found.tiers) if first else "",
                _piece(found) if first else "",
                escape(machines),
                escape(_told(rates)),
            ]


def _piece(found: Mechanism) -> str:
    if found.chunk_tokens is not None:
        return f"{found.chunk_tokens} tokens"
    return found.piece if found.slice_bytes is None else human(found.slice_bytes, "byte")


def _told(rates: Rates) -> str:
    told = [
        f"{human(figure.value, unit)} {means} ({figure.kind})"
        for name, (means, unit) in RATES.items()
        if (figure := getattr(rates, name)) is not None
    ]
    return "; ".join(told) or "no limit or cost of its own"


def _sources(found: Mechanism) -> str:
    figures: list[Figure | None] = [
        getattr(rates, name) for rates in (found.general, *found.special.values()) for name in RATES
    ]
    return escape(", ".join(dict.fromkeys(figure.source for figure in figures if figure is not None)))
