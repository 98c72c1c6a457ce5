"""What a user typed, wrote or passed -> a `Scenario` in base units.

Three doors, one reader: options of the command line and values of a scenario file are text with
units, arguments of `kvcalc.plan(...)` may also be numbers in base units.
"""

import math
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from kvcalc.catalog.load import read_serving, read_workload
from kvcalc.catalog.said import Question, Said, tier_option
from kvcalc.catalog.tier_words import said_of_tier, tier_word
from kvcalc.engines.settings import EngineSettings
from kvcalc.errors import KvcalcError, SettingsError, UnitError, did_you_mean
from kvcalc.keys import KEYS, TIER_UNITS, Key
from kvcalc.model import Model
from kvcalc.profiles import Hardware
from kvcalc.results import Source
from kvcalc.scenario import SEED, Overrides, Scenario, Serving, TierUse, Workload

__all__ = [
    "Question",
    "Said",
    "build",
    "engine_settings",
    "given_tiers",
    "positive",
    "quantity",
    "read_value",
    "refuse_model_keys",
    "restore_values",
    "tier_of",
    "tier_option",
]

_MAY_BE_ZERO = frozenset(
    {
        *(
            "queue",
            "setup",
            "convert",
            "sync",
            "window",
            "remaining",
            "hit",
            "cached",
            "spec_tokens",
            "price",
        ),
        "hit_rate",
        *("lora", "images", "image_tokens", "host_reserve", "acceptance", "gpu_layers", "draws", "seed"),
    }
)
MOST_DRAWS = 10_000_000
"""Draws of a Monte Carlo simulation at most [1]: chosen; 30 million took 10 s, and a billion did
not fit a machine of 23 GB."""
_MOST = 10**12  # no count or number of tokens is larger; beyond, bytes are no longer exact in a float


def build(question: Question, model: Model, hardware: Hardware, draft: Model | None = None) -> Scenario:
    """Join what was said with a model, its draft and a machine into a scenario in base units."""
    values = {name: read_value(_key(name), said) for name, said in question.said.items()}
    settings, gpus = _settings(values, hardware)
    overrides = _overrides(values)
    workload = read_workload(values, question.said)
    if settings.max_len is None:
        settings = replace(settings, max_len=workload.prompt + workload.generate)
    tiers = given_tiers(question)
    serving = read_serving(values, settings, hardware, model.shape.layers)
    return Scenario(
        model=model if draft is None else model.with_draft(draft),
        hardware=hardware,
        gpus=gpus,
        settings=settings,
        workload=workload,
        tiers=tiers,
        overrides=overrides,
        serving=serving,
        draft=draft,
        inputs=_inputs(question, gpus, settings, workload, tiers, overrides) | _served(serving),
        given=frozenset(values) | {"tiers" for _ in tiers[:1]},
        draws=values.get("draws", 0),
        seed=values.get("seed", SEED),
    )


def restore_values(question: Question) -> tuple[Overrides, float | None, float | None]:
    """Return the overrides, the bytes and the remaining prefill that `kvcalc restore` was given."""
    values = {name: read_value(_key(name), said) for name, said in question.said.items()}
    overrides = _overrides(values)
    return overrides, values.get("bytes"), values.get("remaining")


def refuse_model_keys(question: Question) -> None:
    """Refuse what only a model can make use of beside bare numbers, where it would be lost unseen.

    Raises
    ------
    SettingsError
        If the question says such a key.
    """
    usable = {*_names(Overrides), "bytes", "remaining", "draws", "seed"}
    for name, said in question.said.items():
        if name not in usable:
            raise SettingsError(f"{said.where}: bare numbers have no use for it; name MODEL and --on as well")


def _overrides(values: Mapping[str, Any]) -> Overrides:
    chosen = {name: values[name] for name in _names(Overrides) if name in values}
    paces = [_key(name).option for name in ("calibrate", "prefill", "prefill_rate") if name in chosen]
    if len(paces) > 1:
        raise SettingsError(f"{paces[0]} and {paces[1]} both say how fast prefill is")
    if "calibrate" in chosen:
        from kvcalc.catalog.measurements import read_points

        chosen["calibrate"] = read_points(chosen["calibrate"])
    return Overrides(**chosen)


def given_tiers(question: Question) -> tuple[TierUse, ...]:
    """Return the tiers that the question names, in base units."""
    tiers = tuple(tier_of(name, said) for name, said in question.tiers.items())
    for tier in tiers:
        _check_hops(tier, {other.name: other for other in tiers}, question)
    return tiers


def _check_hops(tier: TierUse, known: Mapping[str, TierUse], question: Question) -> None:
    """Refuse a way through a tier that was not named, or that comes back to where it began."""
    passed, hop = [tier.name], tier
    while hop.via is not None:
        where = question.tiers[hop.name]["via"].where
        if hop.via not in known:
            others = [name for name in known if name not in passed]
            hint = f"; name it as a tier too, for example --tier '{hop.via}=512 GB@54 GB/s'"
            if others:
                hint = did_you_mean(hop.via, others) or f"; named are {', '.join(others)}"
            raise SettingsError(f"{where}: via {hop.via!r} is no tier of this question{hint}")
        if hop.via in passed:
            raise SettingsError(f"{where}: via {hop.via!r} comes back to a tier that was passed before")
        passed.append(hop.via)
        hop = known[hop.via]


def engine_settings(question: Question, capability: float | None = None) -> EngineSettings:
    """Return the engine settings alone, for questions without a machine."""
    values = {name: read_value(_key(name), said) for name, said in question.said.items()}
    if capability is not None:
        values.setdefault("compute_capability", capability)
    for name in ("tp", "pp", "dp"):
        values.setdefault(name, 1)
    return EngineSettings(**_engine_fields(values))


def read_value(key: Key, said: Said) -> Any:  # noqa: ANN401 - int, float, str or bool by the key's kind
    """Read one value by its key's kind; the error names where it stands and what is valid."""
    if said.value is None:
        raise SettingsError(f"{said.where}: empty; give a value or leave the key out")
    try:
        return _READERS[key.kind](key, said)
    except KvcalcError as error:
        raise type(error)(f"{said.where}: {error}") from None


def _text(_: Key, said: Said) -> str:
    if isinstance(said.value, float):  # YAML reads the version 0.10 as the number 0.1
        raise SettingsError(f"{said.value!r} is read as a number; write it in quotes")
    if not isinstance(said.value, (str, int)) or isinstance(said.value, bool):
        raise SettingsError(f"{said.value!r} is not a word")
    return str(said.value).strip()


def _integer(key: Key, said: Said) -> int:
    text = str(said.value).strip()
    if isinstance(said.value, bool) or not (text.isascii() and text.lstrip("+-").isdigit()):
        raise SettingsError(f"{said.value!r} is not a whole number")
    return _in_range(key, int(text))


def _tokens(key: Key, said: Said) -> int:
    from kvcalc.units import to_tokens

    if isinstance(said.value, bool) or (isinstance(said.value, float) and not said.value.is_integer()):
        raise SettingsError(f"{said.value!r} is not a whole number of tokens")
    return _in_range(key, to_tokens(str(said.value).removesuffix(".0")))


def _share(key: Key, said: Said) -> float:
    value = str(said.value).strip()
    share = float(value[:-1]) / 100 if value.endswith("%") and _is_number(value[:-1]) else None
    if share is None:
        if not _is_number(value):
            raise SettingsError(f"{said.value!r} is not a share; write for example 0.6 or 60%")
        share = float(value)
    low = 0.0 if key.name in _MAY_BE_ZERO else 1e-9
    if not low <= share <= 1:
        least = "more than 0 and at most 1" if low else "between 0 and 1"
        raise SettingsError(f"{said.value!r} is not {least}")
    return share


def _real(_: Key, said: Said) -> float:
    return positive(said)


def positive(said: Said) -> float:
    """Read a number above zero that has no unit."""
    if not _is_number(str(said.value)) or float(said.value) <= 0:
        raise SettingsError(f"{said.value!r} is not a positive number")
    return float(said.value)


def _flag(_: Key, said: Said) -> bool:
    words = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
    if isinstance(said.value, bool):
        return said.value
    if str(said.value).lower() in words:
        return words[str(said.value).lower()]
    raise SettingsError(f"{said.value!r} is not true or false")


def _quantity(key: Key, said: Said) -> float:
    return quantity(said, key.unit, key.name in _MAY_BE_ZERO)


def quantity(said: Said, unit: str, zero: bool = False) -> float:
    """Read one quantity: text with a unit, or a base-unit number where numbers are allowed."""
    if isinstance(said.value, (int, float)) and not isinstance(said.value, bool):
        if not said.numbers:
            raise UnitError(f"{said.value!r} has no unit; write it as text with a unit of {unit}")
        value = float(said.value)
    else:
        from kvcalc.units import to_base

        value = to_base(str(said.value), unit)
    if not math.isfinite(value) or value < 0 or (value == 0 and not zero):
        least = "zero or more" if zero else "more than zero"
        raise UnitError(f"{str(said.value)!r} must be {least}")
    return value


_READERS = {
    "text": _text,
    "integer": _integer,
    "tokens": _tokens,
    "share": _share,
    "number": _real,
    "flag": _flag,
    "quantity": _quantity,
}


def _in_range(key: Key, value: int) -> int:
    least = 0 if key.name in _MAY_BE_ZERO else 1
    if value < least:
        raise SettingsError(f"{value} must be {least} or more")
    if key.name == "draws" and value > MOST_DRAWS:
        raise SettingsError(f"{value:,} is too large; at most {MOST_DRAWS:,} fit in memory")
    if value > _MOST:
        raise SettingsError(f"{value} is too large")
    return value


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _settings(values: Mapping[str, Any], hardware: Hardware) -> tuple[EngineSettings, int]:
    # Under DP attention the groups share the tp ranks and are no further GPUs.
    pp, dp = values.get("pp", 1), 1 if values.get("dp_attention") else values.get("dp", 1)
    whole = hardware.node.instance.gpus if hardware.node and "tp" not in values else None
    gpus = values.get("gpus") or whole or values.get("tp", 1) * pp * dp
    tp = values.get("tp", gpus // (pp * dp))
    if tp * pp * dp != gpus:
        raise SettingsError(
            f"gpus {gpus} is not tp*pp*dp = {tp}*{pp}*{dp} = {tp * pp * dp}; leave --gpus or --tp out"
            if "tp" in values
            else f"gpus {gpus} cannot be divided into pp {pp} x dp {dp}"
        )
    capability = hardware.device.compute_capability
    known = {} if capability is None else {"compute_capability": capability}
    return EngineSettings(**_engine_fields({**known, **values, "tp": tp})), gpus


def _engine_fields(values: Mapping[str, Any]) -> dict[str, Any]:
    renamed = {"version": values["engine_version"]} if "engine_version" in values else {}
    return {name: values[name] for name in _names(EngineSettings) if name in values} | renamed


def tier_of(name: str, said: Mapping[str, Said]) -> TierUse:
    """Return one tier in base units."""
    if "bandwidth" not in said:
        raise SettingsError(f"tiers.{name}: bandwidth: missing")
    values: dict[str, Any] = {}
    for key, item in said.items():
        try:
            values[key] = _of_tier(key, item)
        except KvcalcError as error:
            raise type(error)(f"{item.where}: {error}") from None
    source = Source("given", said["bandwidth"].where, str(said["bandwidth"].value))
    return TierUse(name=name, source=source, **values)


def _of_tier(key: str, said: Said) -> float | str | bool:
    if key == "via":
        return str(said.value).strip()
    if key not in TIER_UNITS:
        return tier_word(key, str(said.value).strip().lower())
    if TIER_UNITS[key] == "1":
        return positive(said)
    return quantity(said, TIER_UNITS[key], zero=key in ("setup", "price"))


def _inputs(
    question: Question,
    gpus: int,
    settings: EngineSettings,
    workload: Workload,
    tiers: tuple[TierUse, ...],
    overrides: Overrides,
) -> dict[str, Any]:
    """Return every input, defaults included, in base units."""
    engine = {name: getattr(settings, name) for name in _names(EngineSettings)}
    engine["engine_version"] = engine.pop("version")
    return {
        "model": question.model,
        "on": question.hardware,
        "gpus": gpus,
        **engine,
        **{name: getattr(workload, name) for name in _names(Workload)},
        "prompt": workload.text,
        **{name: getattr(overrides, name) for name in _names(Overrides)},
        "calibrate": overrides.calibrate.file if overrides.calibrate else None,
        "tiers": {tier.name: said_of_tier(tier) for tier in tiers},
        "set": {name: said.value for name, said in question.replaced.items()},
    }


def _served(serving: Serving) -> dict[str, Any]:
    return {name: getattr(serving, name) for name in _names(Serving)}


def _key(name: str) -> Key:
    for item in KEYS:
        if item.name == name:
            return item
    raise SettingsError(f"{name}: unknown{did_you_mean(name, [item.name for item in KEYS])}")


def _names(kind: type) -> list[str]:
    return [item.name for item in fields(kind)]
