"""A plan in words: what an engineer would say after reading all of its numbers.

Every sentence states the numbers it rests on; none computes more than a difference or a share of them.
"""

import math

from kvcalc.output.fields import text
from kvcalc.output.format import events_text, human, significant
from kvcalc.records import record
from kvcalc.results import Flip, Offload, PlanResult

_LIMITS = {"capacity": "memory capacity", "bandwidth": "memory bandwidth"}
_MOST_FLIPS = 3
_LEAST_TIMES = 1.01


@record
class Words:
    """The sentences of a plan by the question that they answer; some have nothing to say."""

    fit: tuple[str, ...]
    first_limit: str
    restores: tuple[str, ...]  # one a tier, or why there is nothing to restore
    streaming: str  # of what does not fit, from the tier that is best at it
    flips: tuple[str, ...]  # clauses, the nearest first
    eviction: str
    assumed: str
    calibration: str = ""  # what measuring the machine has changed

    @property
    def nearest(self) -> str:
        """The nearest flips as one sentence; empty where there are none."""
        clauses = "; ".join(self.flips[:_MOST_FLIPS])
        return f"{clauses[:1].upper()}{clauses[1:]}." if clauses else ""


def in_words(result: PlanResult) -> Words:
    """Return what a plan says, by question."""
    return Words(
        fit=tuple(said for said in (_fit(result), _what_would_fit(result)) if said),
        first_limit=_first_limit(result),
        restores=tuple(_restores(result)),
        streaming=_streaming(result),
        flips=tuple(_flips(result)),
        eviction=_eviction(result),
        assumed=_assumed(result),
        calibration=_calibrated(result),
    )


def sentences(result: PlanResult) -> tuple[str, ...]:
    """Return the verdict in words: fit, first limit, tiers, flips, cost of an eviction, assumptions."""
    said = in_words(result)
    found = (
        *said.fit,
        said.first_limit,
        *said.restores,
        said.streaming,
        said.nearest,
        said.eviction,
        said.calibration,
        said.assumed,
    )
    return tuple(sentence for sentence in found if sentence)


def _no_kv_memory(result: PlanResult) -> bool:
    return float(result.memory.kv_pool) <= 0


def _count(number: float, noun: str) -> str:
    """Return a count with its noun.

    >>> _count(1, "sequence"), _count(97, "sequence")
    ('1 sequence', '97 sequences')
    """
    return f"{human(number, '1')} {noun}" + ("" if number == 1 else "s")


def _asked(result: PlanResult) -> str:
    asked = _count(int(result.inputs["concurrency"]), "sequence")
    return f"{asked} of {text(result.kv, 'tokens')}" + ("" if asked.startswith("1 ") else " each")


def _fit(result: PlanResult) -> str:
    capacity, memory, asked = result.capacity, result.memory, int(result.inputs["concurrency"])
    sessions = float(capacity.sessions)
    need = f"{_asked(result)} {'needs' if asked == 1 else 'need'} {text(capacity, 'need')} of KV on each GPU"
    if _no_kv_memory(result):
        weights, total = text(memory, "weights"), text(memory, "total")
        if float(memory.weights) > float(memory.total):
            return f"It does not fit: the weights alone take {weights} of the {total} that each GPU has."
        return (
            f"It does not fit: the weights take {weights} of the {total} that each GPU has, and what the "
            "engine keeps besides leaves nothing for KV."
        )
    budget = f"the {text(capacity, 'budget')} left for it"
    if result.fits:
        spare = sessions - asked
        more = f"{human(spare, '1')} more than asked" if spare > 0 else "no more"
        used = text(capacity, "utilization")
        return f"It fits: {need}, {used} of {budget}; there is room for {human(sessions, '1')}, {more}."
    room = f"there is room for {human(sessions, '1')}" if sessions else "not even one fits"
    return f"It does not fit: {need}, {text(capacity, 'shortfall')} more than {budget}; {room}."


def _what_would_fit(result: PlanResult) -> str:
    if result.fits:
        return ""
    if _no_kv_memory(result):
        return (
            f"More GPUs or narrower weights (--weights-dtype) would make room; {_asked(result)} would then "
            f"need {text(result.capacity, 'need')} of KV, divided as the weights are now."
        )
    ways = []
    for flip in result.flips:
        if flip.verdict != "fits":
            continue
        if isinstance(flip.at, str):
            ways.append(f"with {flip.key} {flip.at}")
        elif flip.unit == "token":
            ways.append(f"with no more than {human(flip.at, flip.unit)} in each")
        else:
            ways.append(f"with no more than {_count(flip.at, 'sequence')} at once")
    if not ways:
        return f"It would fit with {text(result.capacity, 'need')} of KV memory on each GPU."
    return f"It would fit {' or '.join(ways)}."


def _first_limit(result: PlanResult) -> str:
    bandwidth = result.bandwidth
    target = text(bandwidth, "target_tokens_per_second")
    share = f"decoding {target} takes {text(bandwidth, 'utilization')} of the memory bandwidth"
    short = float(bandwidth.utilization) > 1
    if _no_kv_memory(result):
        return f"Memory capacity is the first limit, since none is left for KV; {share}."
    reached = f", so it would reach {text(result.decode, 'tokens_per_second')}" if short else ""
    used = f"{text(result.capacity, 'utilization')} of the KV memory is needed"
    if result.first_limit == "tie":
        return f"Memory capacity and bandwidth limit it alike: {used}, and {share}{reached}."
    name = _LIMITS[result.first_limit].capitalize()
    if result.first_limit == "capacity":
        return f"{name} is the first limit as load grows: {used}, while {share}{reached}."
    return f"{name} is the first limit as load grows: {share}{reached}, while {used}."


def _restores(result: PlanResult) -> list[str]:
    """Return one sentence a tier; where there is nothing to restore, why, unless something is streamed."""
    stops = [check for check in result.config_checks if check.stops_hits]
    if stops:
        named = _list(list(dict.fromkeys(check.id for check in stops)))
        return [f"As it is launched nothing can hit in a slower tier ({named}): every prompt is computed."]
    said = [_restore(item, result) for item in result.offload if item.mode == "prefix_store"]
    return said if result.offload else [nothing_to_restore(result)]


def _streaming(result: PlanResult) -> str:
    streamed = [item for item in result.offload if item.mode == "active_working_set"]
    if not streamed or _no_kv_memory(result):
        return ""
    return _stream(min(streamed, key=lambda item: float(item.transfer)))


def _restore(item: Offload, result: PlanResult) -> str:
    if item.adds_nothing:
        return f"{item.tier} adds nothing: {item.adds_nothing_reason}. No restore from it is counted."
    hidden = item.overlapped_total is not None
    total = text(item, "overlapped_total" if hidden else "cached_total")
    size = f"{text(item, 'bytes')} into each GPU"
    window = result.inputs.get("window")
    if hidden and window is None:
        size += ", layer by layer under the prefill"
    elif hidden:
        size += f", up to {human(window, 'second')} of it under other work"
    if not math.isfinite(float(item.overlapped_total if hidden else item.cached_total)):  # type: ignore[arg-type]
        return (
            f"Restores from {item.tier} ({size}) would wait without end, and without them a prompt is ready "
            f"after {text(item, 'recompute')}: restoring never pays; {_break_even(item, hidden)}."
        )
    return (
        f"With a hit restored from {item.tier} ({size}) a prompt is ready after {total}, without it after "
        f"{text(item, 'recompute')}: {_comparison(item, 'restoring')}; {_break_even(item, hidden)}."
    )


def _stream(item: Offload) -> str:
    streamed = f"Streaming the {text(item, 'bytes')} that do not fit from {item.tier} in every decode step"
    step = text(item, "overlapped_total")
    if not math.isfinite(float(item.recompute)):
        return (
            f"{streamed} makes a step last {step}; not one sequence fits without it, so there is nothing to "
            "compare with."
        )
    return (
        f"{streamed} makes a step last {step}, against {text(item, 'recompute')} when sequences take turns: "
        f"{_comparison(item, 'streaming')}; {_break_even(item, hidden=False)}."
    )


def _comparison(item: Offload, what: str) -> str:
    factor = float(item.speedup)
    if not math.isfinite(factor) or factor <= 0:
        return f"{what} takes no time" if factor > 0 else f"{what} never pays"
    faster = factor >= 1
    multiple, side = factor if faster else 1 / factor, "faster" if faster else "slower"
    times = f"{significant(multiple)} times {side}" if multiple >= _LEAST_TIMES else f"less than 1 % {side}"
    if item.verdict == "too_close":
        return f"{what} would be {times}, which is too close to call"
    return f"{what} is {times}"


def _break_even(item: Offload, hidden: bool) -> str:
    """Return where the bandwidth stands to the break-even."""
    if item.break_even_bandwidth is None:
        return f"no bandwidth would break even, since {item.reason}"
    now, point = text(item, "bandwidth"), text(item, "break_even_bandwidth")
    side = "above" if float(item.bandwidth) > float(item.break_even_bandwidth) else "below"
    return f"{now} is {side} the break-even of {point}{' with that overlap' if hidden else ''}"


def nothing_to_restore(result: PlanResult) -> str:
    """Return why no prefix is restored."""
    inputs, block = result.inputs, result.memory.block_tokens or 1
    prompt, cached = inputs.get("prompt"), inputs.get("cached")
    if cached == 0:
        return "No prompt tokens hit, so there is nothing to restore."
    if prompt is not None and min(prompt if cached is None else cached, prompt - 1) < block:
        return f"The hit is less than one block of {human(block, 'token')}, so there is nothing to restore."
    return "CPU and GPU share one memory, so there is no slower tier to restore from; --tier names one."


def _flips(result: PlanResult) -> list[str]:
    """Return the flips from the nearest on, at most one of each kind: fit, first limit, a tier's verdict."""
    if _no_kv_memory(result):
        return []
    told: dict[str, tuple[float, str]] = {}
    for flip in result.flips:
        kind = flip.verdict.split(":")[0]
        clause = _clause(flip)
        if clause and (kind not in told or distance(flip) < told[kind][0]):
            told[kind] = (distance(flip), clause)
    return [clause for _, clause in sorted(told.values())]


def distance(flip: Flip) -> float:
    """Return by how large a factor a value must change for its flip."""
    if isinstance(flip.value, str) or isinstance(flip.at, str) or flip.value <= 0 or flip.at <= 0:
        return math.inf
    return abs(math.log(flip.at / flip.value))


def _clause(flip: Flip) -> str:
    """Return a flip as a condition and what follows; what would make it fit is said elsewhere."""
    if isinstance(flip.at, str) or isinstance(flip.value, str):
        return ""
    at, side = human(flip.at, flip.unit), "less" if flip.at < flip.value else "more"
    if flip.verdict == "does not fit":
        noun = "tokens in each sequence" if flip.unit == "token" else "sequences at once"
        return f"with {human(flip.at, '1')} or more {noun} it would no longer fit"
    if flip.key == "tokens per second":
        limit = _LIMITS[flip.verdict.removeprefix("first limit: ")]
        return f"if it had to decode {side} than {at}, {limit} would be the first limit"
    if flip.verdict not in ("restore", "recompute"):
        return ""
    restoring = flip.verdict == "restore"
    if flip.tier and flip.unit == "byte/second":
        wins = "restoring" if restoring else "recomputing"
        return f"if {flip.tier} gave {side} than {at}, {wins} would be faster"
    wins = f"restoring from {flip.tier} would be faster"
    if not restoring:
        wins = f"recomputing would be faster than restoring from {flip.tier}"
    if flip.key == "cached":
        return f"if no more than {at} hit, {wins}"
    if flip.key == "prefill_efficiency":
        return f"if prefill reached {side} than {human(flip.at, '1', share=True)} of the dense peak, {wins}"
    return ""


def _eviction(result: PlanResult) -> str:
    eviction = result.eviction
    tokens, again = text(eviction, "recompute_tokens"), text(eviction, "recompute_time")
    stop = f"above {events_text(float(eviction.thrash_evictions_per_second), 'eviction')}, stop admitting"
    if eviction.swap_time is None:
        return f"Losing a running sequence costs {again} to recompute its {tokens}; {stop}."
    swap = text(eviction, "swap_time")
    first, second = (
        f"{swap} to swap it out{swap_place(result)} and back",
        f"{again} to recompute its {tokens}",
    )
    if eviction.cheapest_mode == "recompute":
        first, second = second, first
    return f"Losing a running sequence costs {first}, against {second}; {stop}."


def swap_place(result: PlanResult) -> str:
    """Return the tier that a running sequence would be swapped to: the one that brings it back fastest."""
    stored = [item for item in result.offload if item.mode == "prefix_store" and not item.adds_nothing]
    if not stored:
        return ""
    return f" to {max(stored, key=lambda item: float(item.bandwidth)).tier}"


def _assumed(result: PlanResult) -> str:
    """Return the values that nobody has measured, and what the user left open that decides an answer."""
    sources = {name: source.as_printed for name, source in result.sources.items() if source.kind == "assumed"}
    values = [f"{_named(name)} ({printed})" if printed else _named(name) for name, printed in sources.items()]
    groups = ((values, "not measured"), (_left_open(result), "not given"))
    parts = [f"{_list(items)} {'was' if len(items) == 1 else 'were'} {why}" for items, why in groups if items]
    return f"What is assumed: {'; '.join(parts)}." if parts else "No value that this rests on is assumed."


def _calibrated(result: PlanResult) -> str:
    """Return what measuring this machine has changed."""
    found = result.calibration
    if found is None:
        return ""
    links = [item for item in found.values if item.key == "host_to_device.bandwidth"]
    told = [
        f"its host link reaches {human(item.measured, item.unit)} instead of {human(item.before, item.unit)}"
        for item in links
        if item.before is not None
    ]
    return f"This machine was measured: {'; '.join([*told, found.reason])}."


def _list(items: list[str]) -> str:
    """Return items as a list in words.

    >>> _list(["a"]), _list(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    *first, last = items
    return f"{', '.join(first)} and {last}" if first else last


def _named(key: str) -> str:
    return "the model's shape" if key == "model" else key


def _left_open(result: PlanResult) -> list[str]:
    inputs, found = result.inputs, []
    if inputs.get("rate", 0) is None:
        each = float(result.bandwidth.target_tokens_per_second) / int(inputs["concurrency"])
        found.append(f"{human(each, 'token/second')} for each sequence (--rate)")
    if result.offload and inputs.get("cached", 0) is None:
        found.append("a hit of the whole prompt (--hit)")
    if result.offload and inputs.get("tiers", True) == {}:
        found.append("host DRAM as the slower tier (--tier)")
    return found
