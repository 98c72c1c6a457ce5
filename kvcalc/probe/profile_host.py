"""The host's memory as a profile holds it: how much this process may use, and who copied it how fast."""

from kvcalc.probe.profile_entries import Entry
from kvcalc.probe.results import Environment, Measurement
from kvcalc.profiles import PROBE


def memory_entry(environment: Environment) -> Entry:
    """Return the memory that this process may use: the host's, or its cgroup's where that is less."""
    total, limit = float(environment.memory), environment.cgroup_memory
    size, note = total, "as the kernel reports it"
    if limit is not None and float(limit) < total:
        size, note = float(limit), f"limit of the cgroup, of {total / 1e9:.4g} GB that the kernel reports"
    return {"value": f"{int(size)} B", "kind": "nominal", "from": PROBE, "note": note}


def threads_of(row: Measurement) -> str:
    """Return which threads made a copy, in words."""
    count = f"{row.in_flight:g} threads" if float(row.in_flight) > 1 else "one thread"
    return f"memcpy by {count}, the fastest count of threads, bytes read and written"
