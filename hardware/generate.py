"""Write the built-in hardware profiles from a file of collected facts.

    python hardware/generate.py FACTS.yaml MEASUREMENTS.jsonl

FACTS lists accelerators and the machines around them, each value with its source and how it was
read; MEASUREMENTS lists copy rates, one run a line.  What neither holds (efficiencies, copy latency,
compute capability, which run belongs to which product, which drives an instance has) stands in
`additions.json` beside this script, with its own sources.  `parts.py` writes hosts, drives, NICs and
instances into folders of their own.
Run `python -m kvcalc.catalog.table` afterwards.
"""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import parts
from writing import ADDITIONS, HERE, Page, save, scaled

from kvcalc.documents import read

PREFILL_FIT = json.loads((HERE / "prefill_fit.json").read_text(encoding="utf-8"))
ASSUMED_LINK_SHARE = 0.87
"""Share of the raw rate that large pinned copies reach, where this product was not measured:
the middle of the 0.86 to 0.90 that most links show."""
LINK_SHARE_RANGE = (0.8, 0.9)
"""What bare machines show on PCIe 4 and 5, from the A10 (0.80) to the RTX 5090 (0.90)."""
GENERIC = "PCIe {gen}.0 x{lanes}"
FIELDS = {
    "memory.bandwidth_gb_s": ("device.bandwidth", "GB/s"),
    "memory.driver_total_mib": ("device.capacity", "MiB"),
    "memory.gpu_mib": ("device.capacity", "MiB"),
    "memory.capacity": ("device.capacity", "B"),
    "memory.marketed_gb": ("device.marketed_capacity", "GB"),
    "host_link.per_direction_gb_s": ("host_to_device.nominal", "GB/s"),
    "tdp_w": ("device.power", "W"),
}


def other_figures(accelerator: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return what other sources print, by the dotted key of the value that they contradict."""
    found: dict[str, list[str]] = {}
    for entry in accelerator.get("disagrees") or []:
        key, unit = FIELDS.get(entry["field"], ("", ""))
        if entry["field"].startswith("dense_peak_tflops."):
            key, unit = "device.flops." + entry["field"].rpartition(".")[2], "TFLOP/s"
        if key:
            figure = scaled(entry["v"], unit) if isinstance(entry["v"], int | float) else entry["v"]
            reason = f" ({entry['note']})" if entry.get("note") else ""
            place = ADDITIONS["short_names"].get(entry["src"], entry["src"])
            found.setdefault(key, []).append(f"{place}: {figure}{reason}")
    return found


def capacity(page: Page, entry: Mapping[str, Any], vendor: str, unified: bool, name: str) -> dict[str, Any]:
    """Return what the driver shows, or the marketed size reduced as on sibling products."""
    others = other_figures(entry).get("device.capacity", [])
    memory = entry["memory"]
    if "driver_total_mib" in memory:
        return page.fact(memory["driver_total_mib"], "MiB", others)
    family = "unified" if unified and vendor != "Apple" else vendor
    rule = ADDITIONS["capacity"].get(name) or ADDITIONS["capacity"][family]
    if "value" in rule:
        return page.value(rule["value"], "assumed", rule["from"], note=rule["note"])
    gib = memory["marketed_gb"]["v"]
    bounds = [f"{share * gib:.5g} GiB" for share in rule["range"]] if "range" in rule else None
    text = f"{rule['share'] * gib:.5g} GiB"
    return page.value(text, "assumed", memory["marketed_gb"]["src"], range=bounds, note=rule["note"])


def link(
    page: Page, entry: Mapping[str, Any], way: str, name: str, runs: Mapping[str, Any]
) -> dict[str, Any]:
    """Return one direction between host and device."""
    host, bandwidth = entry["host_link"], entry["memory"]["bandwidth_gb_s"]
    if host["kind"] == "unified":
        raw = bandwidth["v"] / 2
        nominal = page.value(
            scaled(raw, "GB/s"),
            "derived",
            bandwidth["src"],
            note="half the memory bandwidth: a copy inside one DRAM reads and writes each byte",
        )
        via = "shared DRAM"
    elif host["kind"] == "c2c":
        raw = host["c2c_per_direction_gb_s"]["v"]
        nominal = page.fact(host["c2c_per_direction_gb_s"], "GB/s", [])
        via = "NVLink-C2C"
    else:
        raw = host["per_direction_gb_s"]["v"]
        others = other_figures(entry).get("host_to_device.nominal", []) if way == "h2d" else []
        nominal = page.fact(host["per_direction_gb_s"], "GB/s", others)
        via = GENERIC.format(gen=host["pcie_gen"], lanes=host["pcie_lanes"])
    return {
        "via": via,
        "bandwidth": copy_rate(page, way, name, runs, raw),
        "nominal": nominal,
        "latency": latency(page, entry["vendor"], name),
    }


def copy_rate(page: Page, way: str, name: str, runs: Mapping[str, Any], raw: float) -> dict[str, Any]:
    """Return the measured copy rate of this product, or an assumed one."""
    chosen = ADDITIONS["links"].get(name, {}).get(way)
    if chosen is None:
        bounds = [scaled(share * raw, "GB/s") for share in LINK_SHARE_RANGE]
        note = f"{ASSUMED_LINK_SHARE:.0%} of the raw rate; this product was not measured"
        return page.value(
            scaled(ASSUMED_LINK_SHARE * raw, "GB/s"), "assumed", "link_share", range=bounds, note=note
        )
    run = runs[chosen["run"]]
    source = chosen["run"]
    page.sources[source] = {
        "what": f"{run['tool']} on {run['device']}",
        "url": run.get("source_url"),
        "read_on": run["read_on"],
    }
    details = [f"copied by {run['method']}"]
    if way != "p2p":
        details.append(f"{run['memory']} host memory")
    if run.get("buffer_bytes"):
        details.append(f"{run['buffer_bytes'] / 2**20:.4g} MiB buffers")
    if not run.get("source_url"):
        details.append("public log without a recorded address")
    if "note" in chosen:
        details.append(chosen["note"])
    bounds = [f"{bound:.10g} GB/s" for bound in run.get("range", [])]
    entry = {"value": f"{run['gb_s']:.10g} GB/s", "kind": chosen.get("kind", "measured"), "from": source}
    if bounds and bounds[0] != bounds[1]:
        entry["range"] = bounds
    return entry | {"note": "; ".join(details)}


def latency(page: Page, vendor: str, name: str) -> dict[str, Any]:
    """Return the fixed time per copy, fitted where this product was measured."""
    rules = ADDITIONS["latency"]
    rule = rules.get(name) or rules.get(vendor) or rules["other"]
    return page.value(rule["value"], rule["kind"], rule["from"], range=rule.get("range"), note=rule["note"])


def fitted(page: Page, which: str, name: str) -> dict[str, Any] | None:
    """Return a share of peak that `benchmarks/fit_prefill.py` fitted on published times, if it did."""
    for kind in PREFILL_FIT["kinds"]:
        if name in kind["machines"]:
            share, how = kind[which], "derived"
            rows = len(kind["rows"])
            note = f"fitted on {rows} published {'times' if rows > 1 else 'time'}, see prefill_fit.json"
        elif name in kind["siblings"]:
            share, how = kind[f"sibling_{which}"], "assumed"
            note = f"as on {kind['machines'][0]}, the same generation"
        else:
            continue
        return page.value(share["value"], how, kind["from"], range=share["range"], note=note)
    return None


def efficiency(page: Page, which: str, name: str, vendor: str) -> dict[str, Any]:
    """Return a share of peak with its range."""
    rules = ADDITIONS[which]
    rule = next((r for r in rules if name in r.get("machines", [])), None)
    rule = rule or next((r for r in rules if r.get("vendor") == vendor), None) or rules[-1]
    return page.value(rule["value"], rule["kind"], rule["from"], range=rule["range"], note=rule["note"])


def device(page: Page, entry: Mapping[str, Any], unified: bool, name: str) -> dict[str, Any]:
    """Return the memory, the rates and the power of one device."""
    memory, others = entry["memory"], other_figures(entry)

    def fact(value: Mapping[str, Any], unit: str, key: str) -> dict[str, Any]:
        return page.fact(value, unit, others.get(f"device.{key}", []))

    found: dict[str, Any] = {
        "capacity": capacity(page, entry, entry["vendor"], unified, name),
        "marketed_capacity": fact(memory["marketed_gb"], "GB", "marketed_capacity"),
        "bandwidth": fact(memory["bandwidth_gb_s"], "GB/s", "bandwidth"),
        "flops": {
            dtype: fact(rate, "TFLOP/s", f"flops.{dtype}")
            for dtype, rate in entry["dense_peak_tflops"].items()
        },
    }
    for rule in ADDITIONS["compute_capability"]:
        if name in rule["machines"]:
            kind, note = rule.get("kind", "nominal"), rule.get("note")
            found["compute_capability"] = page.value(rule["value"], kind, rule["from"], note=note)
    if "tdp_w" in entry:
        found["power"] = fact(entry["tdp_w"], "W", "power")
    if unified:
        found["unified"] = True
    return found


def efficiencies(page: Page, name: str, vendor: str) -> dict[str, Any]:
    """Return the shares of peak: fitted ones where there are any, else those of the rules."""
    prefill, attention = (fitted(page, f"{what}_efficiency", name) for what in ("prefill", "attention"))
    found = {"prefill_efficiency": prefill or efficiency(page, "prefill_efficiency", name, vendor)}
    if attention:
        found["attention_efficiency"] = attention
    return found | {"decode_efficiency": efficiency(page, "decode_efficiency", name, vendor)}


def profile(facts: Mapping[str, Any], entry: Mapping[str, Any], runs: Mapping[str, Any]) -> dict[str, Any]:
    """Return one machine as a document."""
    vendor, name = entry["vendor"], entry["id"].split("-", 1)[1]
    page, unified = Page(facts), entry["host_link"]["kind"] == "unified"
    document: dict[str, Any] = {
        "device": device(page, entry, unified, name),
        "host_to_device": link(page, entry, "h2d", name, runs),
        "device_to_host": link(page, entry, "d2h", name, runs),
    }
    peer = entry.get("device_interconnect")
    if peer:
        raw = page.fact({**peer, "v": peer["per_direction_gb_s"]}, "GB/s", [])
        rate = copy_rate(page, "p2p", name, runs, peer["per_direction_gb_s"])
        document["interconnect"] = {"via": peer["kind"], "bandwidth": rate, "nominal": raw}
    document |= efficiencies(page, name, vendor)
    named_already = entry["name"].startswith((vendor, "TPU", "Trainium", "Inferentia"))
    head: dict[str, Any] = {
        "schema": "kvcalc.hardware/1",
        "name": name,
        "title": entry["name"] if named_already else f"{vendor} {entry['name']}",
        "vendor": vendor,
        "aliases": [entry["id"], *ADDITIONS["aliases"].get(name, [])],
    }
    if "note" in entry:
        head["note"] = entry["note"]
    head["sources"] = page.cited()
    return head | document


def main(facts_file: str, runs_file: str) -> None:
    """Write one YAML file an accelerator, host, drive, NIC and instance."""
    facts = read(Path(facts_file))
    lines_of_runs = Path(runs_file).read_text(encoding="utf-8").splitlines()
    runs = {run["id"]: run for run in map(json.loads, lines_of_runs)}
    for entry in facts["accelerators"]:
        rates = entry["dense_peak_tflops"].keys() & {"fp32", "fp16", "bf16"}
        if entry["id"] in ADDITIONS["left_out"] or not rates or not (entry["host_link"] or {}).get("kind"):
            print(f"left out: {entry['id']}")
            continue
        save(HERE, profile(facts, entry, runs))
    for folder, document in parts.documents(facts):
        save(HERE / folder, document)


if __name__ == "__main__":
    main(*sys.argv[1:])
