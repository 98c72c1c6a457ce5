"""What a PCIe link carries, and what the kernel says of each hop from a device to the root of its bus."""

from pathlib import Path

from kvcalc.probe.results import LinkHop

LANE = {1: 0.25e9, 2: 0.5e9, 3: 8e9 * 128 / 130 / 8, 4: 16e9 * 128 / 130 / 8, 5: 32e9 * 128 / 130 / 8}
"""Generation -> what one lane carries in one direction [byte/second]: the transfer rate less the 8b/10b or
128b/130b code, headers included (PCI Express Base Specification)."""
LANE |= {6: 64e9 * 242 / 256 / 8}  # generation 6 sends flits of 256 bytes, 242 of them with data

_SPEEDS = {
    "2.5": 1,
    "5": 2,
    "5.0": 2,
    "8": 3,
    "8.0": 3,
    "16": 4,
    "16.0": 4,
    "32": 5,
    "32.0": 5,
    "64": 6,
    "64.0": 6,
}
SYSFS = Path("/sys/bus/pci/devices")
_MOST_HOPS = 16


def link_rate(generation: int | None, width: int | None) -> float | None:
    """Return what a link carries in one direction [byte/second]; None where it is not known.

    >>> print(round(link_rate(5, 16) / 1e9, 1), round(link_rate(4, 16) / 1e9, 1), link_rate(None, 16))
    63.0 31.5 None
    """
    if generation not in LANE or not width:
        return None
    return LANE[generation] * width


def hops(address: str, root: Path = SYSFS) -> tuple[LinkHop, ...]:
    """Return the device and each bridge above it, nearest first; empty where the kernel shows none."""
    found: list[LinkHop] = []
    try:
        place = (root / address).resolve(strict=True)
    except OSError:
        return ()
    while len(found) < _MOST_HOPS and (place / "class").exists():
        name = "device" if not found else f"bridge {len(found)}"
        hop = LinkHop(
            hop=name,
            generation=_generation(place / "current_link_speed"),
            width=_number(place / "current_link_width"),
            generation_max=_generation(place / "max_link_speed"),
            width_max=_number(place / "max_link_width"),
        )
        if hop.generation is not None or hop.width is not None or not found:
            found.append(hop)
        place = place.parent
    return tuple(found)


def numa_node(address: str, root: Path = SYSFS) -> int | None:
    """Return the NUMA node of a device; None where the kernel does not say, as in virtual machines."""
    node = _number(root / address / "numa_node", least=0)
    return node


def slowest(path: tuple[LinkHop, ...]) -> LinkHop | None:
    """Return the hop that carries least; None where no hop says what it carries."""
    rated = [(rate, at) for at, hop in enumerate(path) if (rate := link_rate(hop.generation, hop.width))]
    return path[min(rated)[1]] if rated else None


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return ""


def _generation(file: Path) -> int | None:
    return _SPEEDS.get(_text(file).split(" ")[0])


def _number(file: Path, least: int = 1) -> int | None:
    text = _text(file)
    return int(text) if text.isdigit() and int(text) >= least else None
