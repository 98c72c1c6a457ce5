"""The questions of a plan with their answers, in a few words and in whole sentences."""

import math
from collections.abc import Sequence

from kvcalc.output.fields import text
from kvcalc.output.format import human
from kvcalc.output.page import Style
from kvcalc.output.pages.offload import verdict
from kvcalc.output.pages.plan import flip_crossing, flip_input, flip_then
from kvcalc.output.sentences import Words, distance, in_words
from kvcalc.records import record
from kvcalc.results import Flip, Offload, PlanResult

_TIGHT = 0.9  # use of a budget from which it is shown as tight
_WAYS = {"prefix_store": "restore from", "active_working_set": "stream from"}


@record
class Badge:
    """A verdict in a few words, on one thing of several."""

    name: str
    text: str
    style: Style


@record
class Card:
    """One question: the answer at a glance, then what it rests on."""

    key: str
    question: str
    answer: str
    style: Style
    lines: tuple[str, ...]
    badges: tuple[Badge, ...] = ()


def cards(result: PlanResult) -> tuple[Card, ...]:
    """Return the verdicts in the order in which they are asked for."""
    said = in_words(result)
    return (
        Card("fit", "Does it fit?", _fit(result), "good" if result.fits else "bad", said.fit),
        Card("limit", "What limits it first?", _limit(result), _limit_style(result), (said.first_limit,)),
        Card("offload", "Is offload worth it?", *_offload(result, said)),
        Card("eviction", "What does losing a sequence cost?", _eviction(result), "", (said.eviction,)),
        Card("flips", "What would change the answer?", _nearest(result.flips), "", _sentences(said.flips)),
    )


def _fit(result: PlanResult) -> str:
    sessions, asked = result.capacity.sessions, int(result.inputs["concurrency"])
    if result.fits:
        return f"Yes: {human(sessions, '1')} fit, {human(asked, '1')} asked"
    return f"No: {human(sessions, '1')} of {human(asked, '1')} fit"


def _limit(result: PlanResult) -> str:
    words = {"capacity": "Memory capacity", "bandwidth": "Memory bandwidth", "tie": "Both alike"}
    limit = result.first_limit
    budget = result.bandwidth if limit == "bandwidth" else result.capacity
    use = float(budget.utilization)
    return f"{words[limit]}: {text(budget, 'utilization')}" if math.isfinite(use) else words[limit]


def _limit_style(result: PlanResult) -> Style:
    use = max(float(result.capacity.utilization), float(result.bandwidth.utilization))
    return "bad" if use > 1 else "warn" if use > _TIGHT else "good"


def _offload(result: PlanResult, said: Words) -> tuple[str, Style, tuple[str, ...], tuple[Badge, ...]]:
    rows = [item for item in result.offload if item.mode == "prefix_store"]
    lines = tuple(line for line in (*said.restores, said.streaming) if line)
    return (
        *_worth(rows),
        lines,
        tuple(badge(item) for item in sorted(result.offload, key=lambda item: item.mode, reverse=True)),
    )


def badge(item: Offload) -> Badge:
    """Return the verdict on one tier in one mode."""
    found = verdict(item)
    return Badge(f"{_WAYS[item.mode]} {item.tier}", found.text, found.style)


def _worth(rows: Sequence[Offload]) -> tuple[str, Style]:
    if not rows:
        return "Nothing to restore", ""
    adding = [item for item in rows if not item.adds_nothing]
    if not adding:
        nothing = [item.tier for item in rows]
        return f"No: {_list(nothing)} {'adds' if len(nothing) == 1 else 'add'} nothing", "bad"
    worth = [item.tier for item in adding if item.verdict == "restore"]
    if len(worth) == len(rows):
        return f"Yes, from {_list(worth)}", "good"
    if worth:
        return f"Only from {_list(worth)}", "good"
    close = [item.tier for item in adding if item.verdict == "too_close"]
    return (f"Too close to call for {_list(close)}", "warn") if close else ("No, recompute", "bad")


def _eviction(result: PlanResult) -> str:
    eviction = result.eviction
    if eviction.cheapest_mode == "recompute" or eviction.swap_time is None:
        return f"{text(eviction, 'recompute_time')} to recompute it"
    return f"{text(eviction, 'swap_time')} to swap it"


def _nearest(flips: Sequence[Flip]) -> str:
    """Return the flip that asks for the least change: input, value and what then holds.

    Where the load does not fit, what makes it fit comes before all else.
    """
    reached = [flip for flip in flips if math.isfinite(distance(flip))]
    wanted = [flip for flip in reached if flip.verdict == "fits"] or reached
    near = min(wanted, key=distance, default=None)
    if near is None:
        return "Nothing near"
    return f"{flip_input(near)}, {flip_crossing(near)}: {flip_then(near)}"


def _sentences(clauses: Sequence[str]) -> tuple[str, ...]:
    found = tuple(f"{clause[:1].upper()}{clause[1:]}." for clause in clauses)
    return found or ("No change of one input was found that would turn an answer.",)


def _list(items: Sequence[str]) -> str:
    *first, last = items
    return f"{', '.join(first)} and {last}" if first else last
