"""How engines move KV between a tier and the GPU, as data (mechanisms.json).

A mechanism has a rule for its pieces and one or more sets of rates: the first holds for any machine,
later ones for the machines that they name.
"""

from collections.abc import Mapping
from dataclasses import field, replace
from functools import cache
from typing import Any, Literal

from kvcalc.profiles import Hardware
from kvcalc.records import record
from kvcalc.tiers.figures import Figure, data_of, figures_of, named

PLAIN = "plain"
"""The mechanism that moves bytes at the bandwidth as stated."""

PER_PIECE = "host_to_device.per_piece"
"""Key of a hardware profile that holds what one of many small copies costs on that machine."""

PieceRule = Literal["block", "layer", "page", "chunk", "slice", "whole"]
"""What one piece is.

block: a block of the engine's pool over all layers of a rank.  layer: one tensor of one layer in such
a block.  page: one tensor of one layer in a page of SGLang, be it one token.  chunk: so many tokens of
all layers.  slice: so many bytes.  whole: everything at once.
"""

Layerwise = Literal["never", "optional", "always"]


@record
class Rates:
    """How fast one mechanism is; None where it adds no limit or cost of its own."""

    per_piece: Figure | None = None  # second, fixed cost of one piece
    streams: Figure | None = None  # pieces in flight that hide each other's fixed cost
    share: Figure | None = None  # of the link's bandwidth that endless pieces reach
    limit: Figure | None = None  # byte/second into one GPU, whatever the link
    host_limit: Figure | None = None  # byte/second into all GPUs of a host together
    fixed: Figure | None = None  # second, once for each restore
    first: Figure | None = None  # second, once for the first restore between two servers

    def number(self, name: str, otherwise: float) -> float:
        """Return a rate's value, or `otherwise` where the mechanism has none."""
        found: Figure | None = getattr(self, name)
        return otherwise if found is None else found.value


_RATES = ("per_piece", "streams", "share", "limit", "host_limit", "fixed", "first")


@record
class Mechanism:
    """One way of moving bytes."""

    name: str
    title: str
    tiers: tuple[str, ...]  # kinds of tier that it can read
    piece: PieceRule
    general: Rates
    special: Mapping[str, Rates] = field(default_factory=dict)  # by machine
    chunk_tokens: int | None = None
    slice_bytes: int | None = None
    then: str | None = None  # mechanism of the second hop, from host memory, once all has arrived there
    store: str | None = None  # write_through, selective or write_back
    inclusive: bool = False  # the tier also holds what the GPU still has
    one_copy: bool = False  # releases that can keep what all ranks hold alike once in the tier
    call_each: bool = False  # each piece is a copy with a call of its own, whose time a probe measures
    layerwise: Layerwise = "never"
    default_for: Mapping[str, Any] = field(default_factory=dict)  # engine, tiers and vendors

    def rates_on(self, hardware: Hardware) -> Rates:
        """Return the rates on a machine, with the cost of a piece that was measured on it, where one was."""
        rates = self.special.get(hardware.name, self.general)
        measured = hardware.host_to_device.per_piece
        if not self.call_each or measured is None:
            return rates
        found = hardware.provenance[PER_PIECE]
        return replace(
            rates, per_piece=Figure(measured, found.kind, hardware.cite(PER_PIECE), found.note or "")
        )

    def is_default(self, engine: str, tier: str, vendor: str) -> bool:
        """Whether an engine uses this mechanism on such a tier unless told otherwise."""
        chosen = self.default_for
        if chosen.get("engine") != engine or tier not in chosen["tiers"]:
            return False
        return vendor in chosen.get("vendors", [vendor])


@cache
def mechanisms() -> Mapping[str, Mechanism]:
    """Return all mechanisms by name."""
    data = data_of("mechanisms.json")
    return {entry["name"]: _mechanism(entry, data["sources"]) for entry in data["mechanisms"]}


def mechanism(name: str) -> Mechanism:
    """Return one mechanism.

    Raises
    ------
    SettingsError
        If there is none of this name.
    """
    return named(mechanisms(), name, "mechanism")


def default_mechanism(engine: str, tier: str | None, hardware: Hardware) -> Mechanism:
    """Return what an engine uses on a kind of tier: the last that names the vendor, else any."""
    fitting = [
        found for found in mechanisms().values() if found.is_default(engine, tier or "", hardware.vendor)
    ]
    named = [found for found in fitting if "vendors" in found.default_for]
    return (named or fitting or [mechanism(PLAIN)])[0]


def _mechanism(entry: Mapping[str, Any], sources: Mapping[str, Any]) -> Mechanism:
    general, *special = entry["rates"]
    same = (
        "name",
        "title",
        "piece",
        "chunk_tokens",
        "slice_bytes",
        "then",
        "store",
        "inclusive",
        "call_each",
        "one_copy",
    )
    return Mechanism(
        **{name: entry[name] for name in (*same, "layerwise", "default_for") if name in entry},
        tiers=tuple(entry["tiers"]),
        general=Rates(**figures_of(general, _RATES, sources)),
        special={
            machine: Rates(**figures_of(rates, _RATES, sources))
            for rates in special
            for machine in rates["machines"]
        },
    )
