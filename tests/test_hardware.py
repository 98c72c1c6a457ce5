"""The built-in machines, their documents, their table, and `--set`."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import yaml

from kvcalc.catalog import hardware, table
from kvcalc.catalog.hardware_document import hardware_from_document
from kvcalc.documents import parse_yaml
from kvcalc.errors import SettingsError, UnknownProfileError

ROOT = Path(__file__).resolve().parents[1]
SHARED = Path(os.environ.get("KVCALC_SHARED", ROOT.parent / "shared"))
FILES = sorted((ROOT / "hardware").glob("*.yaml"))
GIB = 2**30


@pytest.fixture(scope="module")
def machines():
    return table.rows()


def leaves(data):
    """Count the numbers in plain data, by a walk that knows nothing of profiles."""
    if isinstance(data, dict):
        return sum(leaves(part) for part in data.values())
    return int(isinstance(data, int | float) and not isinstance(data, bool))


def values(data):
    """Yield the dotted keys that hold a value with a pedigree."""
    for key, part in data.items():
        if isinstance(part, dict) and "value" in part:
            yield key
        elif isinstance(part, dict):
            yield from (f"{key}.{rest}" for rest in values(part))


# What the machines are


@pytest.mark.parametrize(
    ("name", "capacity", "bandwidth", "bf16", "to_device", "compute_capability"),
    [
        # Driver totals in MiB as nvidia-smi prints them; rates as the data sheets do.
        ("a100-sxm-40gb", 40960, 1.555e12, 312e12, 25.13e9, 8.0),
        ("a100-sxm-80gb", 81920, 2.039e12, 312e12, None, 8.0),
        ("h100-sxm-80gb", 81559, 3.35e12, 989e12, 55.36e9, 9.0),
        ("h100-pcie-80gb", 81559, 2.0e12, 756e12, None, 9.0),
        ("h200-sxm-141gb", 143771, 4.8e12, 989e12, 55.43e9, 9.0),
        ("b200-sxm-180gb", 183359, 7.7e12, 2250e12, None, 10.0),
        ("gh200-96gb", 97871, 4.0e12, 989e12, 346e9, 9.0),
        ("l4", 23034, 300e9, 121e12, None, 8.9),
        ("l40s", 46068, 864e9, 362e12, None, 8.9),
        ("a10", 23028, 600e9, 125e12, 25.17e9, 8.6),
        ("rtx-3090", 24576, 936e9, 71.2e12, None, 8.6),
        ("rtx-4090", 24564, 1.008e12, 165.2e12, 25.6e9, 8.9),
        ("rtx-5090", 32607, 1.792e12, 209.5e12, 56.35e9, 12.0),
        ("mi300x", 196592, 5.3e12, 1307e12, 57.3e9, None),
    ],
)
def test_known_machines(name, capacity, bandwidth, bf16, to_device, compute_capability):
    machine = hardware.load(name)
    assert machine.device.capacity == capacity * 2**20
    assert machine.device.bandwidth == pytest.approx(bandwidth, rel=1e-12)
    assert machine.device.peak("bf16") == pytest.approx(bf16, rel=1e-12)
    assert machine.device.compute_capability == compute_capability
    link, kind = machine.host_to_device, machine.provenance["host_to_device.bandwidth"].kind
    if to_device is None:
        assert kind == "assumed"
    else:
        assert (link.bandwidth, kind) == (pytest.approx(to_device, rel=1e-12), "measured")


def test_an_unmeasured_link_is_assumed_at_87_percent_of_its_raw_rate():
    link = hardware.load("l40s").host_to_device
    assert link.nominal == 31.5e9
    assert link.bandwidth == pytest.approx(27.405e9, rel=1e-12)  # 0.87 x 31.5


def test_formats_without_a_unit_are_widened():
    assert hardware.load("a100-sxm-80gb").device.peak("fp8") == 312e12  # no fp8 unit: bf16
    assert hardware.load("v100-sxm2-32gb").device.peak("bf16") == 125e12  # no bf16 unit: fp16
    assert hardware.load("h100-sxm-80gb").device.peak("fp8") == 1979e12
    with pytest.raises(SettingsError, match="no dense rate for 'fp64' of this machine; known are bf16"):
        hardware.load("h100-sxm-80gb").device.peak("fp64")


def test_capacities_are_the_drivers_where_the_facts_have_one(machines):
    facts_file = SHARED / "reference" / "hardware_facts.yaml"
    if not facts_file.is_file():
        pytest.skip("the collected facts are not beside the repository")
    facts = yaml.safe_load(facts_file.read_text(encoding="utf-8"))["accelerators"]
    known = {entry["id"].split("-", 1)[1]: entry["memory"] for entry in facts}
    checked = 0
    for name, machine in machines.items():
        if "driver_total_bytes" in known[name]:
            assert machine.device.capacity == known[name]["driver_total_bytes"]["v"], name
            checked += 1
        else:
            assert machine.provenance["device.capacity"].kind == "assumed", name
    assert checked >= 45


def test_nothing_is_measured_that_was_not(machines):
    runs_file = SHARED / "reference" / "measured_bandwidth.jsonl"
    if not runs_file.is_file():
        pytest.skip("the collected measurements are not beside the repository")
    runs = {run["id"]: run for run in map(json.loads, runs_file.read_text().splitlines())}
    ways = {
        "host_to_device.bandwidth": "h2d",
        "device_to_host.bandwidth": "d2h",
        "interconnect.bandwidth": "p2p_uni",
    }
    measured = [
        (machine, key, entry)
        for machine in machines.values()
        for key, entry in machine.provenance.items()
        if entry.kind == "measured"
    ]
    assert len(measured) >= 25
    for machine, key, entry in measured:
        run = runs[entry.source]
        assert run["metric"] == ways[key], (machine.name, key)
        assert run["quality"] in ("measured", "measured-index-only", "vendor-doc")
        assert float(entry.as_printed.split()[0]) == run["gb_s"]
        product = run["device"].split()[1:]  # without the vendor
        words = machine.title.replace("-", " ").replace("SXM5", "SXM").replace("SXM4", "SXM").split()
        assert any(word in words for word in product), (machine.title, run["device"])


# What holds for every machine


def test_there_are_machines_of_all_vendors(machines):
    assert len(machines) >= 70
    assert {"NVIDIA", "AMD", "Intel", "Google", "Apple"} <= {machine.vendor for machine in machines.values()}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_value_has_a_provenance_and_a_source_a_use(file, machines):
    document = yaml.safe_load(file.read_text(encoding="utf-8"))
    machine = machines[file.stem]
    assert set(values(document)) == set(machine.provenance)
    numbers = table.encode(machine)
    for name in ("provenance", "sources"):
        del numbers[name]
    bands = 2 + (machine.attention_efficiency is not None)
    assert leaves(numbers) == len(machine.provenance) + 2 * bands  # each band has two bounds more
    assert (
        {entry.source for entry in machine.provenance.values()}
        == set(machine.sources)
        == set(document["sources"])
    )
    for key, entry in machine.provenance.items():
        assert machine.cite(key).startswith(f"{entry.kind}, {entry.as_printed}, ")


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_bounds_are_sane(file, machines):
    machine = machines[file.stem]
    device = machine.device
    assert machine.name == file.stem == file.stem.lower()
    assert 8e9 < device.capacity < 600e9
    # A vendor's GB may mean GiB, never more; no driver hides a quarter, though Metal hides a third.
    assert device.capacity <= device.marketed_capacity / 1e9 * GIB
    assert device.capacity > (0.7 if device.unified else 0.92) * device.marketed_capacity
    assert 50e9 < device.bandwidth < 10e12
    assert device.flops
    assert all(1e12 < rate < 2e16 for rate in device.flops.values())
    assert device.peak("bf16") == device.peak("fp16") or {"fp16", "bf16"} <= set(device.flops)
    assert device.power is None or 10 < device.power < 2000
    assert (machine.vendor == "NVIDIA") == (device.compute_capability is not None)
    for link in (machine.host_to_device, machine.device_to_host):
        assert 5e9 < link.bandwidth <= link.nominal < 3e12
        assert 1e-6 < link.latency < 1e-4
    if machine.interconnect is not None:
        assert 20e9 < machine.interconnect.bandwidth <= machine.interconnect.nominal < 2e12
    for band in (machine.prefill_efficiency, machine.decode_efficiency):
        assert 0 < band.low <= band.mid <= band.high <= 1


def test_names_and_aliases_mean_one_machine(machines):
    seen = [name for machine in machines.values() for name in (machine.name, *machine.aliases)]
    assert len(seen) == len(set(seen))
    assert all(
        hardware.load(name).name == machine.name for machine in machines.values() for name in machine.aliases
    )


def test_recalled_figures_are_assumed(machines):
    for machine in machines.values():
        for key, entry in machine.provenance.items():
            if "not opened" in machine.sources[entry.source].title or "not opened" in (entry.note or ""):
                assert entry.kind == "assumed", (machine.name, key)


# Names


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        ("RTX 4090", "rtx-4090"),
        ("4090", "rtx-4090"),
        ("H100_SXM", "h100-sxm-80gb"),
        ("nvidia-l4", "l4"),
        ("b200", "b200-sxm-180gb"),
        ("h20", "h20-96gb"),
    ],
)
def test_other_spellings(typed, name):
    assert hardware.load(typed).name == name


@pytest.mark.parametrize("typed", ["h100", "a100", "h200", "gh200", "rtx-pro-6000"])
def test_a_name_of_two_products_is_refused_with_both(typed):
    with pytest.raises(
        UnknownProfileError, match=rf"'{typed}' may be {typed}-\S+ or|'{typed}' may be .*, "
    ) as caught:
        hardware.load(typed)
    assert sum(name.startswith(typed) and name in str(caught.value) for name in hardware.names()) >= 2


def test_an_unknown_name_lists_near_ones():
    with pytest.raises(UnknownProfileError, match=r"'rtx-4900'.* did you mean .*'rtx-4090'"):
        hardware.load("rtx-4900")
    with pytest.raises(UnknownProfileError, match="no hardware is named 'qqqqq'; `kvcalc hardware list`"):
        hardware.load("qqqqq")


# The table


def test_the_table_is_what_the_files_give():
    assert table.generate() == (ROOT / "hardware" / table.TABLE).read_text(encoding="utf-8"), (
        "run python -m kvcalc.catalog.table"
    )


def test_the_table_and_the_file_make_one_machine(machines):
    for file in FILES[::10]:
        read = hardware_from_document(parse_yaml(file.read_text(encoding="utf-8"), file.name), "built-in")
        assert read == machines[file.stem]


def test_a_file_newer_than_the_table_counts(tmp_path, monkeypatch):
    text = (ROOT / "hardware" / "l4.yaml").read_text(encoding="utf-8").replace("300 GB/s", "301 GB/s")
    (tmp_path / "l4.yaml").write_text(text, encoding="utf-8")
    (tmp_path / table.TABLE).write_text((ROOT / "hardware" / table.TABLE).read_text(encoding="utf-8"))
    monkeypatch.setattr(table, "builtin", lambda kind: tmp_path)
    assert table.row("l4").device.bandwidth == 301e9


def run_python(code, folder, **environment):
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_built_in_machine_needs_neither_yaml_nor_pint(tmp_path):
    code = "import sys; from kvcalc.catalog import hardware; hardware.load('h100-sxm'); print(*sys.modules)"
    loaded = run_python(code, tmp_path, PYTHONPATH=str(ROOT))
    assert loaded.returncode == 0, loaded.stderr
    assert "kvcalc.profiles" in loaded.stdout.split()
    assert not {"yaml", "pint", "kvcalc.documents", "kvcalc.units"} & set(loaded.stdout.split())


def test_a_wheel_that_is_not_unpacked_has_them_too(tmp_path):
    wheel = tmp_path / "kvcalc.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for file in (ROOT / "kvcalc").rglob("*"):
            if file.suffix in (".py", ".txt"):
                archive.write(file, Path("kvcalc") / file.relative_to(ROOT / "kvcalc"))
        for file in (*(ROOT / "hardware").rglob("*.yaml"), ROOT / "hardware" / table.TABLE):
            inside = file.relative_to(ROOT / "hardware")
            archive.write(file, Path("kvcalc/_catalog/hardware") / inside)
    code = (
        "import kvcalc.catalog.hardware as h; print(h.__file__, len(h.names()), h.load('4090').name,"
        "h.with_values(h.load('l4'), {'device.power': '60 W'}).device.power, h.load('g6.12xlarge').name)"
    )
    ran = run_python(code, tmp_path, PYTHONPATH=str(wheel))
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.split()[1:] == [str(len(FILES)), "rtx-4090", "60.0", "l4"]
    assert "kvcalc.whl" in ran.stdout
