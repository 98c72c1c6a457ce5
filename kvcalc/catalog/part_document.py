"""Profiles of hosts, drives, NICs and instances as documents that people write -> dataclasses, strictly."""

from collections.abc import Mapping
from dataclasses import MISSING, fields
from types import MappingProxyType
from typing import Any

from kvcalc.catalog.hardware_document import Reader, units
from kvcalc.documents import Document, Section
from kvcalc.errors import ProfileError, did_you_mean
from kvcalc.profiles import Drive, Host, Instance, Nic, Profile

KINDS: Mapping[str, type[Profile]] = MappingProxyType(
    {"kvcalc.host/1": Host, "kvcalc.drive/1": Drive, "kvcalc.nic/1": Nic, "kvcalc.instance/1": Instance}
)
"""Schema of a document -> what it describes."""

_HEAD = {item.name for item in fields(Profile)}


def part_from_document(data: Document, file: str) -> Profile:
    """Build a host, drive, NIC or instance from plain data.

    Raises
    ------
    ProfileError
        If a key is unknown or missing, a unit is missing or wrong, or a source is not listed; names
        the file and the key.
    """
    top = Section.of(data, file)
    schema = top.text("schema")
    kind: Any = KINDS.get(schema)
    if kind is None:
        raise ProfileError(
            f"{top.where('schema')}: unknown schema {schema!r}{did_you_mean(schema, list(KINDS))}"
        )
    own = [item for item in fields(kind) if item.name not in _HEAD]
    optional = tuple(item.name for item in own if item.default is not MISSING)
    required = tuple(item.name for item in own if item.name not in optional)
    top.check(("schema", "name", "title", "sources", *required), ("aliases", "note", *optional))
    reader = Reader.of(top)
    values: dict[str, Any] = {}
    for item in own:
        if item.name in top:
            unit = units(kind).get(item.name)
            values[item.name] = top.text(item.name) if unit is None else reader.value(top, item.name, unit)
    part: Profile = kind(**reader.head(top, file), **values)
    return part
