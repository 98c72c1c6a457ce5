"""Facts of the machine around the devices, from the kernel; no host name, no user, no serial number."""

import math
import os
import platform
import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from kvcalc.probe.backends.host import cpu_list
from kvcalc.probe.results import Environment, NumaNode

LOW_MEMLOCK = 2**30
"""RLIMIT_MEMLOCK below which pinning pools fails [byte]."""
NO_LIMIT = 2**60
"""A limit of a cgroup above which there is none [byte]: the kernel writes almost 2**63."""

ROOT = Path("/")


def environment_of(torch: Any = None, driver: str | None = None, root: Path = ROOT) -> Environment:  # noqa: ANN401
    """Return the facts, each read anew."""
    memory = memory_info(root)
    version = getattr(torch, "version", None)
    kernel = _text(root / "proc/version")
    return Environment(
        os=platform.system().lower(),
        kernel=_kernel_version(),
        python=platform.python_version(),
        numpy=np.__version__,
        torch=None if torch is None else str(torch.__version__),
        cuda=getattr(version, "cuda", None),
        hip=getattr(version, "hip", None),
        driver=driver,
        cpu=_cpu_model(root),
        cpus=float(os.cpu_count() or 1),
        cpus_allowed=float(allowed_cpus(root)),
        memory=memory["MemTotal"],
        memory_available=memory["MemAvailable"],
        last_level_cache=last_level_cache(root),
        numa_nodes=numa_nodes(root),
        container=_is_container(root),
        wsl="microsoft" in kernel.lower(),
        hypervisor=" hypervisor" in _text(root / "proc/cpuinfo"),
        memlock=_memlock(),
        cgroup_memory=cgroup_memory(root),
        huge_pages=_huge_pages(root),
    )


def flags_of(now: Environment, before: Environment | None = None) -> tuple[str, ...]:
    """Return what of the machine a reader of its figures has to know."""
    found = {
        "wsl": now.wsl,
        "memlock": now.memlock is not None and float(now.memlock) < LOW_MEMLOCK,
        "cgroup_limit": now.cgroup_memory is not None,
        "fewer_cpus": float(now.cpus_allowed) < float(now.cpus),
        "memory_grows": before is not None and now.memory != before.memory,
    }
    return tuple(name for name, holds in found.items() if holds)


def allowed_cpus(root: Path = ROOT) -> int:
    """Return how many CPUs this process may use, by its affinity and by its cgroup's quota."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = cgroup_cpus(root)
    return count if quota is None else max(1, min(count, math.ceil(quota)))


def memory_info(root: Path = ROOT) -> dict[str, float]:
    """Return total and available memory [byte]; half of the total counts as available where none is told."""
    found = {
        name: float(kib) * 1024
        for name, kib in re.findall(r"^(\w+):\s+(\d+) kB", _text(root / "proc/meminfo"), re.MULTILINE)
    }
    if "MemTotal" not in found:
        with suppress(AttributeError, ValueError, OSError):
            found["MemTotal"] = float(os.sysconf("SC_PAGE_SIZE")) * os.sysconf("SC_PHYS_PAGES")
    total = found.get("MemTotal", 4e9)
    limit = cgroup_memory(root)
    available = min(found.get("MemAvailable", total / 2), limit if limit is not None else float("inf"))
    return {"MemTotal": total, "MemAvailable": available}


def last_level_cache(root: Path = ROOT) -> float | None:
    """Return the size of the largest cache of the first CPU [byte]."""
    sizes = []
    for file in (root / "sys/devices/system/cpu/cpu0/cache").glob("index*/size"):
        match = re.fullmatch(r"(\d+)([KM]?)", _text(file))
        if match:
            sizes.append(int(match[1]) * {"K": 2**10, "M": 2**20, "": 1}[match[2]])
    return float(max(sizes)) if sizes else None


def numa_nodes(root: Path = ROOT) -> tuple[NumaNode, ...]:
    """Return the nodes of memory; one without CPUs is taken for a device's."""
    found = []
    for folder in sorted((root / "sys/devices/system/node").glob("node[0-9]*")):
        cpus = len(cpu_list(_text(folder / "cpulist")))
        total = re.search(r"MemTotal:\s+(\d+) kB", _text(folder / "meminfo"))
        memory = float(total[1]) * 1024 if total else 0.0
        # On Grace systems the GPU's memory is a node without CPUs; a buffer there is no host buffer.
        found.append(NumaNode(int(folder.name.removeprefix("node")), float(cpus), memory, cpus == 0))
    return tuple(found)


def cgroup_memory(root: Path = ROOT) -> float | None:
    """Return the least memory limit of this process's cgroup and of those above it [byte]; None for none."""
    found = [
        float(text)
        for controller, name in (("", "memory.max"), ("memory", "memory.limit_in_bytes"))
        for folder in _cgroups(root, controller)
        if (text := _text(folder / name)).isdigit() and int(text) < NO_LIMIT
    ]
    return min(found, default=None)


def cgroup_cpus(root: Path = ROOT) -> float | None:
    """Return how many CPUs' time the cgroup of this process may use, such as 1.5; None without a quota."""
    pairs = [_text(folder / "cpu.max").split() for folder in _cgroups(root, "")]
    pairs += [
        [_text(folder / "cpu.cfs_quota_us"), _text(folder / "cpu.cfs_period_us")]
        for folder in _cgroups(root, "cpu")
    ]
    found = [
        int(pair[0]) / int(pair[1])
        for pair in pairs
        if len(pair) == 2 and all(part.isdigit() and int(part) > 0 for part in pair)
    ]
    return min(found, default=None)


def _cgroups(root: Path, controller: str) -> list[Path]:
    """Return the folders of this process's cgroup and of those above it; version 2 has no controller."""
    base = root / "sys/fs/cgroup"
    own = ""
    for line in _text(root / "proc/self/cgroup").splitlines():
        _, controllers, path = (*line.split(":", 2), "", "")[:3]
        if controller in controllers.split(","):
            own = path.strip("/")
    base = base / controller if controller else base
    place = base / own if own and ".." not in own.split("/") else base
    return [place, *(above for above in place.parents if above == base or base in above.parents)]


def _kernel_version() -> str:
    """Return the numbers of the kernel's version; what builders append may name a machine."""
    match = re.match(r"\d+(?:\.\d+)*", platform.release())
    return match[0] if match else "unknown"


def _cpu_model(root: Path) -> str:
    match = re.search(r"^model name\s*:\s*(.+)$", _text(root / "proc/cpuinfo"), re.MULTILINE)
    return match[1].strip() if match else platform.machine() or sys.platform


def _is_container(root: Path) -> bool:
    marks: Sequence[Path] = (root / ".dockerenv", root / "run/.containerenv")
    return any(mark.exists() for mark in marks) or "kubepods" in _text(root / "proc/1/cgroup")


def _memlock() -> float | None:
    try:
        import resource
    except ImportError:  # Windows
        return None
    soft, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    return None if soft == resource.RLIM_INFINITY else float(soft)


def _huge_pages(root: Path) -> str | None:
    match = re.search(r"\[(\w+)\]", _text(root / "sys/kernel/mm/transparent_hugepage/enabled"))
    return match[1] if match else None


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
