"""Names -> hosts, drives, NICs and instances, and instances as machines to plan on."""

import dataclasses
from functools import cache
from types import MappingProxyType
from typing import cast

from kvcalc.catalog import table
from kvcalc.profiles import Drive, Hardware, Instance, Node, Profile


def plain_name(typed: str) -> str:
    """Return a name as it is compared: case, spaces and underscores make no difference.

    >>> plain_name("Standard_ND96isr_H100_v5")
    'standard-nd96isr-h100-v5'
    """
    return "-".join(typed.lower().replace("_", " ").split())


@cache
def index() -> MappingProxyType[str, tuple[str, str]]:
    """Return kind and name of each part, by its names and other names as they are compared."""
    found: dict[str, tuple[str, str]] = {}
    for kind in table.PARTS:
        for name in table.part_names(kind):
            for spelling in (name, *table.part(kind, name).aliases):
                found[plain_name(spelling)] = (kind, name)
    return MappingProxyType(found)


def find(typed: str) -> tuple[str, Profile] | None:
    """Return kind and profile of the part of this name, or None.

    >>> found = find("P5.48xlarge")
    >>> found[0], found[1].accelerator, found[1].gpus
    ('instances', 'h100-sxm-80gb', 8)
    """
    hit = index().get(plain_name(typed))
    return None if hit is None else (hit[0], table.part(*hit))


def longer(typed: str, kinds: tuple[str, ...] = tuple(table.PARTS)) -> list[str]:
    """Return the names of parts that begin with this one and go on after a separator.

    >>> longer("p5")
    ['p5.48xlarge', 'p5.4xlarge']
    """
    wanted = plain_name(typed)
    hits = {
        name
        for spelling, (kind, name) in index().items()
        if kind in kinds and spelling.startswith((f"{wanted}-", f"{wanted}."))
    }
    return sorted(hits)


def on_instance(accelerator: Hardware, instance: Instance) -> Hardware:
    """Return an accelerator as it stands in an instance, whose values it quotes as ``instance.KEY``."""
    drive = cast(Drive, table.part("drives", instance.drive)) if instance.drive and instance.drives else None
    quoted = {f"instance.{key}": entry for key, entry in instance.provenance.items()}
    sources = dict(instance.sources)
    if drive is not None:
        quoted |= {f"drive.{key}": entry for key, entry in drive.provenance.items()}
        sources |= drive.sources
    return dataclasses.replace(
        accelerator,
        title=f"{accelerator.title} in {instance.name}",
        node=Node(instance, drive),
        sources=MappingProxyType({**sources, **accelerator.sources}),
        provenance=MappingProxyType({**accelerator.provenance, **quoted}),
    )
