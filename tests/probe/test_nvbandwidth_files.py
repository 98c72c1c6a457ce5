"""Files of nvbandwidth that lie: cut off, edited, of another machine, in another unit; and whom they name."""

import json
from pathlib import Path

import pytest

from kvcalc.cli import run
from kvcalc.probe.imported import imported

DATA = Path(__file__).parent / "data"
TEXT = (DATA / "nvbandwidth-two-gpus.txt").read_text(encoding="utf-8")
JSON = json.loads((DATA / "nvbandwidth.json").read_text(encoding="utf-8"))
ENTRY = "0: NVIDIA A100-SXM4-80GB (00000000:18:00): (gpuhost42)"
"""A device as JsonOutput::recordDevices of nvbandwidth 0.8 writes it."""


@pytest.fixture
def written(tmp_path):
    """Return the writer of a file."""

    def write(content, name="nv.json"):
        path = tmp_path / name
        path.write_text(content if isinstance(content, str) else json.dumps(content, indent=1))
        return path

    return write


def with_devices(key, value):
    return {"nvbandwidth": {**JSON["nvbandwidth"], key: value}}


def refused(arguments, capsys):
    assert run(["probe", "import", *map(str, arguments)]) == 2
    out, error = capsys.readouterr()
    assert (out, error.count("\n")) == ("", 1)
    return error


@pytest.mark.parametrize("key", ["GPU Device list", "GPU Device info", "device_list"])
@pytest.mark.parametrize("more", [[], ["--profile", "{}/p.yaml"]], ids=["alone", "with a profile"])
def test_a_json_file_of_another_machine_calibrates_no_base(key, more, written, capsys):
    path = written(with_devices(key, [ENTRY]))
    more = [word.format(path.parent) for word in more]
    error = refused([path, "--base", "h100-sxm-80gb", *more], capsys)
    assert f"--base: {path} is of NVIDIA A100-SXM4-80GB, which is a100-sxm-80gb, not h100" in error
    assert list(path.parent.iterdir()) == [path]


def test_a_json_file_that_tells_its_machine_needs_no_base(written):
    path = written(with_devices("GPU Device list", [OWN]))
    target = path.with_name("p.yaml")
    imported(str(path), profile=str(target))
    assert json.loads(target.read_text())["name"] == "h100-sxm-80gb"


@pytest.mark.parametrize("value", [5, "0: NVIDIA L40S", [5], {"0": "NVIDIA L40S"}])
def test_devices_of_a_wrong_type_are_refused(value, written, capsys):
    path = written(with_devices("device_list", value))
    line = next(at for at, text in enumerate(path.read_text().splitlines(), 1) if "device_list" in text)
    error = refused([path], capsys)
    assert f"{path}:{line}: nvbandwidth.device_list: expected a list of names of devices" in error


OWN = ENTRY.replace("A100-SXM4-80GB", "H100 80GB HBM3")
PROCESS = "Process 0 (gpuhost42): device 0: NVIDIA H100 80GB HBM3 (00000000:1b:00)"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("nv.json", with_devices("GPU Device list", [OWN]) | {"Hostname": "gpuhost42"}),
        ("nv.json", with_devices("device_list", ["NVIDIA H100 80GB HBM3: (00000000:18:00): (gpuhost42)"])),
        ("nv.json", with_devices("version", "alice@gpuhost42:/home/alice")),
        ("nv.json", with_devices("Driver Version", "of gpuhost42, 00000000:18:00")),
        ("nv.txt", TEXT.replace("Device 0: ", "gpuhost42\nDevice 0: ")),
        ("nv.txt", TEXT.replace("Device 0: NVIDIA H100 80GB HBM3 (00000000:1b:00)", PROCESS)),
    ],
)
def test_no_host_and_no_bus_address_is_in_what_is_written(name, content, written):
    path = written(content, name)
    evidence, profile = path.with_name("e.json"), path.with_name("p.yaml")
    known = imported(str(path)).machine.devices
    base = None if known else "h100-sxm-80gb"
    result = imported(str(path), str(evidence), str(profile), base)
    assert {device.name for device in known} <= {"NVIDIA H100 80GB HBM3"}
    text = evidence.read_text() + profile.read_text() + repr(result)
    for secret in ("gpuhost42", "alice", "00000000:18", "00000000:1b"):
        assert secret not in text


CUT = {
    "inside a number": ("55.28", TEXT.index("55.28") + 4, "expected the line 'SUM host_to_device_memcpy_ce'"),
    "after the first row of two": (
        "394.20",
        TEXT.index(" 1    394.35"),
        "expected the line 'SUM device_to_device_memcpy_read_ce', the file ends",
    ),
    "inside the sum": (
        "110.59",
        TEXT.index("110.59") + 3,
        "the cells add up to 110.59, the line SUM says 110",
    ),
}


@pytest.mark.parametrize("case", CUT)
def test_a_text_that_is_cut_off_is_refused_with_its_last_line(case, written, capsys):
    _, end, words = CUT[case]
    path = written(TEXT[:end], "nv.txt")
    error = refused([path], capsys)
    assert words in error
    assert f"{path}:{len(TEXT[:end].splitlines())}: " in error


def test_a_cell_that_was_changed_does_not_add_up(written, capsys):
    path = written(TEXT.replace("55.28", "65.28"), "nv.txt")
    error = refused([path], capsys)
    assert (
        f"{path}:16: host_to_device_memcpy_ce: the cells add up to 120.59, the line SUM says 110.59" in error
    )


def test_printed_digits_need_not_add_up_to_the_last_one(written):
    path = written(TEXT.replace("SUM host_to_device_memcpy_ce 110.59", "SUM host_to_device_memcpy_ce 110.60"))
    assert imported(str(path)).measurements[0].bandwidth == 55.31e9


def test_a_sum_of_json_that_its_cells_do_not_have_is_said(written):
    changed = json.loads(json.dumps(JSON).replace("55.3142", "45.3142"))
    notes = imported(str(written(changed))).warnings
    assert any("add up to 100.602, its sum says 110.602; was the file edited?" in note for note in notes)


@pytest.mark.parametrize("kind", ["text", "JSON", "JSON in one line"])
def test_a_test_that_ran_twice_is_refused(kind, written, capsys):
    again = TEXT[TEXT.index("Running host_to_device_memcpy_ce") : TEXT.index("Running device_to_host")]
    cases = JSON["nvbandwidth"]["testcases"]
    twice = with_devices("testcases", [*cases, cases[0]])
    content = {"text": TEXT + again, "JSON": twice, "JSON in one line": json.dumps(twice)}[kind]
    error = refused([written(content, "nv.txt")], capsys)
    assert "host_to_device_memcpy_ce: measured twice, first on line " in error


def test_a_rate_far_below_the_link_is_questioned(written):
    path = written(
        TEXT.replace("-> GPU(column) bandwidth (GB/s)", "-> GPU(column) bandwidth (MB/s)", 1), "nv.txt"
    )
    notes = imported(str(path), base="h100-sxm-80gb").warnings
    said = [note for note in notes if "is the unit right?" in note]
    assert len(said) == 1
    assert said[0].startswith("0.05531 GB/s h2d are 0.09% of the 63 GB/s of PCIe 5.0 x16")  # 0.05531 / 63
    assert not any("is the unit right?" in note for note in imported(str(DATA / "nvbandwidth.json")).warnings)


def test_a_rate_above_the_link_is_questioned_where_no_profile_is_asked_for():
    notes = imported(str(DATA / "nvbandwidth.json"), base="l40s").warnings
    said = (
        "55.3142 GB/s h2d are above the 31.5 GB/s of PCIe 4.0 x16, the link of l40s: it is of another machine"
    )
    assert said in notes


def test_a_rate_that_no_memory_has_is_refused(written, capsys):
    cases = json.dumps(JSON).replace("1410.25", "1e30")
    error = refused([written(cases)], capsys)
    assert "device_local_copy: 1e+30 GB/s is more than any memory reaches" in error


def test_the_profile_says_whose_its_figures_are(tmp_path):
    target = tmp_path / "p.yaml"
    imported(str(DATA / "nvbandwidth.json"), profile=str(target), base="h100-sxm-80gb")
    found = json.loads(target.read_text())
    source = found["sources"]["probe"]
    assert source["title"].startswith("nvbandwidth 0.8, imported by kvcalc probe ")
    assert "measured" not in source  # the file tells no day
    assert "no line" not in target.read_text()
    note = found["host_to_device"]["bandwidth"]["note"]
    assert note == "copies of 536870912 B from pinned memory, the only size that was measured"


def test_a_plan_says_that_another_tool_measured(tmp_path, capsys):
    target = tmp_path / "p.yaml"
    imported(str(DATA / "nvbandwidth.json"), profile=str(target), base="h100-sxm-80gb")
    assert run(["plan", "llama-3.1-8b", "--on", str(target)]) == 0
    page = capsys.readouterr().out
    assert "Measured, instead of what was known of its kind" in page
    assert "measured (nvbandwidth)" in page
    assert "on this machine" not in page[page.index("Measured, instead") :][:400]


def test_a_disk_that_was_imported_without_a_day_is_still_measured(tmp_path, capsys):
    file = tmp_path / "fio.json"
    read = {"bw_bytes": 7_000_000_000}
    options = {"rw": "randread", "bs": "1m", "iodepth": "32", "direct": "1", "ioengine": "libaio"}
    job = {"jobname": "a", "groupid": 0, "error": 0, "job options": options, "read": read}
    file.write_text(json.dumps({"fio version": "fio-3.36", "jobs": [job]}))
    target = tmp_path / "p.yaml"
    imported(str(file), profile=str(target), base="h100-sxm-80gb")
    assert "measured" not in json.loads(target.read_text())["sources"]["probe"]
    assert run(["plan", "llama-3.1-8b", "--on", str(target), "--format", "json"]) == 0
    values = json.loads(capsys.readouterr().out)["calibration"]["values"]
    assert [item["key"] for item in values] == ["storage.bandwidth"]


@pytest.mark.parametrize("more", [[], ["--profile", "p.yaml"]])
@pytest.mark.parametrize("base", ["xyz", "h100-sxm-80g", "./no.yaml"])
def test_an_unknown_base_is_refused_by_its_option(base, more, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert "--base: " in refused([DATA / "nvbandwidth.json", "--base", base, *more], capsys)
    assert list(tmp_path.iterdir()) == []
