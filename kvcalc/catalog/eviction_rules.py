"""A `kv_eviction` file -> `Rules`, in the exact shape that users already write.

    kv_eviction:
      preempt_mode: recompute            # or swap, tail, queue
      victim_order: [completed_not_released, short_low_remaining, long_stalled]
      protect:
        - near_completion: remaining < 512
        - high_priority_tenant
      cooldown: 30 s
      fallback: queue_new_request

A class of `victim_order` or a rule of `protect` may state its own limits, as `near_completion` does:
``short_low_remaining: done < 4096, remaining < 2048``, ``long_stalled: done >= 16384, idle >= 10 s``,
``high_priority_tenant: priority > 0``.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from kvcalc.documents import Section, read, to_quantity
from kvcalc.errors import KvcalcError, ProfileError, did_you_mean
from kvcalc.eviction.rules import (
    CLASSES,
    COMPLETED,
    HIGH_PRIORITY,
    MODES,
    NEAR_COMPLETION,
    PROTECTIONS,
    QUEUE_NEW,
    SHORT,
    STALLED,
    Rules,
)
from kvcalc.units import to_tokens

_KEYS = ("preempt_mode", "victim_order", "protect", "cooldown", "fallback")
_CONDITION = re.compile(r"\s*(\w+)\s*(<=|>=|<|>|=+)\s*(.+?)\s*")


@dataclass(frozen=True, slots=True)
class _Limit:
    """One condition that a class or rule may state: what it compares, how, and which field it sets."""

    word: str
    sign: str
    field: str
    unit: str  # token, second or 1


_LIMITS: Mapping[str, tuple[_Limit, ...]] = MappingProxyType(
    {
        COMPLETED: (),
        SHORT: (_Limit("done", "<", "short", "token"), _Limit("remaining", "<", "low_remaining", "token")),
        STALLED: (_Limit("done", ">=", "long", "token"), _Limit("idle", ">=", "stalled", "second")),
        NEAR_COMPLETION: (_Limit("remaining", "<", "near_completion", "token"),),
        HIGH_PRIORITY: (_Limit("priority", ">", "high_priority", "1"),),
    }
)


def read_rules(path: str) -> Rules:
    """Read a rules file; unknown words are refused by name.

    Raises
    ------
    ProfileError
        If a key, class, rule, mode, fallback or condition is unknown, or a limit cannot be read.
    """
    whole = Section.of(read(Path(path).expanduser()), path)
    whole.check(("kv_eviction",))
    return rules_of(whole.section("kv_eviction"))


def rules_of(section: Section) -> Rules:
    """Return the rules that a section states; what it leaves out has its default."""
    section.check((), _KEYS)
    values: dict[str, Any] = {}
    words: dict[str, tuple[str, ...]] = {"preempt_mode": MODES, "fallback": (QUEUE_NEW,)}
    lists: dict[str, tuple[str, ...]] = {"victim_order": CLASSES, "protect": PROTECTIONS}
    for key, known in words.items():
        if key in section:
            values[key] = _word(section, key, section.data[key], known)
    for key, known in lists.items():
        if key in section:
            values |= _named(section, key, known)
    if "cooldown" in section:
        values["cooldown"] = _positive(
            to_quantity(section.data["cooldown"], "second", section.where("cooldown")),
            section.where("cooldown"),
        )
    return Rules(**values)


def _named(section: Section, key: str, known: tuple[str, ...]) -> dict[str, Any]:
    """Read a list of words, some of which state limits."""
    names: list[str] = []
    values: dict[str, Any] = {}
    for item in section.items(key):
        word, conditions = item, None
        if isinstance(item, Mapping):
            if len(item) != 1:
                raise ProfileError(f"{section.where(key)}: write one name and its limits an item")
            word, conditions = next(iter(item.items()))
        name = _word(section, key, word, known)
        if name in names:
            raise ProfileError(f"{section.where(key)}: {name} is there twice")
        names.append(name)
        if conditions is not None:
            values |= _limits(conditions, name, f"{section.where(key)}: {name}")
    return {key: tuple(names), **values}


def _limits(text: Any, name: str, where: str) -> dict[str, float]:  # noqa: ANN401 - as parsed
    """Read conditions such as ``done < 4096, remaining < 2048``."""
    known = _LIMITS[name]
    shape = ", ".join(f"{limit.word} {limit.sign} NUMBER" for limit in known) or "no condition"
    if not isinstance(text, str):
        raise ProfileError(f"{where}: expected {shape}, not {text!r:.60}")
    found: dict[str, float] = {}
    for part in re.split(r",|\band\b", text):
        match = _CONDITION.fullmatch(part)
        words = {limit.word: limit for limit in known}
        limit = words.get(match[1]) if match else None
        if match is None or limit is None or match[2] != limit.sign:
            raise ProfileError(f"{where}: {part.strip()!r:.60} is not understood; write {shape}")
        found[limit.field] = _value(match[3], limit, where)
    return found


def _value(text: str, limit: _Limit, where: str) -> float:
    try:
        if limit.unit == "token":
            return _positive(float(to_tokens(text.removesuffix("tokens").strip())), where)
        return to_quantity(text, limit.unit, where)
    except KvcalcError as error:
        message = str(error)
        raise ProfileError(message if message.startswith(where) else f"{where}: {message}") from None


def _positive(value: float, where: str) -> float:
    if value < 0:
        raise ProfileError(f"{where}: {value:g} is below zero")
    return value


def _word(section: Section, key: str, word: Any, known: tuple[str, ...]) -> str:  # noqa: ANN401 - as parsed
    if not isinstance(word, str) or word not in known:
        raise ProfileError(f"{section.where(key)}: unknown word {word!r:.60}{did_you_mean(str(word), known)}")
    return word
