"""What is said of a tier in words: its mechanism, kind, socket and store policy."""

from typing import Any

from kvcalc.errors import SettingsError, did_you_mean
from kvcalc.keys import TIER_UNITS, TIER_WORDS
from kvcalc.scenario import TierUse

_UNSAID = {name: getattr(TierUse("", 0.0), name) for name in (*TIER_UNITS, *TIER_WORDS)}


def tier_word(key: str, word: str) -> str | bool:
    """Read one word of a tier.

    Raises
    ------
    SettingsError
        If the word is not valid for the key; the error says which are.
    """
    choices = TIER_WORDS[key] or _known(key)
    if word not in choices:
        hint = did_you_mean(word, list(choices)) or f"; valid are {', '.join(choices)}"
        raise SettingsError(f"{key} {word!r} is not known{hint}")
    return word == "true" if "true" in choices else word


def _known(key: str) -> tuple[str, ...]:
    from kvcalc.tiers import mechanisms, tier_kinds

    return tuple(mechanisms() if key == "mechanism" else tier_kinds())


def said_of_tier(tier: TierUse) -> dict[str, Any]:
    """Return what was said of a tier, in base units: all that differs from an unsaid one."""
    return {name: getattr(tier, name) for name, unsaid in _UNSAID.items() if getattr(tier, name) != unsaid}
