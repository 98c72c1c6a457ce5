"""A `simulate.yaml` -> what is simulated: arrivals, policies, and the machine or its bare numbers."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from kvcalc.catalog.arrivals import read_arrivals
from kvcalc.catalog.eviction_rules import read_rules, rules_of
from kvcalc.catalog.scenario_file import file_tiers, file_values
from kvcalc.catalog.scenarios import Question, Said
from kvcalc.catalog.sequences import number, whole
from kvcalc.documents import Section, read, to_quantity
from kvcalc.errors import ProfileError, did_you_mean
from kvcalc.eviction.load import KINDS, Generator, Requests, Spread
from kvcalc.eviction.policies import COST, POLICIES, RULES
from kvcalc.eviction.rules import MODES, NEAR_COMPLETION, UNGUARDED, Rules
from kvcalc.eviction.tactics import KEPT, WATERMARK, Tactic
from kvcalc.keys import KEYS

_OWN = ("arrivals", "policies", "loads", "deadline", "watermark", "kv_eviction", "step", "bytes_per_token")
_ARRIVALS = ("rate", "prompt", "generate", "requests", "seed", "hit", "high_priority", "trace")
_POLICY = ("policy", "name", "mode", "rules", "protect_remaining", "cooldown", "keep")

MOST_REQUESTS = 5_000_000
"""Most requests of one simulation [1]; they are held in memory."""


@dataclass(frozen=True, slots=True)
class SimulationFile:
    """What a file says, with numbers in base units."""

    question: Question  # model, machine and engine
    requests: Requests
    rate: float  # requests per second
    seed: int | None  # None for a trace
    trace: str | None
    tactics: tuple[Tactic, ...]
    loads: tuple[float, ...] | None
    deadline: float | None
    watermark: float
    step: float | None  # seconds of a decode step, instead of the model
    bytes_per_token: float | None  # instead of the model


def read_simulation(path: str, seed: int | None = None, requests: int | None = None) -> SimulationFile:
    """Read a simulation file; `seed` and `requests` replace what it says of them.

    Raises
    ------
    ProfileError
        If a key, policy, mode or distribution is unknown, or a value cannot be read; names it.
    """
    section = Section.of(read(Path(path).expanduser()), path)
    top = [item.name for item in KEYS if not item.workload]
    section.check(("arrivals", "policies"), ("model", "on", "tiers", "set", *top, *_OWN))
    arrivals = section.section("arrivals")
    arrivals.check((), _ARRIVALS)
    trace = _trace_path(arrivals, path) if "trace" in arrivals else None
    generator = None if trace else _generator(arrivals, seed, requests)
    load = read_arrivals(trace) if trace else generator.requests_of() if generator else None
    if load is None:
        raise ProfileError(f"{arrivals.where()}: give rate, prompt, generate and requests, or a trace")
    if trace and requests is not None:
        load = load.first(requests)
    return SimulationFile(
        question=_question(section, path, top, load),
        requests=load,
        rate=generator.rate if generator else load.rate,
        seed=generator.seed if generator else None,
        trace=trace,
        tactics=_tactics(section),
        loads=_loads(section) if "loads" in section else None,
        deadline=_time(section, "deadline") if "deadline" in section else None,
        watermark=_share(section, "watermark") if "watermark" in section else WATERMARK,
        step=_time(section, "step") if "step" in section else None,
        bytes_per_token=to_quantity(
            section.data["bytes_per_token"], "byte/token", section.where("bytes_per_token")
        )
        if "bytes_per_token" in section
        else None,
    )


def _question(section: Section, path: str, top: list[str], load: Requests) -> Question:
    """Return the model, the machine and the engine; the workload is that of the mean request."""
    said = {name: Said(section.data[name], section.where(name)) for name in top if name in section}
    for name, lengths in (("prompt", load.prompt), ("generate", load.generate)):
        said[name] = Said(max(1, round(float(np.mean(lengths)))), section.where("arrivals"), numbers=True)
    return Question(
        model=section.text("model") if "model" in section else None,
        hardware=section.text("on") if "on" in section else None,
        said=said,
        tiers=file_tiers(section.data.get("tiers"), path),
        replaced=file_values(section.data.get("set"), f"{path}: set"),
    )


def _generator(arrivals: Section, seed: int | None, requests: int | None) -> Generator:
    arrivals.check(("rate", "prompt", "generate", "requests"), _ARRIVALS)
    count = whole(arrivals, "requests", least=1) if requests is None else requests
    if count > MOST_REQUESTS:
        raise ProfileError(f"{arrivals.where('requests')}: more than {MOST_REQUESTS:,}")
    rate = arrivals.quantity("rate", "1/second")
    if not (rate > 0 and math.isfinite(rate)):
        raise ProfileError(f"{arrivals.where('rate')}: must be more than zero")
    return Generator(
        rate=rate,
        prompt=_spread(arrivals, "prompt"),
        generate=_spread(arrivals, "generate"),
        requests=count,
        seed=seed if seed is not None else whole(arrivals, "seed") if "seed" in arrivals else 0,
        hit=_share(arrivals, "hit") if "hit" in arrivals else 0.0,
        high_priority=_share(arrivals, "high_priority") if "high_priority" in arrivals else 0.0,
    )


def _spread(arrivals: Section, key: str) -> Spread:
    """Read a length: one number, or a distribution such as ``{lognormal: [2000, 1.0]}``."""
    if not isinstance(arrivals.data[key], Mapping):
        return Spread("constant", (float(whole(arrivals, key, least=1)),))
    section = arrivals.section(key)
    if len(section.data) != 1:
        raise ProfileError(f"{section.where()}: write one distribution, such as {{lognormal: [2000, 1.0]}}")
    kind, given = next(iter(section.data.items()))
    if kind not in KINDS:
        raise ProfileError(f"{section.where(kind)}: unknown distribution{did_you_mean(kind, list(KINDS))}")
    values = given if isinstance(given, list) else [given]
    if len(values) != len(KINDS[kind]):
        raise ProfileError(f"{section.where(kind)}: expected {', '.join(KINDS[kind])}")
    row = Section(
        {f"{kind} {name}": value for name, value in zip(KINDS[kind], values, strict=True)},
        section.file,
        section.path,
    )
    found = tuple(number(row, name) for name in row.data)
    if found[0] < 1 or (kind == "uniform" and found[1] < found[0]):
        raise ProfileError(f"{section.where(kind)}: lengths must be 1 or more, the least one first")
    if max(found) > 1e9:
        raise ProfileError(f"{section.where(kind)}: {max(found):g} is no length of a request")
    return Spread(kind, found)


def _trace_path(arrivals: Section, path: str) -> str:
    for key in arrivals.data:
        if key != "trace":
            raise ProfileError(f"{arrivals.where(key)}: a trace says this itself; leave it out")
    name = Path(arrivals.text("trace")).expanduser()
    beside = Path(path).expanduser().parent / name
    return str(beside if beside.exists() else name)


def _tactics(section: Section) -> tuple[Tactic, ...]:
    rules = rules_of(section.section("kv_eviction")) if "kv_eviction" in section else Rules()
    found: dict[str, Tactic] = {}
    for item in section.items("policies"):
        given = Section.of(item if isinstance(item, Mapping) else {"policy": item}, section.file, "policies")
        tactic = _tactic(given, rules)
        if tactic.name in found:
            raise ProfileError(
                f"{section.where('policies')}: {tactic.name!r:.60} is there twice; give it a name"
            )
        found[tactic.name] = tactic
    if not found:
        raise ProfileError(f"{section.where('policies')}: empty; valid are {', '.join(POLICIES)}")
    return tuple(found.values())


def _tactic(given: Section, rules: Rules) -> Tactic:
    """Read one policy: a name alone runs it as engines do, with nobody protected; `rules` protects."""
    given.check(("policy",), _POLICY)
    policy = given.text("policy")
    if policy not in POLICIES:
        raise ProfileError(
            f"{given.where('policy')}: unknown policy {policy!r:.60}{did_you_mean(policy, POLICIES)}"
        )
    own = read_rules(given.text("rules")) if "rules" in given else rules if policy == RULES else UNGUARDED
    if "protect_remaining" in given:
        least = float(whole(given, "protect_remaining"))
        named = tuple(dict.fromkeys((*own.protect, NEAR_COMPLETION)))
        own = replace(own, protect=named, near_completion=least)
    if "cooldown" in given:
        own = replace(own, cooldown=_time(given, "cooldown"))
    mode = given.text("mode") if "mode" in given else own.preempt_mode
    if mode not in MODES:
        raise ProfileError(f"{given.where('mode')}: unknown mode {mode!r:.60}{did_you_mean(mode, MODES)}")
    if "mode" in given and policy == COST:
        raise ProfileError(f"{given.where('mode')}: the policy cost chooses the cheapest mode itself")
    keep = _share(given, "keep") if "keep" in given else KEPT
    name = given.text("name") if "name" in given else policy
    return Tactic(name=name, policy=policy, mode=mode, rules=own, keep=keep)


def _loads(section: Section) -> tuple[float, ...]:
    factors = []
    for value in section.items("loads"):
        row = Section({"loads": value}, section.file, section.path)
        factor = number(row, "loads")
        if not 0 < factor <= 100:
            raise ProfileError(
                f"{section.where('loads')}: {factor:g} is not a multiple of the rate, such as 1.5"
            )
        factors.append(factor)
    return tuple(factors)


def _time(section: Section, key: str) -> float:
    value = section.quantity(key, "second")
    if not (value >= 0 and math.isfinite(value)):
        raise ProfileError(f"{section.where(key)}: must not be negative")
    return value


def _share(section: Section, key: str) -> float:
    share = number(section, key)
    if share > 1:
        raise ProfileError(f"{section.where(key)}: {share:g} is not between 0 and 1")
    return share
