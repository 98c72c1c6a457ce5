"""The tiers of a machine where the question names none: host DRAM, and drives that are known."""

import math

from kvcalc.formulas.transfer import shared_bandwidth
from kvcalc.planning.notebook import Notebook
from kvcalc.profiles import Hardware, Node
from kvcalc.results import Source
from kvcalc.scenario import Scenario, TierUse
from kvcalc.tiers import tier_kind

_LINK = "host_to_device.bandwidth"


def standard_tiers(scenario: Scenario, book: Notebook) -> tuple[TierUse, ...]:
    """Return host DRAM over the host link, and the drives of an instance or the disk that was measured."""
    hardware = scenario.hardware
    if hardware.device.unified:
        book.assume(f"{hardware.title} shares one memory with its host, so host DRAM is no tier of its own")
        return _measured_disk(scenario, book)
    node = hardware.node
    if node is None or node.instance.dram is None:
        book.assume("no --tier given: host DRAM over the host link, one link for each GPU, capacity unknown")
        return (host_memory(hardware, None), *_measured_disk(scenario, book))
    nodes = math.ceil(scenario.gpus / node.instance.gpus)
    book.assume(
        f"no --tier given: host DRAM of {_machines(nodes, node)} over the host link, one link for each GPU; "
        "the system and the engine leave less than all of it"
    )
    dram = host_memory(hardware, node.instance.dram * nodes)
    return dram, *_drives(scenario, node, nodes, book)


def host_memory(hardware: Hardware, capacity: float | None) -> TierUse:
    """Return host DRAM of so many bytes over the machine's host link."""
    found, link = hardware.provenance.get(_LINK), hardware.host_to_device
    return TierUse(
        name="dram",
        bandwidth=link.bandwidth,
        bandwidth_range=found.range if found else None,
        latency=link.latency,
        capacity=capacity,
        source=Source(found.kind, hardware.cite(_LINK), found.as_printed) if found else None,
    )


def _measured_disk(scenario: Scenario, book: Notebook) -> tuple[TierUse, ...]:
    """Return the disk that a probe measured, shared by all GPUs; none where the profile has none."""
    hardware, disk = scenario.hardware, scenario.hardware.storage
    if disk is None:
        return ()
    key = "storage.bandwidth"
    found, gpus = hardware.provenance[key], float(scenario.gpus)
    shared = f", shared by {gpus:g} GPUs" if gpus > 1 else ""
    book.assume(f"the disk of this machine is a tier as well ({found.as_printed}){shared}")
    link = disk.bandwidth if hardware.device.unified else hardware.host_to_device.bandwidth
    share = float(shared_bandwidth(link, disk.bandwidth, gpus))
    return (
        TierUse(
            name="disk",
            kind="nvme",
            bandwidth=share,
            bandwidth_range=None if found.range is None else _scaled(found.range, share / disk.bandwidth),
            latency=disk.latency,
            source=Source(found.kind, hardware.cite(key), found.as_printed),
        ),
    )


def _scaled(ends: tuple[float, float], factor: float) -> tuple[float, float]:
    return ends[0] * factor, ends[1] * factor


def _drives(scenario: Scenario, node: Node, nodes: int, book: Notebook) -> tuple[TierUse, ...]:
    """Return the local drives as one tier, read by all GPUs of a machine at once."""
    drive, count = node.drive, node.instance.drives
    if drive is None or count is None:
        return ()
    hardware = scenario.hardware
    readers = min(scenario.gpus, node.instance.gpus)
    key = "drive.read_bandwidth"
    found = hardware.provenance[key]
    book.assume(
        f"the {count:g} local drives of {node.instance.name} read like {drive.name} "
        f"({found.as_printed} each), shared by {readers} GPUs; --tier replaces it"
    )
    link = hardware.host_to_device.bandwidth
    bandwidth = float(shared_bandwidth(link, count * drive.read_bandwidth, float(readers)))
    capacity = node.instance.drive_capacity
    return (
        TierUse(
            name="nvme",
            bandwidth=bandwidth,
            capacity=None if capacity is None else capacity * nodes,
            source=Source(found.kind, hardware.cite(key), found.as_printed),
        ),
    )


def local_drive(hardware: Hardware) -> TierUse:
    """Return one local drive: the one that was measured, of the instance's own kind, or as drives are."""
    node, kind, disk = hardware.node, tier_kind("nvme"), hardware.storage
    if disk is not None:
        found = hardware.provenance["storage.bandwidth"]
        source = Source(found.kind, hardware.cite("storage.bandwidth"), found.as_printed)
        return TierUse(
            name="nvme",
            bandwidth=disk.bandwidth,
            bandwidth_range=found.range,
            latency=disk.latency,
            source=source,
        )
    if node is not None and node.drive is not None:
        found = hardware.provenance["drive.read_bandwidth"]
        source = Source(found.kind, hardware.cite("drive.read_bandwidth"), found.as_printed)
        return TierUse(name="nvme", bandwidth=node.drive.read_bandwidth, source=source)
    assert kind.drive_bandwidth is not None
    return TierUse(name="nvme", bandwidth=kind.drive_bandwidth.value, source=kind.drive_bandwidth.cited)


def _machines(nodes: int, node: Node) -> str:
    return node.instance.name if nodes == 1 else f"{nodes} x {node.instance.name}"
