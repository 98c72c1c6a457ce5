"""What single policies take beside the trace."""

from collections.abc import Mapping
from dataclasses import field

from kvcalc.eviction.rules import Rules
from kvcalc.records import record

COST_DOUBLES_AT = 30_600.0
"""Tokens before it at which computing a token costs twice as much as at the start [token].  Linear
layers take 2 N flop a token, attention 4 L h d p at position p: 2 * 8.03e9 / (4 * 32 * 32 * 128) of
Llama 3.1 8B."""


@record
class Options:
    """Defaults are those of the command line."""

    rules: Rules = Rules()
    priorities: Mapping[str, float] = field(default_factory=dict)  # by tenant; 0 for the others
    cost_doubles_at: float = COST_DOUBLES_AT


USUAL = Options()
"""What policies take where nothing is said."""
