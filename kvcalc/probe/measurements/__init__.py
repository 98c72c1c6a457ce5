"""What is measured: one row for each test, and a module that does it."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

from kvcalc.records import record

Needs = Literal["nothing", "device", "devices", "disk"]


@record
class Test:
    """One test: what it measures, what it needs, and how long it may take."""

    id: str
    title: str
    module: str  # in this package, with a function `run(session)`
    needs: Needs
    seconds: Mapping[str, float]  # deadline by level [second]; a level that is missing leaves it out


def _at(quick: float | None, default: float, full: float) -> Mapping[str, float]:
    found = {"quick": quick, "default": default, "full": full}
    return MappingProxyType({level: value for level, value in found.items() if value is not None})


TESTS: tuple[Test, ...] = (
    Test("F", "facts of machine, devices and links", "facts", "nothing", _at(2, 2, 2)),
    Test(
        "O1",
        "what a launch, an event, a wait and a copy call cost the CPU",
        "overheads",
        "device",
        _at(2, 3, 5),
    ),
    Test("H1", "host to device and back, pinned, by size", "link", "device", _at(8, 24, 40)),
    Test("H2", "the same from pageable memory", "pageable", "device", _at(3, 6, 10)),
    Test("H3", "both directions at once", "duplex", "device", _at(3, 6, 10)),
    Test("S1", "scattered KV blocks, by chunk, order and mechanism", "scattered", "device", _at(9, 25, 60)),
    Test("D1", "device memory: read, write, copy", "memory", "device", _at(2, 4, 10)),
    Test("C1", "conversion of formats", "conversion", "device", _at(2, 4, 8)),
    Test("P1", "pinning host memory", "pinning", "device", _at(3, 8, 15)),
    Test("K1", "copies beside compute", "interference", "device", _at(None, 6, 15)),
    Test("N1", "host memory of each NUMA node", "numa", "nothing", _at(None, 10, 20)),
    Test("G1", "several devices at once", "together", "devices", _at(None, 10, 25)),
    Test("M1", "host memory copied by threads", "host_copy", "nothing", _at(6, 10, 15)),
    Test("Z1", "disk reads by size and depth", "disk_reads", "disk", _at(16, 30, 60)),
)
"""In the order in which they run."""

IDS = tuple(test.id for test in TESTS)
