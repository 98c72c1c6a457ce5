"""The quota commands as functions: a ledger's path and what is asked in, a result out."""

from dataclasses import dataclass, field, replace
from pathlib import Path

from kvcalc.api import scenario as scenario_of
from kvcalc.catalog.scenarios import Question, given_tiers
from kvcalc.documents import to_quantity
from kvcalc.errors import ProfileError, SettingsError, UnitError
from kvcalc.planning.notebook import Call, Notebook
from kvcalc.quota.charging import RULES, check_rule
from kvcalc.quota.document import read_ledger
from kvcalc.quota.fixed import Allowed
from kvcalc.quota.ledger import Ledger
from kvcalc.quota.rates import RATIO, Given, rates_of
from kvcalc.quota.reclaim import Request, reclaim
from kvcalc.quota.results import QuotaReclaimResult, QuotaShowResult
from kvcalc.quota.show import show


@dataclass(frozen=True, slots=True)
class Asked:
    """What `kvcalc quota reclaim` was asked, as text; None where nothing was said."""

    tenant: str | None
    bytes: str | None = None
    to_quota: bool = False
    everything: bool = False
    rule: str = RULES[0]
    allowed: Allowed = field(default_factory=Allowed)
    keep: str | None = None
    request: str | None = None
    arrivals: str | None = None
    bandwidth: str | None = None
    setup: str | None = None
    prefill_rate: str | None = None
    step_time: str | None = None
    ratio: str | None = None


def show_file(path: str | Path, rule: str = RULES[0]) -> tuple[QuotaShowResult, tuple[Call, ...]]:
    """Answer who holds what in a ledger file."""
    return show(read_ledger(path), check_rule(rule))


def reclaim_file(
    path: str | Path, asked: Asked, question: Question
) -> tuple[QuotaReclaimResult, Ledger, tuple[Call, ...]]:
    """Answer how to get bytes back from a tenant of a ledger file, with the ledger after the plan."""
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
    ledger, book = read_ledger(path), Notebook()
    if (question.model is None) != (question.hardware is None):
        raise SettingsError("--model: prices by model need both, --model and --on")
    scenario = scenario_of(question) if question.model is not None else None
    rates = rates_of(given, ledger, scenario, given_tiers(question), book, ratio)
    return reclaim(ledger, request, rates, book)


def _ratio(text: str | None) -> float:
    if text is None:
        return RATIO
    try:
        ratio = float(text)
    except ValueError:
        ratio = 0.0
    if not 1 < ratio < 1000:
        raise SettingsError(f"--compress-ratio: expected a number above 1, such as 2, not {text!r}")
    return ratio


def _quantity(text: str | None, unit: str, option: str) -> float | None:
    if text is None:
        return None
    try:
        value = to_quantity(text, unit, option)
    except ProfileError as error:
        raise SettingsError(str(error)) from None
    if value < 0:
        raise SettingsError(f"{option}: {text!r} is negative")
    return value


def _positive(text: str | None, unit: str, option: str) -> float | None:
    value = _quantity(text, unit, option)
    if value == 0:
        raise SettingsError(f"{option}: must be above zero")
    return value


def _tokens(text: str | None, option: str) -> int | None:
    from kvcalc.units import to_tokens

    if text is None:
        return None
    try:
        return to_tokens(text)
    except UnitError as error:
        raise SettingsError(f"{option}: {error}") from None
