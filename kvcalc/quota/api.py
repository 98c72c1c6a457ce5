"""The quota commands as functions: a ledger and what is asked in, a result out."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from kvcalc.api import question_of
from kvcalc.api import scenario as scenario_of
from kvcalc.catalog.scenarios import Question, given_tiers
from kvcalc.documents import to_quantity
from kvcalc.errors import ProfileError, SettingsError, UnitError, did_you_mean
from kvcalc.planning.notebook import Call, Notebook
from kvcalc.quota.charging import RULES, check_rule
from kvcalc.quota.document import of_document, read_ledger
from kvcalc.quota.fixed import Allowed
from kvcalc.quota.ledger import Ledger
from kvcalc.quota.rates import RATIO, Given, rates_of
from kvcalc.quota.reclaim import Request, reclaim
from kvcalc.quota.results import QuotaReclaimResult, QuotaShowResult
from kvcalc.quota.show import show

Said = float | str | None
"""A number in the base unit, a text with a unit, or nothing."""

Source = str | Path | Mapping[str, Any]
"""A ledger: its path, or what its YAML or JSON would say."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What `kvcalc quota reclaim` was asked; None where nothing was said."""

    tenant: str | None
    bytes: Said = None
    to_quota: bool = False
    everything: bool = False
    rule: str = RULES[0]
    allowed: Allowed = field(default_factory=Allowed)
    keep: int | str | None = None
    request: int | str | None = None
    arrivals: Said = None
    bandwidth: Said = None
    setup: Said = None
    prefill_rate: Said = None
    step_time: Said = None
    ratio: Said = None


def quota_show(ledger: Source, *, rule: str = RULES[0]) -> QuotaShowResult:
    """Answer who holds what of a KV pool, as `kvcalc quota show` does.

    Parameters
    ----------
    ledger : its path, or a mapping with what its YAML would say
    rule : how shared blocks are charged: fractional, owner or full
    """
    return show_file(ledger, rule)[0]


def quota_reclaim(
    ledger: Source,
    tenant: str,
    *,
    model: str | None = None,
    on: str | None = None,
    tiers: Mapping[str, Mapping[str, Any]] | None = None,
    set: Mapping[str, str] | None = None,
    compress: bool = True,
    evict_tail: bool = False,
    preempt: bool = False,
    **said: Any,  # noqa: ANN401 - any field of `Asked`
) -> QuotaReclaimResult:
    """Answer how to get bytes back from a tenant, as `kvcalc quota reclaim` does.

    Parameters
    ----------
    ledger : its path, or a mapping with what its YAML would say
    tenant : whose blocks go
    model, on, tiers, set : what the prices are by, as for `kvcalc.plan`
    compress, evict_tail, preempt : what a plan may do
    said : `bytes`, `to_quota` or `everything`, and any further field of `Asked`, as text with a unit
        or as a number in base units
    """
    known = [item.name for item in fields(Asked) if item.name not in ("tenant", "allowed")]
    if unknown := sorted(said.keys() - known):
        raise SettingsError(f"{unknown[0]}: unknown argument{did_you_mean(unknown[0], known)}")
    allowed = Allowed(compress=compress, evict_tail=evict_tail, preempt=preempt)
    asked = Asked(tenant=tenant, allowed=allowed, **said)
    return reclaim_file(ledger, asked, question_of(model, on, tiers=tiers, set=set))[0]


def show_file(ledger: Source, rule: str = RULES[0]) -> tuple[QuotaShowResult, tuple[Call, ...]]:
    """Answer who holds what in a ledger, together with the formulas as they were called."""
    return show(_read(ledger), check_rule(rule))


def reclaim_file(
    source: Source, asked: Asked, question: Question
) -> tuple[QuotaReclaimResult, Ledger, tuple[Call, ...]]:
    """Answer how to get bytes back from a tenant of a ledger, with the ledger after the plan."""
    if asked.tenant is None:
        raise SettingsError("--tenant: missing; name the tenant to get bytes back from")
    given = Given(
        bandwidth=_positive(asked.bandwidth, "byte/second", "--bandwidth"),
        setup=_quantity(asked.setup, "second", "--setup"),
        prefill_rate=_positive(asked.prefill_rate, "token/second", "--prefill-rate"),
        step_time=_positive(asked.step_time, "second", "--step-time"),
    )
    request = Request(
        tenant=asked.tenant,
        size=_quantity(asked.bytes, "byte", "--bytes"),
        to_quota=asked.to_quota,
        everything=asked.everything,
        rule=check_rule(asked.rule),
        allowed=replace(asked.allowed, keep_tokens=_tokens(asked.keep, "--keep") or 0),
        waiting_tokens=_tokens(asked.request, "--request"),
        arrivals=_quantity(asked.arrivals, "1/second", "--arrivals"),
    )
    ratio = _ratio(asked.ratio)
    ledger, book = _read(source), Notebook()
    if (question.model is None) != (question.hardware is None):
        raise SettingsError("--model: prices by model need both, --model and --on")
    scenario = scenario_of(question) if question.model is not None else None
    rates = rates_of(given, ledger, scenario, given_tiers(question), book, ratio)
    return reclaim(ledger, request, rates, book)


def _read(source: Source) -> Ledger:
    return of_document(source, "ledger") if isinstance(source, Mapping) else read_ledger(source)


def _ratio(text: Said) -> float:
    if text is None:
        return RATIO
    try:
        ratio = float(text)
    except ValueError:
        ratio = 0.0
    if not 1 < ratio < 1000:
        raise SettingsError(f"--compress-ratio: expected a number above 1, such as 2, not {text!r}")
    return ratio


def _quantity(text: Said, unit: str, option: str) -> float | None:
    if text is None:
        return None
    if not isinstance(text, (int, float, str)) or isinstance(text, bool):
        raise SettingsError(f"{option}: expected a text with a unit or a number, got {text!r:.60}")
    try:
        value = to_quantity(text, unit, option) if isinstance(text, str) else float(text)
    except ProfileError as error:
        raise SettingsError(str(error)) from None
    if not math.isfinite(value):
        raise SettingsError(f"{option}: {text!r} is not finite")
    if value < 0:
        raise SettingsError(f"{option}: {text!r} is negative")
    return value


def _positive(text: Said, unit: str, option: str) -> float | None:
    value = _quantity(text, unit, option)
    if value == 0:
        raise SettingsError(f"{option}: must be above zero")
    return value


def _tokens(text: int | str | None, option: str) -> int | None:
    from kvcalc.units import to_tokens

    if text is None:
        return None
    try:
        return to_tokens(str(text))
    except UnitError as error:
        raise SettingsError(f"{option}: {error}") from None
