"""Hosts, drives, NICs and instances as documents, from the same collected facts as the accelerators."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from writing import HERE, KINDS, Page, scaled

PARTS = json.loads((HERE / "parts.json").read_text(encoding="utf-8"))
"""What the facts do not hold: titles, remarks, which accelerator a name means, which drives there are."""

Document = dict[str, Any]


def documents(facts: Mapping[str, Any]) -> Iterator[tuple[str, Document]]:
    """Yield folder and document of every part; what cannot be written is printed with its reason."""
    for entry in facts["host_memory"]:
        yield "hosts", host(Page(facts), entry)
    for entry in facts["nvme"]:
        yield "drives", drive(Page(facts), entry)
    for name, entry in PARTS["more_drives"].items():
        yield "drives", drive(Page(facts), {"id": name, **entry})
    for entry in facts["nic"]:
        yield "nics", nic(Page(facts), entry)
    for entry in [*facts["cloud_instances"], *map(server, facts["host_platforms"])]:
        if entry.get("accelerator") in PARTS["accelerators"]:
            yield "instances", instance(Page(facts), entry)
        else:
            print(f"left out: {entry['name']} ({entry.get('accelerator')} has no profile)")


def host(page: Page, entry: Mapping[str, Any]) -> Document:
    """Return the DRAM of one socket or module."""
    values: Document = {}
    if "channels" in entry:
        values["channels"] = figure(page, entry, entry["channels"], "")
    values["bandwidth"] = figure(page, entry, entry["gb_s"], "GB/s")
    return profile(page, "host", entry["id"], entry["what"], {}, values)


def drive(page: Page, entry: Mapping[str, Any]) -> Document:
    """Return one NVMe drive."""
    values = {
        "read_bandwidth": figure(page, entry, entry["seq_read_gb_s"], "GB/s"),
        "read_iops": figure(page, entry, entry["rand4k_read_iops"], "/s"),
    }
    title = entry["id"].replace("-", " ")
    return profile(page, "drive", entry["id"], title, {"via": entry["link"].replace("PCIe", "PCIe ")}, values)


def nic(page: Page, entry: Mapping[str, Any]) -> Document:
    """Return one NIC, or all NICs of a node where they are sold as one fabric."""
    values = {"bandwidth": figure(page, entry, entry["gbit_s"], "Gbit/s")}
    if "nics" in entry:
        values["ports"] = figure(page, entry, entry["nics"], "")
    via = {"via": entry["host_link"].replace("PCIe", "PCIe ")} if "host_link" in entry else {}
    return profile(page, "nic", entry["id"], entry.get("product", entry["id"]), via, values)


def server(entry: Mapping[str, Any]) -> Document:
    """Return a server that one buys in the form of a cloud instance, its texts read into numbers."""
    gpus = re.fullmatch(r"(\d+)x (.+)", entry["gpus"])
    modules = re.search(r"(\d+)x (\d+)Gi?B", entry.get("dram", ""))
    soldered = re.match(r"(\d+) GB", entry.get("dram", ""))
    drives = re.match(r"(\d+)x ([\d.]+) TB", entry.get("nvme", ""))
    disks = re.match(r"([\d.]+) TB", entry.get("nvme", ""))
    found: Document = {
        "name": entry["id"],
        "provider": "server",
        "src": entry["src"],
        "basis": entry["basis"],
    }
    found["accelerator"] = gpus[2] if gpus else entry["gpus"]
    found["count"] = int(gpus[1]) if gpus else None
    if modules:  # DIMMs are sold in GB and hold GiB
        found["dram_mib"] = int(modules[1]) * int(modules[2]) * 1024
    elif soldered:
        found["dram_gb"] = int(soldered[1])
    if drives:
        found |= {"drives": int(drives[1]), "nvme_gb": round(int(drives[1]) * float(drives[2]) * 1000)}
    elif disks:
        found["nvme_gb"] = round(float(disks[1]) * 1000)
    ports = [(int(count), int(rate)) for count, rate in re.findall(r"(\d+)x (\d+)", entry.get("nic", ""))]
    if ports:
        found["network_gbit_s"] = sum(count * rate for count, rate in ports)
        found["nics"] = sum(count for count, _ in ports)
    return found


def instance(page: Page, entry: Mapping[str, Any]) -> Document:
    """Return one machine type with its accelerators, memory, drives and network."""
    name, provider = entry["name"], entry["provider"]
    texts = {"provider": provider, "accelerator": PARTS["accelerators"][entry["accelerator"]]}
    values = {"accelerators": figure(page, entry, entry["count"], "")}
    if "vcpu" in entry:
        values["vcpus"] = figure(page, entry, entry["vcpu"], "")
    if "dram_mib" in entry:
        values["dram"] = figure(page, entry, entry["dram_mib"], "MiB")
    elif "dram_gb" in entry:
        values["dram"] = figure(page, entry, entry["dram_gb"], "GB")
    elif name in PARTS["dram"]:
        rule = PARTS["dram"][name]
        values["dram"] = page.value(rule["value"], rule["kind"], rule["from"], note=rule["note"])
    if "nvme_gb" in entry:
        values["drive_capacity"] = figure(page, entry, entry["nvme_gb"], "GB")
        if "drives" in entry:
            values["drives"] = figure(page, entry, entry["drives"], "")
        elif name in PARTS["drives"]:
            note = "number of drives recalled, the page was not opened"
            source = PARTS["drive_pages"][provider]
            values["drives"] = page.value(PARTS["drives"][name], "assumed", source, note=note)
        texts["drive"] = PARTS["drive_models"].get(name) or PARTS["drive_models"][provider]
    if "network_gbit_s" in entry:
        values["network"] = figure(page, entry, entry["network_gbit_s"], "Gbit/s")
    if "nics" in entry:
        values["ports"] = figure(page, entry, entry["nics"], "")
    title = f"{PARTS['providers'][provider]}, {entry['count']} x {entry['accelerator']}"
    return profile(page, "instance", name, title, texts, values)


def figure(page: Page, entry: Mapping[str, Any], number: float, unit: str) -> Document:
    """Return one collected figure with its pedigree; a count has no unit."""
    note = "recalled, the page was not opened" if entry["basis"] == "recalled" else ""
    text = scaled(number, unit) if unit not in ("", "/s") else number if not unit else f"{number}/s"
    return page.value(text, KINDS[entry["basis"]], entry["src"], note=note)


def profile(
    page: Page, kind: str, name: str, title: str, texts: Mapping[str, str], values: Mapping[str, Any]
) -> Document:
    """Return a part as a document, with the remarks and other names that the additions have for it."""
    document: Document = {"schema": f"kvcalc.{kind}/1", "name": name, "title": title}
    aliases = [name.removeprefix("Standard_")] if name.startswith("Standard_") else []
    if aliases:
        document["aliases"] = aliases
    if name in PARTS["notes"]:
        document["note"] = PARTS["notes"][name]
    return document | {"sources": page.cited()} | dict(texts) | dict(values)
