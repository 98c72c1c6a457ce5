"""docs/hardware.md: every machine, each value marked by how it is known."""

import re
from collections import Counter, defaultdict

from docs.writers.markdown import document, escape, prose, table
from docs.writers.source import remark
from kvcalc import profiles
from kvcalc.catalog import hardware
from kvcalc.listings import hardware_table
from kvcalc.output.fields import shown
from kvcalc.output.format import binary_text, human
from kvcalc.profiles import Hardware

MARKS = {"measured": "m", "nominal": "n", "derived": "d", "assumed": "a"}
"""Letter of each kind of value."""

FLOPS = ("bf16", "fp8", "fp4")
"""Dense rates that the table shows; a machine without a unit for one has none."""


def page() -> str:
    """Return the page."""
    machines = [hardware.load(name) for name in hardware.names()]
    vendors: dict[str, list[Hardware]] = defaultdict(list)
    for machine in machines:
        vendors[machine.vendor].append(machine)
    kinds = Counter(found.kind for machine in machines for found in machine.provenance.values())
    tally = ", ".join(f"{kinds[kind]:,} {kind} ({mark})" for kind, mark in MARKS.items())
    blocks = []
    for vendor, own in sorted(vendors.items()):
        blocks += [f"## {escape(vendor)}", _table(own)]
    return document(
        "Machines",
        "the profiles in `hardware/`",
        f"{len(machines)} machines with {sum(kinds.values()):,} values: {tally}. The letter behind a "
        "value says which.",
        _kinds(),
        "Memory is what the driver reports, in GiB; rates are decimal. Matrix rates are dense. Links are "
        "one "
        "direction: what large copies reach. Shares are low to high, of the peak (prefill) and of memory "
        "bandwidth "
        "(decode). Each profile has every value as its source prints it; `kvcalc hardware show NAME` "
        "prints them.",
        *blocks,
        *_parts("instances", "Machines that one rents or buys whole; `--on` takes them too."),
        *_parts("hosts", "DRAM of one socket or module, all channels together, on paper."),
        *_parts("drives", "Large sequential reads, and random reads of 4 KiB."),
        *_parts("nics", "One direction, all ports together."),
    )


def _parts(kind: str, about: str) -> list[str]:
    """Return the section of one kind of part: its list, as `kvcalc hardware list --kind` shows it."""
    listed = hardware_table(kind=kind)
    header = [column.name.replace("_", " ") for column in listed.columns]
    rows = [
        [f"[{row[0]}](../hardware/{kind}/{row[0]}.yaml)"]
        + [shown(column, item) for column, item in zip(listed.columns[1:], row[1:], strict=True)]
        for row in listed.rows
    ]
    align = "".join("r" if column.unit else "l" for column in listed.columns)
    return [f"## {kind.capitalize() if kind != 'nics' else 'NICs'}", about, table(header, rows, align)]


def _kinds() -> str:
    """Return what each kind of value means, as it stands under `Kind`, one a line."""
    text = " ".join(remark(profiles, "Kind").split("\n\n", 1)[-1].split())
    told = [sentence.partition(": ") for sentence in re.split(r"(?<=\.) (?=\w+: )", text)]
    return "\n".join(f"- *{kind}*: {prose(meaning)}" for kind, _, meaning in told)


def _table(machines: list[Hardware]) -> str:
    header = [
        *("machine", "memory", "bandwidth", *(f"{dtype} rate" for dtype in FLOPS)),
        *("host to device", "device to host", "between devices", "prefill share", "decode share"),
    ]
    return table(header, map(_row, machines), "l" + "r" * 10)


def _row(machine: Hardware) -> list[str]:
    device, between = machine.device, machine.interconnect

    def marked(text: str, key: str) -> str:
        found = machine.provenance.get(key)
        return f"{text} {MARKS[found.kind]}" if found else text

    return [
        f"[{machine.name}](../hardware/{machine.name}.yaml)",
        marked(binary_text(device.capacity), "device.capacity"),
        marked(human(device.bandwidth, "byte/second"), "device.bandwidth"),
        *(
            marked(human(device.flops[dtype], "flop/second"), f"device.flops.{dtype}")
            if dtype in device.flops
            else "-"
            for dtype in FLOPS
        ),
        *(
            marked(human(getattr(machine, link).bandwidth, "byte/second"), f"{link}.bandwidth")
            for link in ("host_to_device", "device_to_host")
        ),
        marked(human(between.bandwidth, "byte/second"), "interconnect.bandwidth") if between else "-",
        *(
            marked(f"{band.low:.0%} to {band.high:.0%}", name)
            for name, band in (
                ("prefill_efficiency", machine.prefill_efficiency),
                ("decode_efficiency", machine.decode_efficiency),
            )
        ),
    ]
