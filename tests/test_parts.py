"""Hosts, drives, NICs and instances: what they are, their documents, and planning on an instance."""

import copy
import json
import os
from pathlib import Path

import pytest
import yaml

from kvcalc import api
from kvcalc.catalog import hardware, parts, table
from kvcalc.catalog.part_document import KINDS, part_from_document
from kvcalc.documents import parse_yaml
from kvcalc.errors import ProfileError, SettingsError, UnknownProfileError
from kvcalc.listings import hardware_answer, hardware_table

ROOT = Path(__file__).resolve().parents[1]
SHARED = Path(os.environ.get("KVCALC_SHARED", ROOT.parent / "shared"))
FILES = sorted(file for kind in table.PARTS for file in (ROOT / "hardware" / kind).glob("*.yaml"))
MIB, GIB = 2**20, 2**30


def every(kind):
    return {name: table.part(kind, name) for name in table.part_names(kind)}


# What they are


@pytest.mark.parametrize(
    ("name", "channels", "rate"),
    [("ddr4-3200-8ch", 8, 3200e6), ("ddr5-4800-12ch", 12, 4800e6), ("ddr5-5600-2ch", 2, 5600e6)],
)
def test_a_host_reads_eight_bytes_per_transfer_and_channel(name, channels, rate):
    host = table.part("hosts", name)
    assert host.channels == channels
    assert host.bandwidth == pytest.approx(channels * rate * 8, rel=1e-12)


def test_known_parts():
    assert table.part("drives", "samsung-pm1743").read_bandwidth == 14e9
    assert table.part("drives", "samsung-pm1743").read_iops == 2_500_000
    assert table.part("nics", "rdma-400g").bandwidth == 400e9 / 8
    assert (table.part("nics", "efa-v2-p5").bandwidth, table.part("nics", "efa-v2-p5").ports) == (400e9, 32)


@pytest.mark.parametrize(
    ("name", "accelerator", "gpus", "dram", "network"),
    [
        # DRAM as DescribeInstanceTypes and the Azure size pages state it.
        ("p5.48xlarge", "h100-sxm-80gb", 8, 2048 * GIB, 3200e9 / 8),
        ("g6e.12xlarge", "l40s", 4, 384 * GIB, 100e9 / 8),
        ("Standard_ND96isr_H100_v5", "h100-sxm-80gb", 8, 1900 * GIB, 3200e9 / 8),
        ("a3-highgpu-8g", "h100-sxm-80gb", 8, 1872 * GIB, 1000e9 / 8),
        # DIMMs: 32 x 64 GiB; soldered memory in GB; 8 x 400 + 2 x 400 Gbit/s.
        ("dgx-h100", "h100-sxm-80gb", 8, 2048 * GIB, 3200e9 / 8),
        ("gh200-node", "gh200-144gb", 1, 480e9, None),
        ("c885a-h200", "h200-sxm-141gb", 8, 24 * 96 * GIB, 4000e9 / 8),
        ("a4x-maxgpu-4g-metal", "gb300-288gb", 4, None, None),
    ],
)
def test_known_instances(name, accelerator, gpus, dram, network):
    instance = table.part("instances", name)
    assert (instance.accelerator, instance.gpus, instance.dram) == (accelerator, gpus, dram)
    assert instance.network == network


def test_instances_are_what_the_facts_say():
    facts_file = SHARED / "reference" / "hardware_facts.yaml"
    if not facts_file.is_file():
        pytest.skip("the collected facts are not beside the repository")
    facts = yaml.safe_load(facts_file.read_text(encoding="utf-8"))
    known, left_out = every("instances"), set()
    for entry in facts["cloud_instances"]:
        if entry["name"] not in known:
            left_out.add(entry["name"])
            continue
        instance = known[entry["name"]]
        assert instance.gpus == entry["count"]
        if "dram_mib" in entry:
            assert instance.dram == entry["dram_mib"] * MIB
        assert instance.drive_capacity == (entry["nvme_gb"] * 1e9 if "nvme_gb" in entry else None)
        # Every word and number of the accelerator's name is in the profile's title.
        title = hardware.load(instance.accelerator).title.replace(" ", "").lower()
        assert all(word.lower() in title for word in entry["accelerator"].split()), entry["name"]
        if entry["basis"] == "recalled":
            assert {value.kind for value in instance.provenance.values()} == {"assumed"}
    assert left_out == {"inf2.48xlarge", "trn1.32xlarge"}  # whose accelerators state no host link
    for kind, section in (("hosts", "host_memory"), ("drives", "nvme"), ("nics", "nic")):
        assert {entry["id"] for entry in facts[section]} <= set(table.part_names(kind))


def test_there_are_instances_of_three_clouds_and_servers():
    instances = every("instances").values()
    assert len(instances) >= 50
    assert {entry.provider for entry in instances} == {"aws", "azure", "gcp", "server"}


# What holds for every part


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_value_has_a_provenance_and_a_source_a_use(file):
    document = yaml.safe_load(file.read_text(encoding="utf-8"))
    part = table.part(file.parent.name, file.name.removesuffix(".yaml"))
    assert part == part_from_document(parse_yaml(file.read_text(encoding="utf-8"), file.name), "built-in")
    values = {key for key, entry in document.items() if isinstance(entry, dict) and "value" in entry}
    assert values == set(part.provenance)
    used = {entry.source for entry in part.provenance.values()}
    assert used == set(part.sources) == set(document["sources"])
    for entry in part.provenance.values():
        source = part.sources[entry.source]
        if "not opened" in source.title or "not opened" in (entry.note or ""):
            assert entry.kind == "assumed"
    assert document["name"] == part.name == file.name.removesuffix(".yaml")


def test_bounds_are_sane():
    for host in every("hosts").values():
        assert 20e9 < host.bandwidth < 2e12
        assert host.channels is None or host.channels in (2, 8, 12)
    for drive in every("drives").values():
        assert 0.3e9 < drive.read_bandwidth < 16e9
        # Small reads move less than large ones; a stated IOPS figure of 4 KiB cannot beat the link.
        assert 0.1 < drive.read_iops * 4096 / drive.read_bandwidth <= 1.1
    for nic in every("nics").values():
        assert 10e9 < nic.bandwidth <= 1e12
        # No port beyond 1600 Gbit/s.
        assert nic.bandwidth / (nic.ports or 1) <= 200e9
    for instance in every("instances").values():
        assert 1 <= instance.accelerators <= 16
        assert instance.accelerators == instance.gpus
        accelerator = hardware.load(instance.accelerator)
        assert accelerator.node is None
        if instance.dram is not None:
            # From 16 GB for one small GPU to 4 TB for eight large ones.
            assert 15e9 <= instance.dram / instance.gpus <= 1e12
        if instance.drives is not None:
            assert 0.1e12 < instance.drive_capacity / instance.drives < 8e12
            assert instance.drive in table.part_names("drives")
        if instance.network is not None:
            assert 0.3e9 < instance.network <= 800e9


def test_names_mean_one_thing_across_all_kinds():
    seen = [parts.plain_name(name) for name in table.names()] + list(table.aliases())
    for kind in table.PARTS:
        for part in every(kind).values():
            seen += [parts.plain_name(name) for name in (part.name, *part.aliases)]
    assert len(seen) == len(set(seen))


# Names


@pytest.mark.parametrize(
    "typed", ["p5.48xlarge", "P5.48XLARGE", "nd96isr_h100_v5", "Standard ND96isr H100 v5"]
)
def test_an_instance_is_a_machine(typed):
    machine = hardware.load(typed)
    assert machine.name == "h100-sxm-80gb"
    assert machine.node.instance.gpus == 8
    assert machine.cite("instance.dram").startswith("nominal, ")


@pytest.mark.parametrize(
    ("typed", "both"), [("p5", ("p5.48xlarge", "p5.4xlarge")), ("dgx", ("dgx-h100", "gb10"))]
)
def test_a_name_of_two_machines_is_refused_with_both(typed, both):
    with pytest.raises(
        UnknownProfileError, match=f"hardware '{typed}' may be {' or '.join(both)}; say which"
    ):
        hardware.load(typed)


def test_what_is_no_machine_is_refused():
    with pytest.raises(UnknownProfileError, match="generic-gen4 is one of the drives, not a machine"):
        hardware.load("generic-gen4")
    with pytest.raises(UnknownProfileError, match=r"'p5.49xlarge', did you mean .*'p5.48xlarge'"):
        hardware.load("p5.49xlarge")
    with pytest.raises(UnknownProfileError, match=r"may be ddr5-.* or ddr5-6400-8ch; say which"):
        hardware_answer("ddr5")


# Documents of one's own


def example():
    return {
        "schema": "kvcalc.instance/1",
        "name": "lab",
        "title": "A server of ours",
        "sources": {"sticker": {"title": "Its sticker"}},
        "provider": "us",
        "accelerator": "l4",
        "drive": "generic-gen4",
        "accelerators": {"value": 2, "kind": "nominal", "from": "sticker"},
        "dram": {"value": "256 GiB", "kind": "nominal", "from": "sticker"},
        "drives": {"value": 4, "kind": "nominal", "from": "sticker"},
        "drive_capacity": {"value": "8 TB", "kind": "nominal", "from": "sticker"},
    }


def test_an_instance_of_ones_own(tmp_path, monkeypatch):
    (tmp_path / "lab.json").write_text(json.dumps(example()), encoding="utf-8")
    assert hardware.load(str(tmp_path / "lab.json")).node.instance.dram == 256 * GIB
    monkeypatch.setenv("KVCALC_PATH", str(tmp_path))
    machine = hardware.load("lab")
    assert (machine.name, machine.node.instance.gpus, machine.node.drive.name) == ("l4", 2, "generic-gen4")
    shown = hardware_answer("lab")
    assert (shown.kind, shown.name, shown.via["accelerator"]) == ("instances", "lab", "l4")


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("schema", "kvcalc.instanse/1", r"schema: unknown schema .*did you mean 'kvcalc\.instance/1'"),
        ("accelerator", None, r"accelerator: expected text"),
        ("dran", {}, r"dran: unknown key, did you mean 'dram'"),
        ("dram", {"value": "256", "kind": "nominal", "from": "sticker"}, r"dram\.value: '256' has no unit"),
        ("dram", {"value": "1 GB/s", "kind": "nominal", "from": "sticker"}, r"dram\.value: .* not a byte"),
        ("drives", {"value": -1, "kind": "nominal", "from": "sticker"}, r"drives\.value: must be positive"),
        ("drives", {"value": 1, "kind": "nominal", "from": "box"}, r"drives\.from: 'box' is not listed"),
    ],
)
def test_a_wrong_document_names_file_and_key(key, value, message):
    document = copy.deepcopy(example()) | {key: value}
    with pytest.raises(ProfileError, match=r"^lab\.yaml: " + message):
        part_from_document(document, "lab.yaml")


def test_each_schema_has_a_folder():
    assert set(KINDS.values()) == set(table.PARTS.values())


# Lists


@pytest.mark.parametrize(("kind", "least"), [("hosts", 10), ("drives", 10), ("nics", 10), ("instances", 50)])
def test_lists(kind, least):
    listed = hardware_table(kind=kind)
    assert len(listed.rows) >= least
    assert {len(row) for row in listed.rows} == {len(listed.columns)}
    assert listed.notes[0].startswith(f"{len(listed.rows)} {kind}; ")


def test_a_list_says_where_else_a_name_is():
    assert hardware_table("p5.").rows == ()
    assert "4 instances (--kind instances)" not in hardware_table("p5.").notes[-1]
    assert "2 instances (--kind instances)" in hardware_table("p5.").notes[-1]
    with pytest.raises(SettingsError, match="--kind: unknown kind 'drive', did you mean 'drives'"):
        hardware_table(kind="drive")


def test_values_of_a_part_are_not_set():
    with pytest.raises(SettingsError, match=r"--set: p5\.48xlarge is one of the instances"):
        hardware_answer("p5.48xlarge", {"dram": "1 TB"})


# Planning on an instance


def test_a_plan_on_an_instance_uses_all_of_it():
    plan = api.plan("llama-3.1-70b", on="p5.48xlarge")
    assert (plan.inputs["gpus"], plan.inputs["tp"]) == (8, 8)
    alone = api.plan("llama-3.1-70b", on="h100-sxm-80gb", gpus=8)
    assert plan.memory == alone.memory
    assert [row.tier for row in plan.offload] == ["dram", "nvme"]
    assert [row.tier for row in alone.offload] == ["dram"]


def test_gpus_of_an_instance_share_its_drives():
    # 8 drives of 3.5 GB/s each for 8 GPUs; 4 of them for 2 GPUs of 4, and never beyond the host link.
    rate = {row.tier: row.bandwidth for row in api.plan("llama-3.1-70b", on="p5.48xlarge").offload}
    assert rate["nvme"] == 8 * 3.5e9 / 8
    rate = {row.tier: row.bandwidth for row in api.plan("llama-3.1-8b", on="p5.48xlarge", tp=2).offload}
    assert rate["nvme"] == 8 * 3.5e9 / 2
    rate = {row.tier: row.bandwidth for row in api.plan("llama-3.1-8b", on="g6.48xlarge", tp=1).offload}
    assert rate["nvme"] == rate["dram"] == hardware.load("l4").host_to_device.bandwidth


def test_a_part_of_an_instance_may_be_used():
    assert api.plan("llama-3.1-8b", on="g6e.12xlarge", tp=2).inputs["gpus"] == 2
    plan = api.plan("llama-3.1-8b", on="g6e.12xlarge", dp=4)
    assert (plan.inputs["gpus"], plan.inputs["tp"]) == (4, 1)
