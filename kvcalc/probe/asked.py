"""What a probe is asked in names: a model whose pieces are moved, a machine whose profile is calibrated."""

import json
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from kvcalc.catalog import hardware as machines
from kvcalc.catalog.paths import is_path
from kvcalc.catalog.scenarios import Question, engine_settings
from kvcalc.engines import lay_out
from kvcalc.engines.layout import Layout
from kvcalc.errors import KvcalcError, SettingsError, UnknownProfileError
from kvcalc.probe.results import ProbeResult
from kvcalc.profiles import Hardware
from kvcalc.tiers.mechanisms import mechanism
from kvcalc.tiers.pieces import block_bytes, layer_bytes, piece_bytes

NAMES = files(__package__) / "device_names.json"
MEMORY_NEAR = 0.03
"""How far the memory that a driver reports may lie from that of a profile [1]; a MIG slice lies farther."""
LARGEST_PIECE = 2**25
"""Largest piece that is measured [byte]; larger ones move at the contiguous rate."""
CHUNKED = "lmcache"
"""Mechanism whose chunks of many tokens are measured besides an engine's own blocks."""


def pieces_of(question: Question) -> Mapping[str, float]:
    """Return the sizes of the pieces in which the KV of a model moves, by what a piece is.

    The layout of the chosen engine says them: a block over all layers, one layer's tensor of a block, and
    the chunk of a store that keeps many tokens together.
    """
    from kvcalc.catalog import models

    if question.model is None:
        return {}
    layout = lay_out(models.load(question.model).shape, engine_settings(question))
    found = {"layer": layer_bytes(layout), "block": block_bytes(layout), "chunk": _chunk(layout)}
    return {name: size for name, size in found.items() if 0 < size <= LARGEST_PIECE}


def model_name(given: str | None) -> str | None:
    """Return what evidence may say of a model: its name or hub id; of a file, that it was one.

    >>> model_name("llama-3.1-8b"), model_name("./secret/config.json")
    ('llama-3.1-8b', 'a file')
    """
    if given is None or not is_path(given):
        return given
    is_hub_id = given.count("/") == 1 and given[0] not in "./~" and not Path(given).exists()
    return given if is_hub_id else "a file"


def _chunk(layout: Layout) -> float:
    try:
        return piece_bytes(mechanism(CHUNKED), layout)
    except SettingsError:
        return 0.0


def base_of(result: ProbeResult, named: str | None = None) -> Hardware | None:
    """Return the profile of the machine that was measured: as named, or by what its driver calls it."""
    if named is not None:
        return machines.load(named)
    if not result.machine.devices:
        return None
    device = result.machine.devices[0]
    name = known_name(device.name)
    if name is None:
        return None
    try:
        found = machines.load(name)
    except (UnknownProfileError, KvcalcError):
        return None
    memory = device.memory or device.memory_runtime
    near = memory is not None and abs(float(memory) / found.device.capacity - 1) <= MEMORY_NEAR
    return found if near else None


def known_name(device: str) -> str | None:
    """Return the profile of a device by what its driver calls it; None where it is not known.

    >>> known_name("NVIDIA H200"), known_name("NVIDIA H200 MIG 1g.18gb")
    ('h200-sxm-141gb', None)
    """
    names: dict[str, Any] = json.loads(NAMES.read_text(encoding="utf-8"))["names"]
    found = names.get(device.strip())
    return None if found is None else str(found)
