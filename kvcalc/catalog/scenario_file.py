"""Scenario files -> a `Question`, with the place of every value."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kvcalc.catalog.scenarios import Question, Said
from kvcalc.errors import ProfileError, did_you_mean
from kvcalc.keys import KEYS, TIER_UNITS, TIER_WORDS

_FILE_KEYS = ("model", "on", "workload", "tiers", "set")


def from_file(path: str) -> Question:
    """Read a scenario file; unknown keys are refused with the nearest valid one."""
    from kvcalc.documents import read

    data = read(Path(path))
    if not isinstance(data, Mapping):
        raise ProfileError(f"{path}: expected keys and values such as 'model: llama-3.1-8b'")
    top = {item.name for item in KEYS if not item.workload}
    known = [*sorted(top), *_FILE_KEYS]
    said: dict[str, Said] = {}
    for name, value in data.items():
        if name not in known:
            raise ProfileError(f"{path}: {name}: unknown key{did_you_mean(str(name), known)}")
        if name in top:
            said[str(name)] = Said(value, f"{path}: {name}")
    inner = [item.name for item in KEYS if item.workload]
    for name, value in _mapping(data.get("workload"), f"{path}: workload").items():
        if name not in inner:
            raise ProfileError(f"{path}: workload.{name}: unknown key{did_you_mean(str(name), inner)}")
        said[str(name)] = Said(value, f"{path}: workload.{name}")
    return Question(
        model=_name(data.get("model"), f"{path}: model"),
        hardware=_name(data.get("on"), f"{path}: on"),
        said=said,
        tiers=file_tiers(data.get("tiers"), path),
        replaced=file_values(data.get("set"), f"{path}: set"),
    )


def file_tiers(data: Any, path: str) -> dict[str, dict[str, Said]]:  # noqa: ANN401 - as parsed
    """Return the tiers that a file names, as said there."""
    tiers: dict[str, dict[str, Said]] = {}
    for name, values in _mapping(data, f"{path}: tiers").items():
        where = f"{path}: tiers.{name}"
        tiers[str(name)] = {}
        for key, value in _mapping(values, where).items():
            if key not in (*TIER_UNITS, *TIER_WORDS):
                raise ProfileError(f"{where}.{key}: unknown key{_no_tier_key(str(key))}")
            tiers[str(name)][str(key)] = Said(value, f"{where}.{key}")
        if "bandwidth" not in tiers[str(name)]:
            raise ProfileError(f"{where}.bandwidth: missing")
    return tiers


def _no_tier_key(name: str) -> str:
    """Return what to do about a key that no tier has: where it belongs, or the nearest one of a tier.

    >>> _no_tier_key("convert"), _no_tier_key("capasity")
    (' of a tier; convert belongs at the top level', ", did you mean 'capacity'?")
    """
    elsewhere = next((item for item in KEYS if item.name == name), None)
    if elsewhere is not None:
        return f" of a tier; {name} belongs " + ("in workload" if elsewhere.workload else "at the top level")
    return did_you_mean(name, [*TIER_UNITS, *TIER_WORDS])


def file_values(data: Any, where: str) -> dict[str, Said]:  # noqa: ANN401 - as parsed
    """Return the profile values that a file replaces, by dotted key."""
    values = {str(name): Said(value, f"{where}.{name}") for name, value in _mapping(data, where).items()}
    for said in values.values():
        if not isinstance(said.value, (str, int, float)):
            example = "'device.bandwidth: 3 TB/s'"
            raise ProfileError(f"{said.where}: expected one value by its dotted key, such as {example}")
    return values


def _mapping(data: Any, where: str) -> Mapping[str, Any]:  # noqa: ANN401 - as parsed
    if data is None:
        return {}
    if not isinstance(data, Mapping):
        raise ProfileError(f"{where}: expected keys and values, got {data!r:.60}")
    return data


def _name(value: Any, where: str) -> str | None:  # noqa: ANN401 - as parsed
    if value is None or isinstance(value, str):
        return value
    raise ProfileError(f"{where}: expected a name or a path, got {value!r:.60}")
