"""Figures from one or two scrapes; what a scrape does not have is named, never taken for zero."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kvcalc.diagnose.names import (
    BY_SOURCE,
    COUNTERS,
    ENGINES,
    GAUGES,
    HISTOGRAMS,
    LOADED_SECONDS,
    LOADED_TOKENS,
    OLD_LOAD_TIME,
    OLD_LOADS,
    Name,
)
from kvcalc.diagnose.results import Figure
from kvcalc.diagnose.scrape import Scrape
from kvcalc.errors import ProfileError
from kvcalc.formulas.eviction import recomputed_share

SECOND_SCRAPE = "a rate needs a second scrape"
LIVE = "live requests alone; cached blocks that nobody uses count as free, so it is no fill of the cache"
ESTIMATED = "estimated: preemptions times the mean length, as engines do not count what they throw away"


@dataclass(slots=True)
class Readings:
    """What scrapes say, quantity by quantity; filled once and then only looked at."""

    scrapes: Sequence[Scrape]  # one, or an earlier and a later one
    seconds: float | None  # between two
    figures: dict[str, Figure] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    counted: Mapping[str, "Count | None"] = field(default_factory=dict)

    @property
    def last(self) -> Scrape:
        """The scrape that says how things are."""
        return self.scrapes[-1]

    def value(self, name: str) -> float | None:
        """Return a figure's number, None where it is missing."""
        found = self.figures.get(name)
        return None if found is None else float(found.value)

    def say(self, name: str, value: float, unit: str, source: str, note: str = "") -> None:
        """Note a figure; one that overflowed is none."""
        if not math.isfinite(value):
            self.lack(name, f"{source} is no number")
            return
        self.figures[name] = Figure(name, value, unit, source, note)

    def lack(self, name: str, why: str) -> None:
        """Note what is not there."""
        self.missing[name] = why


def readings_of(scrapes: Sequence[Scrape], seconds: float | None) -> Readings:
    """Return every figure that the scrapes hold."""
    found = Readings(scrapes, seconds)
    _gauges(found)
    counted = {name: _counted(found, names) for name, names in COUNTERS.items()}
    if counted["load_bytes"] is None:
        counted["load_bytes"] = _counted(found, (OLD_LOADS,))
        counted["load_seconds"] = _counted(found, (OLD_LOAD_TIME,))
    found.counted = counted
    _rates(found, counted)
    _shares(found, counted)
    _by_source(found, counted)
    _lengths(found, counted)
    _recomputed(found, counted)
    _percentiles(found)
    return found


def engines_of(scrapes: Sequence[Scrape]) -> tuple[str, ...]:
    """Return whose metrics these are."""
    names = [name for scrape in scrapes for name in scrape.samples]
    return tuple(engine for start, engine in ENGINES.items() if any(name.startswith(start) for name in names))


@dataclass(frozen=True, slots=True)
class Count:
    """How far a counter went: between two scrapes, or since the engine started."""

    value: float
    source: str


def _gauges(found: Readings) -> None:
    for name, names in GAUGES.items():
        metric = next((item.metric for item in names if item.metric in found.last.samples), None)
        value = found.last.highest(metric) if metric else None
        unit = "1"
        if value is None or metric is None:
            if name in ("usage", "running", "waiting"):
                found.lack(name, "none of " + ", ".join(item.metric for item in names))
        elif not (math.isfinite(value) and value >= 0 and (name in ("running", "waiting") or value <= 1)):
            found.lack(name, f"{metric} is {value:g}, which is no share of 0 to 1")
        else:
            found.say(name, value, unit, metric, LIVE if name == "usage" else "")


def _counted(found: Readings, names: Sequence[Name]) -> Count | None:
    """Return how far the first counter of these went that every scrape has."""
    for item in names:
        for metric in (item.metric, f"{item.metric}_total"):
            totals = [scrape.total(metric, item.labels) for scrape in found.scrapes]
            known = [total for total in totals if total is not None]
            if len(known) < len(totals):
                continue
            change = known[-1] - known[0] if len(known) == 2 else known[0]
            if change < 0:
                raise ProfileError(
                    f"{found.last.source}: {metric} went down from {known[0]:g} to {known[-1]:g}: the engine "
                    "was restarted in between, or the scrapes are in the wrong order"
                )
            if math.isfinite(change):
                return Count(change, metric)
    return None


def _rates(found: Readings, counted: Mapping[str, Count | None]) -> None:
    for name, unit in (("preemptions", "1/second"), ("generated_tokens", "token/second")):
        count, shown = counted[name], f"{name}_per_second"
        if count is None:
            found.lack(shown, "none of " + ", ".join(item.metric for item in COUNTERS[name]))
        elif found.seconds is None:
            found.lack(shown, SECOND_SCRAPE)
        else:
            found.say(shown, count.value / found.seconds, unit, count.source)
    if (preemptions := counted["preemptions"]) is not None:
        found.say("preemptions", preemptions.value, "1", preemptions.source)


def _shares(found: Readings, counted: Mapping[str, Count | None]) -> None:
    for name in ("prefix", "external"):
        hits, queries = counted[f"{name}_hits"], counted[f"{name}_queries"]
        if hits is None or queries is None:
            found.lack(f"{name}_hit_rate", "none of " + ", ".join(i.metric for i in COUNTERS[f"{name}_hits"]))
        elif queries.value == 0:
            found.lack(f"{name}_hit_rate", f"{queries.source} did not move")
        else:
            share = hits.value / queries.value
            found.say(f"{name}_hit_rate", share, "1", f"{hits.source} / {queries.source}")
    size, time = counted["load_bytes"], counted["load_seconds"]
    if size is not None and time is not None and time.value > 0:
        rate = size.value / time.value
        found.say("load_bandwidth", rate, "byte/second", f"{size.source} / {time.source}")
    else:
        found.lack("load_bandwidth", "no loads from a tier: vllm:kv_offload_load_bytes and _time")


def _by_source(found: Readings, counted: Mapping[str, Count | None]) -> None:
    """Say which share of the prompt tokens had its KV from which source."""
    for metric, label in BY_SOURCE:
        names = {
            sample.labels.get(label, "")
            for shown in (metric, f"{metric}_total")
            for sample in found.last.samples.get(shown, ())
        }
        counts = {name: _counted(found, (Name(metric, {label: name}),)) for name in sorted(names) if name}
        known = {name: count.value for name, count in counts.items() if count is not None}
        prompt = counted["prompt_tokens"] if metric.startswith("sglang:") else None
        whole = sum(known.values()) if prompt is None else prompt.value
        if whole > 0:
            for name, value in known.items():
                found.say(f"from_{name}_share", value / whole, "1", f"{metric}{{{label}={name}}}")
    tokens, seconds = _counted(found, (LOADED_TOKENS,)), _counted(found, (LOADED_SECONDS,))
    if tokens is not None and seconds is not None and seconds.value > 0:
        rate = tokens.value / seconds.value
        found.say("load_tokens_per_second", rate, "token/second", f"{tokens.source} / {seconds.source}")


def _lengths(found: Readings, counted: Mapping[str, Count | None]) -> None:
    """Say the mean length: of prompts and answers as histograms have it, else of all finished requests."""
    parts, sources = [], []
    for name in ("prompt_length", "generated_length"):
        for item in HISTOGRAMS[name]:
            total = _counted(found, (Name(f"{item.metric}_sum"),))
            number = _counted(found, (Name(f"{item.metric}_count"),))
            if total is not None and number is not None and number.value > 0:
                parts.append(total.value / number.value)
                sources.append(item.metric)
                break
    if len(parts) == 2:
        found.say("mean_length", sum(parts), "token", " + ".join(sources))
        return
    finished, prompt, generated = (counted[n] for n in ("finished", "prompt_tokens", "generated_tokens"))
    if finished is None or prompt is None or generated is None or finished.value <= 0:
        found.lack("mean_length", "none of " + ", ".join(item.metric for item in HISTOGRAMS["prompt_length"]))
        return
    source = f"({prompt.source} + {generated.source}) / {finished.source}"
    found.say("mean_length", (prompt.value + generated.value) / finished.value, "token", source)


def _recomputed(found: Readings, counted: Mapping[str, Count | None]) -> None:
    """Say the recomputed share: as SGLang counts it, else estimated."""
    computed, useful = counted["prefill_computed"], counted["prefill_effective"]
    prompt, generated = counted["prompt_tokens"], counted["generated_tokens"]
    if computed is not None and useful is not None and generated is not None:
        again = max(0.0, computed.value - useful.value)
        new = useful.value + generated.value
        if again + new > 0:
            source = f"{computed.source} - {useful.source}"
            found.say("recomputed_share", float(recomputed_share(again, new)), "1", source)
            return
    preemptions, length = counted["preemptions"], found.value("mean_length")
    if preemptions is None or prompt is None or generated is None or length is None:
        found.lack("recomputed_share", "needs preemptions, prompt and generated tokens and the mean length")
        return
    again, new = preemptions.value * length, prompt.value + generated.value
    if again + new > 0:
        share = float(recomputed_share(again, new))
        found.say("recomputed_share", share, "1", preemptions.source, ESTIMATED)
    else:
        found.lack("recomputed_share", "no token was computed")


def _percentiles(found: Readings) -> None:
    for name in ("ttft", "itl", "total"):
        for share, shown in ((0.5, "p50"), (0.99, "p99")):
            value = _percentile(found, HISTOGRAMS[name], share)
            if value is not None:
                found.say(f"{name}_{shown}", value[0], "second", value[1])
    repeated = _above(found, HISTOGRAMS["request_preemptions"], 1.0)
    if repeated is not None:
        found.say("repeat_share", repeated[0], "1", repeated[1])


def _buckets(found: Readings, names: Sequence[Name]) -> tuple[list[tuple[float, float]], str] | None:
    """Return (upper bound, count up to it) of the first histogram that every scrape has."""
    for item in names:
        metric = f"{item.metric}_bucket"
        tables = [_table(scrape, metric) for scrape in found.scrapes]
        if all(tables):
            change = {
                bound: count - (tables[0].get(bound, 0.0) if len(tables) == 2 else 0.0)
                for bound, count in tables[-1].items()
            }
            return sorted(change.items()), item.metric
    return None


def _table(scrape: Scrape, metric: str) -> dict[float, float]:
    found: dict[float, float] = {}
    for sample in scrape.samples.get(metric, ()):
        try:
            bound = float(sample.labels["le"])
        except (KeyError, ValueError):
            continue
        found[bound] = found.get(bound, 0.0) + sample.value
    return found


def _percentile(found: Readings, names: Sequence[Name], share: float) -> tuple[float, str] | None:
    """Return the upper bound of the bucket that a percentile lies in."""
    table = _buckets(found, names)
    if table is None or table[0][-1][1] <= 0:
        return None
    rows, metric = table
    bound = next((bound for bound, count in rows if count >= share * rows[-1][1]), math.inf)
    return (bound, metric) if math.isfinite(bound) else None


def _above(found: Readings, names: Sequence[Name], limit: float) -> tuple[float, str] | None:
    """Return the share of those that were preempted who were so more than `limit` times."""
    table = _buckets(found, names)
    if table is None:
        return None
    rows, metric = table
    whole = rows[-1][1]
    none = next((count for bound, count in rows if bound >= 0), whole)
    once = next((count for bound, count in rows if bound >= limit), whole)
    return ((whole - once) / (whole - none), metric) if whole > none else None
