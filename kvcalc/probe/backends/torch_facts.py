"""Facts of a device from torch, NVML and the kernel: each source may be silent."""

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from kvcalc.probe.backends.nvml import Look
from kvcalc.probe.backends.pcie import hops, link_rate, numa_node, slowest
from kvcalc.probe.results import DeviceFacts, Link, LinkHop

if TYPE_CHECKING:
    from kvcalc.probe.backends.torch_device import TorchDevice

C2C_BANDWIDTH = 450e9
"""What NVLink-C2C carries in one direction [byte/second] (NVIDIA Grace Hopper superchip data sheet)."""


def address_of(module: Any, index: int) -> str | None:  # noqa: ANN401
    """Return a device's PCI address as the kernel writes it; None where torch does not tell it."""
    found = module.get_device_properties(index)
    bus, device = getattr(found, "pci_bus_id", None), getattr(found, "pci_device_id", None)
    if bus is None or device is None:
        return None
    return f"{getattr(found, 'pci_domain_id', 0):04x}:{bus:02x}:{device:02x}.0"


def capability_of(device: "TorchDevice") -> float | None:
    """Return CUDA's compute capability, such as 9.0."""
    if device.kind != "cuda":
        return None
    major, minor = device.module.get_device_capability(device.index)
    return float(f"{major}.{minor}")


def look_of(device: "TorchDevice") -> Look:
    """Return the link now, from NVML or the kernel."""
    if device.nvml is not None:
        return device.nvml.look()
    path = hops(device.address) if device.address else ()
    own = path[0] if path else None
    return Look(own.generation if own else None, own.width if own else None, ())


def facts_of(device: "TorchDevice") -> DeviceFacts:
    """Return everything that is known of a device."""
    nvml, properties = device.nvml, _properties(device)
    integrated = getattr(properties, "is_integrated", None)
    integrated = device.kind == "mps" if integrated is None else bool(integrated)
    free, total = _memory(device)
    link = _link(device, integrated)
    others = None if nvml is None else nvml.other_processes(device.own_process)
    reasons = tuple(dict.fromkeys(reason for look in device.seen for reason in look.reasons))
    facts = DeviceFacts(
        index=device.index,
        backend=device.kind,
        name=str(getattr(properties, "name", device.kind)),
        memory=(nvml.memory() if nvml else None) or _number(getattr(properties, "total_memory", None)),
        memory_runtime=total,
        memory_free=free,
        memory_bound=nvml.memory_bound() if nvml else None,
        cache=_number(getattr(properties, "L2_cache_size", None)),
        compute_capability=capability_of(device),
        ecc=nvml.flag("nvmlDeviceGetEccMode") if nvml else None,
        mig=nvml.flag("nvmlDeviceGetMigMode") if nvml else None,
        mps="CUDA_MPS_PIPE_DIRECTORY" in os.environ if device.kind == "cuda" else None,
        integrated=integrated,
        virtualization=nvml.virtualization() if nvml else None,
        confidential=None,
        addressing=nvml.addressing() if nvml else None,
        numa_node=numa_node(device.address) if device.address else None,
        other_processes=others,
        throttle_reasons=reasons,
        link=link,
        flags=(),
    )
    return replace(facts, flags=_flags(device, facts))


def _properties(device: "TorchDevice") -> Any:  # noqa: ANN401
    get = getattr(device.module, "get_device_properties", None)
    return get(device.index) if get is not None and device.kind != "cpu" else None


def _memory(device: "TorchDevice") -> tuple[float | None, float | None]:
    get = getattr(device.module, "mem_get_info", None)
    if get is None or device.kind == "cpu":
        return None, None
    free, total = get(device.index)
    return float(free), float(total)


def _number(value: Any) -> float | None:  # noqa: ANN401
    return None if value is None else float(value)


def _link(device: "TorchDevice", integrated: bool) -> Link:
    nvml = device.nvml
    path = hops(device.address) if device.address else ()
    idle = look_of(device)
    busy = [look for look in device.seen if look.generation is not None]
    generation = max((look.generation or 0 for look in busy), default=0) or None
    width = max((look.width or 0 for look in busy), default=0) or idle.width
    own = path[0] if path else LinkHop("device", None, None, None, None)
    generation_max = (nvml.generation_max() if nvml else None) or own.generation_max
    width_max = (nvml.width_max() if nvml else None) or own.width_max
    # The most that the link can be: registers of virtual machines are often those of a slower one.
    rates = (link_rate(generation, width), link_rate(generation_max, width_max))
    kind, bound = "unknown", max((rate for rate in rates if rate is not None), default=None)
    if integrated:
        kind, bound = "unified", None
    elif nvml is not None and nvml.c2c():
        kind, bound = "c2c", C2C_BANDWIDTH
    elif bound is not None:
        kind = "pcie"
    return Link(
        kind=kind,
        generation_idle=idle.generation,
        generation=generation,
        generation_max=generation_max,
        width=width,
        width_max=width_max,
        bound=bound,
        path=path,
        replays=_replays(device),
    )


def _replays(device: "TorchDevice") -> int | None:
    """Return how many packets the link has repeated since the device was opened."""
    now = device.nvml.replays() if device.nvml is not None else None
    return None if now is None or device.replays_before is None else now - device.replays_before


def _flags(device: "TorchDevice", facts: DeviceFacts) -> tuple[str, ...]:
    link = facts.link
    found = {
        "not_verified": device.unverified,
        "unified": bool(facts.integrated),
        "mig": bool(facts.mig),
        "mps": bool(facts.mps),
        "ecc_off": facts.ecc is False,
        "shared": bool(facts.other_processes),
        "virtual_gpu": facts.virtualization not in (None, "none"),
        "confidential": bool(facts.confidential),
        "throttled": bool(facts.throttle_reasons),
        "link_unknown": link.kind == "unknown",
        "link_degraded": _is_degraded(link),
        "replays": bool(link.replays and link.replays > 0),
    }
    return tuple(name for name, holds in found.items() if holds)


def _is_degraded(link: Link) -> bool:
    """Tell whether the link ran below what it can while it copied, or a bridge before it carries less."""
    if link.kind != "pcie" or link.generation is None or link.generation_max is None:
        return False
    own = link_rate(link.generation, link.width)
    best = link_rate(link.generation_max, link.width_max)
    narrow = slowest(link.path[1:])
    before = link_rate(narrow.generation, narrow.width) if narrow else None
    if own is None or best is None:
        return False
    return own < best or (before is not None and before < own)
