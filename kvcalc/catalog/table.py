"""The built-in machines and parts as one generated table of base units, without yaml and pint.

``python -m kvcalc.catalog.table`` writes `hardware/table.json` anew.  Each row remembers the
checksum of its YAML file; a row whose file has changed since is read from the file instead, so a
stale table costs time, never a wrong number.
"""

import dataclasses
import json
import zlib
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any

from kvcalc.catalog.paths import builtin
from kvcalc.profiles import (
    Band,
    Device,
    Drive,
    Hardware,
    Host,
    Instance,
    Link,
    Memory,
    Nic,
    Profile,
    Provenance,
    Source,
    Storage,
)

TABLE = "table.json"
SCHEMA = "kvcalc.hardware-table/2"

PARTS: Mapping[str, type[Profile]] = MappingProxyType(
    {"hosts": Host, "drives": Drive, "nics": Nic, "instances": Instance}
)
"""Subfolder of `hardware/` -> what its files describe."""


def rows() -> dict[str, Hardware]:
    """Return all built-in machines, by name."""
    return {name: row(name) for name in names()}


@cache
def names() -> tuple[str, ...]:
    """Return the names of the built-in machines, sorted: one YAML file each."""
    files = (entry.name for entry in builtin("hardware").iterdir())
    return tuple(sorted(name.removesuffix(".yaml") for name in files if name.endswith(".yaml")))


@cache
def part_names(kind: str) -> tuple[str, ...]:
    """Return the names of the built-in parts of a kind of `PARTS`, sorted: one YAML file each."""
    files = (entry.name for entry in (builtin("hardware") / kind).iterdir())
    return tuple(sorted(name.removesuffix(".yaml") for name in files if name.endswith(".yaml")))


@cache
def aliases() -> Mapping[str, str]:
    """Return the built-in name that each alias stands for."""
    found = {alias: name for name, entry in _machines().items() for alias in entry["hardware"]["aliases"]}
    for name in names():
        if name not in _machines():
            found.update(dict.fromkeys(row(name).aliases, name))
    return MappingProxyType(found)


def row(name: str) -> Hardware:
    """Return one built-in machine, from its YAML file where the table is older than that."""
    file = builtin("hardware") / f"{name}.yaml"
    entry = _machines().get(name)
    if entry is not None and entry["crc32"] == zlib.crc32(file.read_bytes()):
        return decode(entry["hardware"])
    return _from_file(name)


def part(kind: str, name: str) -> Profile:
    """Return one built-in part, from its YAML file where the table is older than that."""
    file = builtin("hardware") / kind / f"{name}.yaml"
    entry = _table().get("parts", {}).get(kind, {}).get(name)
    if entry is not None and entry["crc32"] == zlib.crc32(file.read_bytes()):
        return decode_part(PARTS[kind], entry["part"])
    return _part_from_file(kind, name)


def _part_from_file(kind: str, name: str) -> Profile:
    from kvcalc.catalog.part_document import part_from_document
    from kvcalc.documents import read

    file = builtin("hardware") / kind / f"{name}.yaml"
    part = part_from_document(read(file), f"hardware/{kind}/{name}.yaml")
    return dataclasses.replace(part, origin="built-in")


def _from_file(name: str) -> Hardware:
    from kvcalc.catalog.hardware_document import hardware_from_document
    from kvcalc.documents import read

    hardware = hardware_from_document(read(builtin("hardware") / f"{name}.yaml"), f"hardware/{name}.yaml")
    return dataclasses.replace(hardware, origin="built-in")


@cache
def _table() -> dict[str, Any]:
    try:
        text = (builtin("hardware") / TABLE).read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}  # the YAML files alone will do, at the price of reading them
    table = json.loads(text)
    return dict(table) if table["schema"] == SCHEMA else {}


def _machines() -> Mapping[str, Any]:
    found: Mapping[str, Any] = _table().get("machines", {})
    return found


def encode(value: object) -> Any:  # noqa: ANN401 - plain data of any shape
    """Return a profile as plain data in base units; what is None or empty is left out."""
    if dataclasses.is_dataclass(value):
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return {name: encode(part) for name, part in fields.items() if part is not None}
    if isinstance(value, Mapping):
        return {key: encode(part) for key, part in value.items()}
    return list(value) if isinstance(value, tuple) else value


def decode(row: Mapping[str, Any]) -> Hardware:
    """Return the profile that `encode` made plain."""
    device = row["device"]
    return Hardware(
        **_head(row),
        vendor=row["vendor"],
        device=Device(**{**device, "flops": MappingProxyType(device["flops"])}),
        host_to_device=Link(**row["host_to_device"]),
        device_to_host=Link(**row["device_to_host"]),
        prefill_efficiency=Band(**row["prefill_efficiency"]),
        decode_efficiency=Band(**row["decode_efficiency"]),
        attention_efficiency=Band(**row["attention_efficiency"]) if "attention_efficiency" in row else None,
        interconnect=Link(**row["interconnect"]) if "interconnect" in row else None,
        host=Memory(**row["host"]) if "host" in row else None,
        storage=Storage(**row["storage"]) if "storage" in row else None,
    )


def decode_part(kind: type[Profile], row: Mapping[str, Any]) -> Profile:
    """Return the part that `encode` made plain."""
    return kind(**{**row, **_head(row)})


def _head(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return what every profile has."""
    provenance = {
        key: Provenance(**{**entry, "range": tuple(entry["range"]) if "range" in entry else None})
        for key, entry in row["provenance"].items()
    }
    return {
        "name": row["name"],
        "title": row["title"],
        "aliases": tuple(row["aliases"]),
        "note": row.get("note"),
        "origin": row["origin"],
        "sources": MappingProxyType({key: Source(**entry) for key, entry in row["sources"].items()}),
        "provenance": MappingProxyType(provenance),
    }


def generate() -> str:
    """Return the text of the table that the YAML files give; one machine or part a line."""
    machines = _lines("", "hardware", {name: _from_file(name) for name in names()})
    parts = ",\n".join(
        f"{json.dumps(kind)}: {{\n"
        + _lines(kind, "part", {name: _part_from_file(kind, name) for name in part_names(kind)})
        + "\n}"
        for kind in PARTS
    )
    return f'{{"schema": "{SCHEMA}", "machines": {{\n{machines}\n}}, "parts": {{\n{parts}\n}}}}\n'


def _lines(folder: str, key: str, profiles: Mapping[str, Profile]) -> str:
    lines = []
    for name, profile in profiles.items():
        checksum = zlib.crc32((builtin("hardware") / folder / f"{name}.yaml").read_bytes())
        entry = {"crc32": checksum, key: encode(profile)}
        lines.append(f"{json.dumps(name)}: {json.dumps(entry, ensure_ascii=False)}")
    return ",\n".join(lines)


def main() -> None:
    """Write the table beside the YAML files."""
    from kvcalc.documents import write_text

    write_text(str(builtin("hardware") / TABLE), generate())


if __name__ == "__main__":
    main()
