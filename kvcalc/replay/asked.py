"""What a replay is asked beside its trace."""

from collections.abc import Callable, Mapping
from dataclasses import field
from inspect import signature
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeVar

from kvcalc.errors import SettingsError, did_you_mean
from kvcalc.records import record
from kvcalc.replay.capacities import Sizing
from kvcalc.replay.options import USUAL, Options
from kvcalc.replay.semantics import Semantics
from kvcalc.replay.tenants import SHARED
from kvcalc.replay.tiers import EXCLUSIVE, INCLUSIVE, WRITE_BACK, WRITE_THROUGH

if TYPE_CHECKING:
    from kvcalc.replay.machine import Machine


@record
class Asked:
    """One replay; capacities are texts with units, or numbers of blocks."""

    capacities: tuple[
        int | str, ...
    ] = ()  # of the cache, or of its fastest tier; shares of the trace when empty
    policies: tuple[str, ...] = ()  # beside those that are always there
    semantics: Semantics = Semantics()
    sizing: Sizing | None = None  # bytes of blocks, where they are known
    tiers: tuple[tuple[str, int | str], ...] = ()  # slower ones: name and capacity, the fastest first
    fastest: str = "cache"  # name of the tier that `capacities` are of
    inclusion: str = INCLUSIVE
    write: str = WRITE_THROUGH
    quota: str = SHARED
    shares: dict[str, float] = field(default_factory=dict)  # of the cache, by tenant; equal ones when empty
    options: Options = USUAL  # of single policies
    refine: int | None = None  # tokens of finer blocks to split the trace's into [token]
    shared_prefix: int = 0  # tokens that all requests share, for `refine` [token]
    sample: int | None = None  # requests' blocks to follow at most, chosen by hash
    workers: int | None = 1  # processes; None: as many as there are cores and work for
    scheduler: str | None = None  # address of a Dask scheduler, whose workers are used instead
    machine: "Machine | None" = None  # a model on a machine, for what hits do there


READING = ("dialect", "skip_broken", "trace_block", "session_every", "time_unit")
"""Options of the command line that are of the file."""
MACHINE = ("model", "on", "set")
"""Options of the command line that name a model and a machine."""

LEAST: Mapping[str, int] = MappingProxyType({"refine": 1, "shared_prefix": 0, "sample": 1, "workers": 1})
"""Whole numbers that a replay takes -> the least that makes sense: of tokens, blocks or processes."""


def usual_write(inclusion: str) -> str:
    """Return when a block goes to the next tier where nobody said it."""
    return WRITE_BACK if inclusion == EXCLUSIVE else WRITE_THROUGH


Whole = TypeVar("Whole", bound=int | None)


def whole_number(name: str, value: Whole) -> Whole:
    """Return one of the numbers in `LEAST`, or raise SettingsError where it is none."""
    least = LEAST[name]
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < least):
        raise SettingsError(f"{name}: expected a whole number from {least} on, got {value!r:.60}")
    return value


def tier_in_python(said: object) -> tuple[str, int | str]:
    """Return a tier from its name and size, or from a text such as 'dram=512 GB'."""
    if isinstance(said, str) and said.partition("=")[2].strip():
        name, _, size = said.partition("=")
        return name.strip(), size.strip()
    if isinstance(said, (tuple, list)) and len(said) == 2 and isinstance(said[0], str):
        return said[0], said[1]
    raise SettingsError(f"tiers: {said!r:.60} is no tier; write ('dram', '512 GB') or 'dram=512 GB'")


def refuse_unknown(said: Mapping[str, object], function: Callable[..., object]) -> None:
    """Refuse keywords that a function does not have, with where to say them or the nearest one it has."""
    for name in said:
        known = tuple(signature(function).parameters)
        raise SettingsError(f"{name}: {_elsewhere(name) or 'unknown switch' + did_you_mean(name, known)}")


def _elsewhere(name: str) -> str | None:
    """Return where to say what is no keyword of a replay; None if nobody knows it."""
    if name in ("capacity", "policy"):
        return {"capacity": "capacities", "policy": "policies"}[name] + " is its name here, a list"
    if name in READING:
        return "it is of the file; read it with kvcalc.replay.readers.read_trace and pass the trace"
    if name in MACHINE:
        return "pass sizing or bytes_per_token, or use `kvcalc replay`, which knows models and machines"
    return None
