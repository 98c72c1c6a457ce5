"""The block of a plan that shows what a trace hits at its capacities, beside what would have been assumed."""

from kvcalc.output.fields import text
from kvcalc.output.format import human
from kvcalc.output.page import Cell, Grid, grid
from kvcalc.trace_results import BEYOND, NOTHING, HitChoice, TraceHits

_SOURCES = {"trace": "replayed", "said": "as said", "default": "assumed without a trace"}
_ADDS = {
    BEYOND: "{} holds what is faster too, so that its size is not added to theirs",
    NOTHING: "{} holds no more than what is faster, and the same: it adds nothing",
}


def trace_blocks(found: TraceHits | None) -> tuple[Grid, ...]:
    """Return the hits by place, and both choices of what hits; nothing where no trace was given."""
    if found is None:
        return ()
    return _levels(found), _choices(found)


def trace_sentence(found: TraceHits | None) -> tuple[str, ...]:
    """Return the replayed hit rate beside the assumed one in words; nothing where no trace was given."""
    if found is None:
        return ()
    replayed = text(found.replayed, "hit_rate_tokens")
    assumed = text(found.assumed, "hit_rate_tokens")
    most = text(found, "infinite_hit_rate_tokens")
    return (
        f"On {found.trace} these capacities hit {replayed} of the input tokens, where {assumed} would have "
        f"been {'taken as said' if found.assumed.source == 'said' else 'assumed'}; a cache that never "
        f"evicts hits {most}.",
    )


def _levels(found: TraceHits) -> Grid:
    rows: list[tuple[Cell | str, ...]] = [
        (
            level.place,
            "no end" if level.capacity is None else text(level, "capacity"),
            "-" if level.capacity_tokens is None else text(level, "capacity_tokens"),
            text(level, "own_rate_tokens"),
            Cell(text(level, "hit_rate_tokens"), "bold"),
            text(level, "requests_with_hits"),
            text(level, "ttft_mean"),
        )
        for level in found.levels
    ]
    rows.append(("never evicting", "", "", "", text(found, "infinite_hit_rate_tokens"), "", ""))
    header = ("place", "size", "keeps", "hits here", "with faster", "requests hit", "mean TTFT")
    return grid(f"What {found.trace} hits at these capacities", header, "lrrrrrr", rows, _notes(found))


def _notes(found: TraceHits) -> tuple[str, ...]:
    block = "of different sizes" if found.block_tokens is None else f"of {text(found, 'block_tokens')}"
    rate = "" if found.request_rate is None else f" at {text(found, 'request_rate')}"
    told = [_ADDS[level.adds].format(level.place) for level in found.levels if level.adds in _ADDS]
    return (
        f"{text(found, 'requests')} requests{rate}; hits in blocks {block}, as shares of the input tokens; "
        "sizes are of all GPUs of a replica together.",
        f"Mean TTFT without any hit: {text(found, 'ttft_mean_without')}; requests one by one, none waits.",
        *(f"{line[0].upper()}{line[1:]}." for line in told),
    )


def _choices(found: TraceHits) -> Grid:
    rows = [_choice(found.replayed), _choice(found.assumed)]
    header = ("hits", "requests that hit", "share of their prompt", "of all input", "restore or recompute")
    notes = ("The plan goes by the replayed hits.",)
    return grid("Replayed and assumed hits", header, "lrrrl", rows, notes)


def _choice(item: HitChoice) -> tuple[Cell | str, ...]:
    verdicts = "; ".join(one.replace("_", " ") for one in item.verdicts) or "-"
    shares = (human(getattr(item, name), "1", share=True) for name in ("hit_rate", "hit", "hit_rate_tokens"))
    return (_SOURCES[item.source], *shares, verdicts)
