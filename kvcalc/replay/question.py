"""The words of a command line -> what a replay is asked; each that cannot be read is named."""

import re
from collections.abc import Mapping

from kvcalc.errors import KvcalcError, SettingsError, UnitError
from kvcalc.records import record
from kvcalc.replay.asked import Asked
from kvcalc.replay.capacities import PerBlock
from kvcalc.replay.options import Options
from kvcalc.replay.semantics import WORDS, Semantics
from kvcalc.replay.tiers import EXCLUSIVE, WRITE_BACK, WRITE_THROUGH
from kvcalc.replay.trace import Trace
from kvcalc.units import to_base, to_tokens


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


def asked_of(words: Words, trace: Trace) -> Asked:
    """Read the words.

    Raises
    ------
    SettingsError
        If one cannot be read; names the option.
    """
    own = Options()
    if words.rules is not None:
        from kvcalc.catalog.eviction_rules import read_rules

        own = Options(rules=read_rules(words.rules))
    sizing = None
    if words.bytes_per_token is not None:
        size = _quantity(words.bytes_per_token, "byte", "--bytes-per-token")
        sizing = PerBlock(size * (trace.block_tokens or 1))
    usual = WRITE_BACK if words.inclusion == EXCLUSIVE else WRITE_THROUGH
    return Asked(
        capacities=words.capacities,
        policies=words.policies,
        semantics=_semantics(words),
        sizing=sizing,
        tiers=tuple(_named(text, "--tier", "dram=512 GB") for text in words.tiers),
        inclusion=words.inclusion,
        write=words.write or usual,
        quota=words.quota,
        shares=_shares(words.tenant_quotas),
        options=own,
        refine=None if words.refine is None else _tokens(words.refine, "--refine"),
        shared_prefix=_tokens(words.shared_prefix, "--shared-prefix"),
        sample=None if words.sample is None else _count(words.sample, "--sample"),
        workers=None if words.workers is None else _count(words.workers, "--workers"),
        scheduler=words.scheduler,
    )


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
