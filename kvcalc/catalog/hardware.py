"""Names and paths -> machines, and `--set` on top of them."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from kvcalc.catalog import parts, table
from kvcalc.catalog.paths import given_path, is_path, personal_files
from kvcalc.errors import ProfileError, SettingsError, UnknownProfileError, did_you_mean, nearest
from kvcalc.profiles import Band, Hardware, Instance, Provenance

USER = "user"
"""Source of a value that the user has set; its kind is assumed, since nothing vouches for it."""

EVIDENCE = "kvcalc.probe/"
"""Beginning of the schema of a probe's evidence, which is no machine."""
MANY = 8
"""Names that one message lists at most."""


def names() -> list[str]:
    """Return the names of all machines, built-in and in the folders of $KVCALC_PATH, sorted."""
    return sorted({*table.names(), *personal_files("hardware")})


def load(name_or_path: str) -> Hardware:
    """Return the machine of a name, an alias, a beginning that only one name has, or a file.

    An instance, such as p5.48xlarge, is its accelerator with the instance as its `node`.

    Raises
    ------
    UnknownProfileError
        If no machine has this name, or several might be meant; the message lists them.
    ProfileError
        If the file is malformed.

    Examples
    --------
    >>> load("h100-sxm-80gb").device.compute_capability
    9.0
    >>> load("RTX 4090").name
    'rtx-4090'
    >>> load("p5.48xlarge").node.instance.gpus
    8
    """
    if is_path(name_or_path):
        path = given_path(name_or_path)
        if path is None:
            raise ProfileError(f"{name_or_path:.200}: no such file or directory")
        return _read(path)
    files = personal_files("hardware")
    if name_or_path in files:
        return _read(files[name_or_path])
    wanted = parts.plain_name(name_or_path)
    name = wanted if wanted in table.names() else table.aliases().get(wanted)
    if name is None:
        return _other(name_or_path, wanted)
    return _read(files[name]) if name in files else table.row(name)


def _other(typed: str, wanted: str) -> Hardware:
    """Return the machine of a name that no accelerator has: an instance, or the only one it begins."""
    kind, part = parts.find(typed) or ("", None)
    if isinstance(part, Instance):
        return parts.on_instance(load(part.accelerator), part)
    if part is not None:
        raise UnknownProfileError(
            f"{part.name} is one of the {kind}, not a machine to run on; `kvcalc hardware show {part.name}` "
            "tells all of it"
        )
    known = names()
    spellings = {**table.aliases(), **{name: name for name in known}}
    longer = {name for spelling, name in spellings.items() if spelling.startswith(f"{wanted}-")}
    longer |= set(parts.longer(typed, ("instances",)))
    if len(longer) != 1:
        raise UnknownProfileError(_unknown(typed, wanted, sorted(longer), known))
    return load(longer.pop())


def _read(file: Path) -> Hardware:
    from kvcalc.catalog import part_document
    from kvcalc.catalog.hardware_document import hardware_from_document
    from kvcalc.documents import read

    data = read(file)
    if isinstance(data, Mapping) and str(data.get("schema")).startswith(EVIDENCE):
        raise ProfileError(
            f"{file}: this is the evidence of a probe; give the profile that it wrote, e.g. ./probe.yaml"
        )
    if isinstance(data, Mapping) and data.get("schema") in part_document.KINDS:
        part = part_document.part_from_document(data, str(file))
        if not isinstance(part, Instance):
            raise ProfileError(f"{file}: {part.name} is no machine to run on")
        return parts.on_instance(load(part.accelerator), part)
    return hardware_from_document(data, str(file))


def _some(longer: list[str]) -> str:
    return f"{', '.join(longer[:MANY])} or one of {len(longer) - MANY} more"


def _unknown(typed: str, wanted: str, longer: list[str], known: list[str]) -> str:
    if longer:
        listed = f"{', '.join(longer[:-1])} or {longer[-1]}" if len(longer) <= MANY else _some(longer)
        return f"hardware {typed!r} may be {listed}; say which"
    instances = {typed: name for typed, (kind, name) in parts.index().items() if kind == "instances"}
    aliases = {**table.aliases(), **instances}
    near = nearest(wanted, [*known, *aliases], count=6)
    hits = list(dict.fromkeys(aliases.get(hit, hit) for hit in near))[:3]
    if hits:
        return f"no hardware is named {typed!r:.80}, did you mean {' or '.join(repr(hit) for hit in hits)}?"
    listed = f"`kvcalc hardware list` shows the {len(known)} known, or give a file"
    return f"no hardware is named {typed!r:.80}; {listed}"


def with_values(
    hardware: Hardware, values: Mapping[str, str], places: Mapping[str, str] | None = None
) -> Hardware:
    """Return the machine with values replaced by dotted key, as ``--set KEY=VALUE`` gives them.

    `places` says where each value stands, for the messages of those that are not on the command line.

    Raises
    ------
    SettingsError
        If no value has this key, or its text cannot be read in the value's unit.

    Examples
    --------
    >>> slower = with_values(load("h100-sxm-80gb"), {"host_to_device.bandwidth": "20 GB/s"})
    >>> slower.host_to_device.bandwidth
    20000000000.0
    """
    if not values:
        return hardware
    from kvcalc.catalog.hardware_document import is_band, settable

    units = dict(settable(hardware))
    provenance = dict(hardware.provenance)
    if "prefill_efficiency" in values and hardware.attention_efficiency is not None:
        # A share of the peak that is said for prefill is meant for all of it.
        hardware = dataclasses.replace(hardware, attention_efficiency=None)
        provenance.pop("attention_efficiency", None)
    for key, text in values.items():
        where = (places or {}).get(key, f"--set {key}")
        if key not in units:
            raise SettingsError(f"{where}: {hardware.name} has no such value{did_you_mean(key, list(units))}")
        bounds: tuple[float, float] | None = None
        if is_band(key):
            value: float | Band = (band := _band(text, key, where))
            bounds = band.low, band.high
        else:
            value, bounds = _ranged(text, units[key], key, where)
        before = provenance.get(key)
        note = f"instead of {before.as_printed} ({before.kind})" if before else None
        provenance[key] = Provenance("assumed", USER, text, range=bounds, note=note)
        hardware = _replaced(hardware, key.split("."), value)
    return dataclasses.replace(hardware, provenance=MappingProxyType(provenance))


def _ranged(text: str, unit: str, key: str, where: str) -> tuple[float, tuple[float, float] | None]:
    """Read one value, or the middle and the ends of a range such as ``40..54 GB/s``."""
    from kvcalc.catalog.ranges import ends, in_order

    _no_distribution(text, where)
    both = ends(text, where)
    if both is None:
        return _value(text, unit, key, where), None
    low, high = (_value(end, unit, key, where) for end in both)
    return in_order(low, high, text, where).middle, (low, high)


def _no_distribution(text: str, where: str) -> None:
    from kvcalc.catalog.ranges import written

    if isinstance(written(text), Mapping):
        raise SettingsError(
            f"{where}: a profile value takes a range, LOW..HIGH; the bandwidth of a tier takes a "
            "distribution too: --tier 'NAME=CAPACITY@{lognormal: [MEDIAN, SIGMA]}'"
        )


def _value(text: str, unit: str, key: str, where: str) -> float:
    from kvcalc.catalog.hardware_document import check_value
    from kvcalc.documents import to_quantity

    try:
        return check_value(to_quantity(text, unit, where), key, where)
    except ProfileError as error:
        raise SettingsError(str(error)) from None


def _band(text: str, key: str, where: str) -> Band:
    """Read a share, or a range such as ``0.45..0.65`` whose middle is the value to plan with."""
    _no_distribution(text, where)
    parts = [_value(part.strip(), "1", key, where) for part in str(text).split("..")]
    if len(parts) > 2:
        raise SettingsError(f"{where}: {text!r} is no range; write LOW..HIGH, for example 0.45..0.65")
    low, high = parts[0], parts[-1]
    if low > high:
        raise SettingsError(f"{where}: {low:g} is above {high:g}; write the lower share first")
    return Band(low, (low + high) / 2, high)


def _replaced(part: Any, path: list[str], value: float | Band) -> Any:  # noqa: ANN401 - any level of a profile
    name, *rest = path
    if isinstance(part, Mapping):
        return MappingProxyType({**part, name: value})
    new = _replaced(getattr(part, name), rest, value) if rest else value
    return dataclasses.replace(part, **{name: new})
