"""What is known, as lists: models, machines, formulas."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import date
from typing import Any

from kvcalc.catalog import hardware as machines
from kvcalc.catalog import models, parts
from kvcalc.catalog.hardware_document import settable, units
from kvcalc.catalog.paths import is_path, personal_files
from kvcalc.catalog.table import PARTS, part, part_names
from kvcalc.documents import dump_yaml
from kvcalc.engines import EngineSettings, lay_out
from kvcalc.errors import SettingsError, UnknownProfileError, did_you_mean, nearest
from kvcalc.explain import explain, names
from kvcalc.profile_results import HardwareResult, HardwareValue, Reference
from kvcalc.profiles import Band, Profile
from kvcalc.results import Source
from kvcalc.tables import Column, Table

_HEAD = frozenset(item.name for item in fields(Profile))


def models_table(text: str = "") -> Table:
    """Return the model profiles whose name contains `text`."""
    columns = (
        Column("name"),
        Column("parameters", "1", large=True),
        Column("active", "1", large=True),
        Column("kv_per_token", "byte/token"),
        Column("kv_constant", "byte"),
        Column("max_tokens", "token"),
        Column("model_type"),
        Column("source"),
    )
    known = models.names()
    found = _containing(text, known)
    more = (
        "Parameters in M (million) and B (billion). KV is one logical copy in the model's own dtype, without "
        "an engine; constant are full windows and states."
    )
    notes = _notes(found, text, known, "models", more, "models")
    rows = tuple(_model_row(name) for name in found)
    return Table("Models", columns, rows, notes, "kvcalc.models/1", is_list=True)


def _model_row(name: str) -> tuple[Any, ...]:
    model = models.load(name)
    layout = lay_out(model.shape, EngineSettings())
    counted = model.parameters
    return (
        name,
        counted.total if counted else None,
        counted.active if counted else None,
        layout.bytes_per_token,
        layout.constant_bytes,
        model.shape.max_tokens,
        model.shape.model_type,
        model.sources["model"].kind if "model" in model.sources else "",
    )


def _containing(text: str, known: Sequence[str]) -> list[str]:
    return [name for name in known if text.lower() in name.lower()]


def _notes(
    found: Sequence[str], text: str, known: Sequence[str], group: str, more: str, things: str
) -> tuple[str, ...]:
    """Return how many names were found and how to see more, or near names where there are none."""
    if not found:
        near = nearest(text, list(known))
        hint = f"did you mean {' or '.join(near)}?" if near else f"`kvcalc {group} list` shows all."
        return (f"None of the {len(known)} known {things} has {text!r} in its name; {hint}",)
    which = f"{len(found)} of {len(known)} {things}" if text else f"{len(found)} {things}"
    return (f"{which}; `kvcalc {group} show NAME` tells all of one.", more)


def model_profile(name: str, new_name: str | None = None) -> str:
    """Return a model as the YAML text of a profile, with its source and today's date."""
    from dataclasses import replace

    model = models.load(name)
    called = new_name or model.name.split("/")[-1].lower()
    model = replace(model, name=called, shape=replace(model.shape, name=called))
    source = model.sources["model"]
    url = f"https://huggingface.co/{model.hub}" if model.hub else ""
    document = models.to_document(
        model,
        title=source.note or source.source,
        url=url,
        retrieved=date.today().isoformat(),
        note=source.source,
    )
    return dump_yaml(document, inline_leaves=True)


HARDWARE_KINDS = ("accelerators", *PARTS)
"""What `kvcalc hardware list --kind` takes."""


def hardware_table(text: str = "", kind: str = "accelerators") -> Table:
    """Return the accelerators, hosts, drives, NICs or instances whose name contains `text`."""
    if kind not in HARDWARE_KINDS:
        raise SettingsError(f"--kind: unknown kind {kind!r}{did_you_mean(kind, HARDWARE_KINDS)}")
    return _accelerators_table(text) if kind == "accelerators" else _parts_table(text, kind)


def _accelerators_table(text: str) -> Table:
    columns = (
        Column("name"),
        Column("memory", "byte"),
        Column("bandwidth", "byte/second"),
        Column("dense_16_bit", "flop/second"),
        Column("host_link", "byte/second"),
        Column("link_kind"),
        Column("title"),
    )
    known = machines.names()
    found = _containing(text, known)
    more = "Memory is what the driver reports; link kind says how the host link's rate is known."
    elsewhere = [f"{_counted(text, kind)} (--kind {kind})" for kind in PARTS if _counted(text, kind)]
    notes = _notes(found, text, known, "hardware", more, "machines")
    if elsewhere:
        notes = (*notes, f"Further {'of this name' if text else 'profiles'}: {', '.join(elsewhere)}.")
    rows = tuple(_machine_row(name) for name in found)
    return Table("Machines", columns, rows, notes, "kvcalc.hardware-list/1", is_list=True)


def _machine_row(name: str) -> tuple[Any, ...]:
    machine = machines.load(name)
    device, link = machine.device, machine.host_to_device
    kind = machine.provenance["host_to_device.bandwidth"].kind
    return name, device.capacity, device.bandwidth, device.peak("bf16"), link.bandwidth, kind, machine.title


def _counted(text: str, kind: str) -> str:
    count = len(_containing(text, part_names(kind)))
    return "" if not count else f"{count} {kind if count > 1 else kind.removesuffix('s')}"


def _parts_table(text: str, kind: str) -> Table:
    """Return one row a part: the fields of its dataclass, with the least trusted kind of value."""
    known = part_names(kind)
    found = _containing(text, known)
    shape: Any = PARTS[kind]
    own = [item.name for item in fields(shape) if item.name not in _HEAD]
    unit = units(shape)
    columns = (Column("name"), *(Column(name, unit.get(name, "")) for name in own), Column("known"))
    rows = []
    for name in found:
        profile = part(kind, name)
        rows.append((name, *(getattr(profile, item) for item in own), _least_trusted(profile)))
    more = "Known tells the least trusted kind of value: nominal, measured, derived or assumed."
    notes = _notes(found, text, known, "hardware", more, kind)
    return Table(kind.capitalize(), columns, tuple(rows), notes, f"kvcalc.{kind}/1", is_list=True)


def _least_trusted(profile: Profile) -> str:
    kinds = {entry.kind for entry in profile.provenance.values()}
    return next(kind for kind in ("assumed", "derived", "nominal", "measured") if kind in kinds)


def part_answer(kind: str, profile: Profile) -> HardwareResult:
    """Return one host, drive, NIC or instance value by value, as `hardware_answer` does a machine."""
    shape: Any = type(profile)
    unit = units(shape)
    texts = {
        item.name: str(getattr(profile, item.name))
        for item in fields(profile)
        if item.name not in (*_HEAD, *unit) and getattr(profile, item.name) is not None
    }
    return HardwareResult(
        inputs={"hardware": profile.name, "set": {}},
        sources=_quoted(profile),
        warnings=(),
        assumptions=(),
        name=profile.name,
        title=profile.title,
        vendor=texts.pop("provider", ""),
        aliases=profile.aliases,
        via=texts,
        unified=False,
        values=tuple(_hardware_value(profile, key, unit[key]) for key in profile.provenance),
        references=_references(profile),
        notes=(profile.note,) if profile.note else (),
        kind=kind,
    )


def hardware_answer(name: str, values: Mapping[str, str] | None = None) -> HardwareResult:
    """Return one machine value by value, with how it is known and from where."""
    named = _part_named(name)
    if named is not None:
        return _without_values(part_answer(*named), values)
    machine = machines.load(name)
    if machine.node is not None:
        return _without_values(part_answer("instances", machine.node.instance), values)
    if values:
        machine = machines.with_values(machine, values)
    unit = dict(settable(machine))
    links = ("host_to_device", "device_to_host", "interconnect")
    carriers = {link: getattr(machine, link).via for link in links if getattr(machine, link) is not None}
    return HardwareResult(
        inputs={"hardware": name, "set": dict(values or {})},
        sources=_quoted(machine),
        warnings=(),
        assumptions=(),
        name=machine.name,
        title=machine.title,
        vendor=machine.vendor,
        aliases=machine.aliases,
        via=carriers,
        unified=machine.device.unified,
        values=tuple(_hardware_value(machine, key, unit[key]) for key in machine.provenance),
        references=_references(machine),
        notes=(machine.note,) if machine.note else (),
    )


def _part_named(name: str) -> tuple[str, Profile] | None:
    """Return kind and profile of a host, drive, NIC or instance, where the name means one."""
    if is_path(name) or name in personal_files("hardware"):
        return None
    begun = parts.longer(name, ("hosts", "drives", "nics"))
    if len(begun) > 1:
        raise UnknownProfileError(f"{name!r} may be {', '.join(begun[:-1])} or {begun[-1]}; say which")
    return parts.find(begun[0] if begun else name)


def _without_values(shown: HardwareResult, values: Mapping[str, str] | None) -> HardwareResult:
    if values:
        raise SettingsError(f"--set: {shown.name} is one of the {shown.kind}; set values of an accelerator")
    return shown


def _quoted(machine: Profile) -> dict[str, Source]:
    return {
        key: Source(found.kind, _place(machine, found.source), found.as_printed, found.note or "")
        for key, found in machine.provenance.items()
    }


def _references(machine: Profile) -> dict[str, Reference]:
    return {
        key: Reference(source.title, source.url, source.retrieved or source.measured)
        for key, source in machine.sources.items()
    }


def _hardware_value(machine: Profile, key: str, unit: str) -> HardwareValue:
    found = machine.provenance[key]
    source = machine.sources.get(found.source)
    return HardwareValue(
        key=key,
        value=_number(machine, key),
        unit=unit,
        as_printed=found.as_printed,
        kind=found.kind,
        source=found.source,
        url=source.url if source else None,
        range=found.range,
        note=found.note or "",
    )


def _number(machine: Profile, key: str) -> float:
    """Return the value at a dotted key in its base unit; of a band the middle."""
    part: Any = machine
    for name in key.split("."):
        part = part[name] if isinstance(part, Mapping) else getattr(part, name)
    return float(part.mid if isinstance(part, Band) else part)


def _place(machine: Profile, key: str) -> str:
    source = machine.sources.get(key)
    return (source.url or source.title) if source else key


def formulas_table() -> Table:
    """Return all formulas with the question that each answers."""
    rows = tuple((name, explain(name).summary, explain(name).equation) for name in names())
    columns = (Column("name"), Column("answers"), Column("equation"))
    return Table("Formulas", columns, rows, ("`kvcalc explain NAME` says more.",), "kvcalc.formulas/1")
