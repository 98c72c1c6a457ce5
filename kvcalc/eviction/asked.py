"""What both answers of `kvcalc evict` read from a question: single values, speed models, tiers."""

import math

from kvcalc.catalog.scenarios import Question, given_tiers, read_value
from kvcalc.engines import lay_out
from kvcalc.eviction.tactics import Host
from kvcalc.keys import key
from kvcalc.planning.notebook import Notebook
from kvcalc.planning.speed import Speed, speed_of
from kvcalc.scenario import Scenario, TierUse


def said_number(question: Question, name: str) -> float | None:
    """Return a number that the question gives, in base units; None where it does not."""
    found: float | None = read_value(key(name), question.said[name]) if name in question.said else None
    return found


def models_of(asked: Scenario, book: Notebook) -> Speed:
    """Return the layout and the speed models of a scenario."""
    return speed_of(asked, lay_out(asked.model.shape, asked.settings), book)


def hosts_of(question: Question, asked: Scenario | None) -> tuple[tuple[str, Host], ...]:
    """Return the tiers that victims may be swapped to; the way out is no faster than the link."""
    link = math.inf if asked is None else asked.hardware.device_to_host.bandwidth
    return tuple((tier.name, _host(tier, link)) for tier in given_tiers(question))


def _host(tier: TierUse, link: float) -> Host:
    return Host(
        out=min(tier.bandwidth, link),
        back=tier.bandwidth,
        capacity=math.inf if tier.capacity is None else tier.capacity,
        setup=tier.setup or 0.0,
    )
