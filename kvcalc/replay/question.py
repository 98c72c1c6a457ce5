"""The words of a command line -> what a replay is asked; each that cannot be read is named."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from kvcalc.catalog.scenarios import Question, Said, tier_option
from kvcalc.errors import KvcalcError, SettingsError, UnitError
from kvcalc.records import record
from kvcalc.replay.asked import Asked, usual_write
from kvcalc.replay.capacities import PerBlock, Sizing
from kvcalc.replay.machine import Machine, machine_of
from kvcalc.replay.options import Options
from kvcalc.replay.refine import refined
from kvcalc.replay.semantics import TIME, WORDS, Semantics
from kvcalc.replay.serving_results import GPU
from kvcalc.replay.stream import in_time
from kvcalc.replay.trace import Trace
from kvcalc.units import to_base, to_tokens
from kvcalc.wording import said_size

MEGABYTE = 1e6
"""To which a machine's own pool is rounded down where it is the capacity [byte]."""


@record
class Words:
    """Options as they were typed; None where an option was not given."""

    capacities: tuple[str, ...]
    policies: tuple[str, ...]
    switches: Mapping[str, str]  # of the semantics, but for the warm-up
    warmup: str
    refine: str | None
    shared_prefix: str
    bytes_per_token: str | None
    tiers: tuple[str, ...]
    inclusion: str
    write: str | None
    quota: str
    tenant_quotas: tuple[str, ...]
    rules: str | None
    sample: str | None
    workers: str | None
    scheduler: str | None


def question_of(
    model: str | None,
    hardware: str | None,
    said: Mapping[str, Said],
    tiers: Sequence[str],
    replaced: Mapping[str, Said],
) -> Question | None:
    """Return what the options say of a model and a machine; None where they name neither."""
    if model is None and hardware is None:
        for text in tiers:
            if "@" in text:
                raise SettingsError(f"--tier {text!r:.60}: a rate is of use with --model and --on alone")
        named = next(iter(said.values()), None)
        if named is not None or replaced:
            where = "--set" if named is None else named.where
            raise SettingsError(f"{where}: needs --model, whose layout or times it is for")
        return None
    rated = dict(tier_option(text) for text in tiers if "@" in text)
    for values in rated.values():
        if "store" in values:
            raise SettingsError(f"{values['store'].where}: a replay takes --write and --inclusion, not store")
    return Question(model, hardware, said, rated, replaced)


def on_machine(question: Question, trace: Trace, words: Words) -> Machine:
    """Return the model, and the machine where one is named, under the load of the trace.

    A trace whose blocks are to be split is split first, so that the engine's blocks are made of finer ones.
    """
    if words.refine is None:
        return machine_of(question, trace, standard=False)
    ordered = in_time(trace) if words.switches["order"] == TIME else trace
    size, prefix = _tokens(words.refine, "--refine"), _tokens(words.shared_prefix, "--shared-prefix")
    found = machine_of(question, refined(ordered, size, prefix), standard=False)
    return replace(found, inputs={"refine": size, "shared_prefix": prefix})


def asked_of(words: Words, trace: Trace, machine: Machine | None = None) -> Asked:
    """Read the words; capacities are those of the machine's own pool where none is said.

    Raises
    ------
    SettingsError
        If one cannot be read; names the option.
    """
    own = Options()
    if words.rules is not None:
        from kvcalc.catalog.eviction_rules import read_rules

        own = Options(rules=read_rules(words.rules))
    sizing: Sizing | None = None
    if words.bytes_per_token is not None:
        # Per token a bare number is bytes, as in `kvcalc evict rank`.
        said = words.bytes_per_token.strip().removesuffix("/token").strip()
        said = f"{said} B" if said.replace(".", "", 1).isdigit() else said
        size = _quantity(said, "byte", "--bytes-per-token")
        block = trace.block_tokens if words.refine is None else _tokens(words.refine, "--refine")
        sizing = PerBlock(size * (block or 1))
    if machine is not None:
        if sizing is not None:
            raise SettingsError("--bytes-per-token: --model says what a token takes; leave one of them out")
        sizing = machine.sizing
    capacities = words.capacities
    if machine is not None and machine.pool is not None and not capacities:
        if machine.pool < machine.sizing.bytes_of(1):
            raise SettingsError(
                f"--on: the KV pool that is left beside the weights has {said_size(machine.pool)}, which "
                "holds no block: the model does not fit; name a larger machine, more GPUs, or a --capacity"
            )
        capacities = (f"{math.floor(machine.pool / MEGABYTE) / 1e3:g} GB",)
    return Asked(
        capacities=capacities,
        fastest=GPU if machine is not None and machine.speed is not None else "cache",
        machine=machine,
        policies=words.policies,
        semantics=_semantics(words),
        sizing=sizing,
        tiers=tuple(_tier(text, machine) for text in words.tiers),
        inclusion=words.inclusion,
        write=words.write or usual_write(words.inclusion),
        quota=words.quota,
        shares=_shares(words.tenant_quotas),
        options=own,
        refine=None if words.refine is None or machine else _tokens(words.refine, "--refine"),
        shared_prefix=_tokens(words.shared_prefix, "--shared-prefix"),
        sample=None if words.sample is None else _count(words.sample, "--sample"),
        workers=None if words.workers is None else _count(words.workers, "--workers"),
        scheduler=words.scheduler,
    )


def _tier(text: str, machine: Machine | None) -> tuple[str, str]:
    """Return name and size of a tier; with a machine its rate must be said as well."""
    name, size = _named(text, "--tier", "dram=512 GB")
    size = size.partition("@")[0].strip()
    if not size:
        raise SettingsError(f"--tier {text!r:.60}: a replay needs its size; write '{name}=512 GB@54 GB/s'")
    if machine is not None and machine.speed is not None and "@" not in text:
        raise SettingsError(f"--tier {text!r:.60}: with --on its rate counts; write '{name}={size}@54 GB/s'")
    return name, size


def _semantics(words: Words) -> Semantics:
    for name, word in words.switches.items():
        if word not in WORDS[name]:
            option = "--" + name.replace("_", "-")
            raise SettingsError(f"{option}: unknown word {word!r:.60}; it is one of {', '.join(WORDS[name])}")
    return Semantics(**words.switches, warmup=_share(words.warmup, "--warmup"))


def _share(text: str, option: str) -> float:
    match = re.fullmatch(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*(%?)\s*", text)
    if match is None:
        raise SettingsError(f"{option}: {text!r:.60} is no share; write for example 0.5 or 50 %")
    return float(match[1]) / (100 if match[2] else 1)


def _shares(texts: tuple[str, ...]) -> dict[str, float]:
    found: dict[str, float] = {}
    for text in texts:
        name, share = _named(text, "--tenant-quota", "a=50 %")
        if name in found:
            raise SettingsError(f"--tenant-quota: {name!r:.60} is given twice")
        found[name] = _share(share, f"--tenant-quota {name}")
    return found


def _named(text: str, option: str, example: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip() or not value.strip():
        raise SettingsError(f"{option} {text!r:.60}: write NAME=SIZE, e.g. '{example}'")
    return name.strip(), value.strip()


def _count(text: str, option: str) -> int:
    if not re.fullmatch(r"\s*\d[\d,_]*\s*", text) or int(text.replace(",", "").replace("_", "")) < 1:
        raise SettingsError(f"{option}: expected a whole number above 0, got {text!r:.60}")
    return int(text.replace(",", "").replace("_", ""))


def _tokens(text: str, option: str) -> int:
    try:
        return to_tokens(text)
    except UnitError as error:
        raise SettingsError(f"{option}: {error}") from None


def _quantity(text: str, unit: str, option: str) -> float:
    try:
        value = to_base(text, unit)
    except KvcalcError as error:
        raise SettingsError(f"{option}: {error}") from None
    if value <= 0:
        raise SettingsError(f"{option}: {text!r:.60} is not above zero")
    return value
