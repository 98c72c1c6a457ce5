"""What a replay is asked beside its trace."""

from dataclasses import field, fields
from typing import TYPE_CHECKING, Any

from kvcalc.errors import SettingsError, did_you_mean
from kvcalc.records import record
from kvcalc.replay.capacities import Sizing
from kvcalc.replay.options import Options
from kvcalc.replay.semantics import Semantics
from kvcalc.replay.tenants import SHARED
from kvcalc.replay.tiers import INCLUSIVE, WRITE_THROUGH

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
    options: Options = Options()  # of single policies
    refine: int | None = None  # tokens of finer blocks to split the trace's into [token]
    shared_prefix: int = 0  # tokens that all requests share, for `refine` [token]
    sample: int | None = None  # requests' blocks to follow at most, chosen by hash
    workers: int | None = 1  # processes; None: as many as there are cores and work for
    scheduler: str | None = None  # address of a Dask scheduler, whose workers are used instead
    machine: "Machine | None" = None  # a model on a machine, for what hits do there


def semantics_of(said: dict[str, Any]) -> Semantics:
    """Return semantics from switches by name; unknown ones are refused."""
    known = tuple(item.name for item in fields(Semantics))
    for name in said:
        if name not in known:
            raise SettingsError(f"{name}: unknown switch{did_you_mean(name, known)}")
    return Semantics(**said)
