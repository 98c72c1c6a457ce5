"""What other tools wrote: golden files in their format, and broken ones that are refused at their line."""

import json
from pathlib import Path

import pytest

from kvcalc.cli import run
from kvcalc.errors import ProfileError, SettingsError
from kvcalc.probe.imported import imported

DATA = Path(__file__).parent / "data"


def rates(result, direction=None):
    return {
        (row.series, row.device, row.chunk_bytes): row.bandwidth
        for row in result.measurements
        if direction in (None, row.direction)
    }


def test_the_text_of_nvbandwidth_is_read():
    result = imported(str(DATA / "nvbandwidth-two-gpus.txt"))
    found = rates(result)
    assert found[("h2d.pinned", 0, 2.0**29)] == 55.31e9
    assert found[("h2d.pinned", 1, 2.0**29)] == 55.28e9
    assert found[("d2h.pinned", 1, 2.0**29)] == 55.07e9
    assert found[("duplex.h2d", 0, 2.0**29)] == 51.90e9
    assert found[("h2d.pinned.kernel", 0, 2.0**29)] == 35.18e9
    assert found[("peer.read.from0", 1, 2.0**29)] == 394.20e9
    assert ("peer.read.from0", 0, 2.0**29) not in found  # N/A
    assert len(found) == 10
    assert [device.name for device in result.machine.devices] == ["NVIDIA H100 80GB HBM3"] * 2
    assert result.machine.environment.driver == "570.86.10"
    assert any("multinode_device_to_device_memcpy_read_ce: waived" in note for note in result.warnings)
    assert any("512 MiB" in text for text in result.assumptions)


def test_the_json_of_nvbandwidth_is_read():
    result = imported(str(DATA / "nvbandwidth.json"))
    found = rates(result)
    assert found[("h2d.pinned", 0, 2.0**29)] == 55.3142e9
    assert ("d2h.pinned", 1, 2.0**29) not in found  # N/A
    assert found[("memory.local_copy", 1, 2.0**29)] == 1411.9e9
    assert any("waived" in note for note in result.warnings)


def test_the_coefficients_of_later_versions_are_passed_over():
    assert rates(imported(str(DATA / "nvbandwidth-v0.10.txt"))) == {
        ("h2d.pinned", 0, 2.0**29): 55.36e9,
        ("d2h.pinned", 0, 2.0**29): 55.20e9,
    }


def test_a_gpu_node_that_is_listed_as_host_is_implausible():
    flags = {row.series: row.flags for row in imported(str(DATA / "nvbandwidth-grace.txt")).measurements}
    assert flags == {"h2d.pinned": (), "h2d.pinned.cpu1": ("implausible",)}


def test_the_json_of_fio_is_read():
    result = imported(str(DATA / "fio.json"))
    assert rates(result) == {
        ("disk.read.depth32", None, 4096.0): 2867200000.0,
        ("disk.read.sequential.depth8", None, 2.0**20): 6347656
        * 1024.0,  # `bw` counts KiB, where there is no bw_bytes
        ("disk.write.sequential.depth8", None, 2.0**18): 2e9,
        ("disk.read.sequential.buffered.depth1", None, 2.0**20): 30e9,
    }
    assert [check.id for check in result.checks if check.verdict == "fail"] == ["buffered"]
    assert any("job 4: fio ended with error 22" in note for note in result.warnings)
    small = next(row for row in result.measurements if row.in_flight == 32)
    assert small.median == pytest.approx(4096 / 2867200000)


@pytest.mark.parametrize(
    ("name", "unit", "rate"),
    [
        ("nvbandwidth-v0.10.txt", "MB/s", 55.36e6),
        ("nvbandwidth-v0.10.txt", "GiB/s", 55.36 * 2**30),
        ("nvbandwidth.json", "GiB/s", 55.3142 * 2**30),
    ],
)
def test_cells_are_in_the_unit_that_their_matrix_names(name, unit, rate, tmp_path):
    file = tmp_path / name
    file.write_text((DATA / name).read_text(encoding="utf-8").replace("(GB/s)", f"({unit})"))
    assert rates(imported(str(file)))[("h2d.pinned", 0, 2.0**29)] == pytest.approx(rate)


BROKEN = {
    "a unit of the text": (
        "nvbandwidth-v0.10.txt",
        "bandwidth (GB/s)",
        "bandwidth (apples/s)",
        ":9: 'apples/s' is no unit of a bandwidth",
    ),
    "a unit of the JSON": (
        "nvbandwidth.json",
        "GPU(column) bandwidth (GB/s)",
        "GPU(column) bandwidth (GHz/s)",
        ":10: 'GHz/s' is no unit of a bandwidth",
    ),
    "a word instead of a rate": (
        "nvbandwidth-two-gpus.txt",
        " 0     55.31     55.28",
        " 0     55.31     fast",
        ":14: 'fast'",
    ),
    "a row that lost a cell": (
        "nvbandwidth-two-gpus.txt",
        " 0     55.12     55.07",
        " 0     55.12",
        ":21: device_to_host_memcpy_ce: 1 values for 2 columns",
    ),
    "no row at all": (
        "nvbandwidth-v0.10.txt",
        " 0     55.36\n",
        "",
        ":11: host_to_device_memcpy_ce: the matrix has no rows",
    ),
    "no columns": (
        "nvbandwidth-v0.10.txt",
        "           0\n 0     55.36",
        " one\n 0     55.36",
        ":10: host_to_device_memcpy_ce: expected the numbers",
    ),
    "a negative rate": (
        "nvbandwidth-v0.10.txt",
        "55.20\n\nSUM",
        "-55.20\n\nSUM",
        ":19: '-55.20' is no bandwidth",
    ),
    "an infinite rate": ("nvbandwidth-v0.10.txt", "55.20\n\nSUM", "inf\n\nSUM", ":19: 'inf' is no bandwidth"),
    "a test that stopped": (
        "nvbandwidth-v0.10.txt",
        "memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)\n",
        "",
        ":9: host_to_device_memcpy_ce: expected a matrix",
    ),
    "a cell of the JSON": ("nvbandwidth.json", '"55.2876"', '"quick"', ":15: 'quick'"),
    "a status": (
        "nvbandwidth.json",
        '"status" : "Waived"',
        '"status" : "Wavd"',
        ":36: multinode_device_to_device_memcpy_read_ce: unknown status 'Wavd', did you mean 'Waived'?",
    ),
    "a missing matrix": (
        "nvbandwidth.json",
        '"bandwidth_matrix"',
        '"matrix"',
        ":18: host_to_device_memcpy_ce: passed, but has no bandwidth_matrix",
    ),
    "JSON that is cut off": ("nvbandwidth.json", '"version" : "v0.8"\n\t}\n}\n', "", ":"),
    "a rate of fio": (
        "fio.json",
        '"bw_bytes" : 2867200000',
        '"bw_bytes" : "much"',
        ":22: read.bw_bytes: 'much' is no bandwidth",
    ),
    "a block of fio": ("fio.json", '"bs" : "4k"', '"bs" : "4q"', ":17: job options.bs: '4q' is no size"),
    "a depth of fio": (
        "fio.json",
        '"iodepth" : "32"',
        '"iodepth" : "deep"',
        ":18: job options.iodepth: 'deep'",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_file_is_refused_with_its_line(case, tmp_path, capsys):
    name, old, new, words = BROKEN[case]
    text = (DATA / name).read_text(encoding="utf-8")
    assert old in text
    file = tmp_path / name
    file.write_text(text.replace(old, new, 1), encoding="utf-8")
    assert run(["probe", "import", str(file)]) == 2
    out, error = capsys.readouterr()
    assert out == ""
    assert error.count("\n") == 1
    assert f"{file}{words}" in error


@pytest.mark.parametrize("text", ["", "hello\n", "{}", '{"jobs": []}', "[1, 2]"])
def test_a_file_of_neither_tool_is_refused(text, tmp_path):
    file = tmp_path / "file.txt"
    file.write_text(text)
    with pytest.raises(ProfileError, match="neither nvbandwidth"):
        imported(str(file))


def test_a_profile_needs_to_know_the_machine(tmp_path):
    with pytest.raises(SettingsError, match="--base: missing"):
        imported(str(DATA / "nvbandwidth.json"), profile=str(tmp_path / "h.yaml"))
    assert list(tmp_path.iterdir()) == []


def test_a_profile_of_imported_figures_is_planned_on(tmp_path, capsys):
    target = tmp_path / "mine.yaml"
    command = ["probe", "import", str(DATA / "nvbandwidth.json"), "--base", "h100-sxm-80gb"]
    assert run([*command, "--profile", str(target)]) == 0
    capsys.readouterr()
    assert run(["plan", "llama-3.1-8b", "--on", str(target), "--format", "json"]) == 0
    body = json.loads(capsys.readouterr().out)
    source = body["sources"]["host_to_device.bandwidth"]
    assert (source["kind"], source["as_printed"]) == ("measured", "55.3142 GB/s")
    assert body["offload"][0]["bandwidth"] == pytest.approx(55.3142e9)


def test_the_machine_is_known_by_what_its_driver_calls_it(tmp_path, capsys):
    target = tmp_path / "mine.yaml"
    assert run(["probe", "import", str(DATA / "nvbandwidth-two-gpus.txt"), "--profile", str(target)]) == 0
    assert json.loads(target.read_text())["name"] == "h100-sxm-80gb"


def refused(arguments, target, capsys):
    """Return the one line with which an import is refused; no profile is written then."""
    assert run(["probe", "import", *arguments, "--profile", str(target)]) == 2
    out, error = capsys.readouterr()
    assert (out, error.count("\n"), target.exists()) == ("", 1, False)
    return error


def test_a_file_of_another_machine_calibrates_no_base(tmp_path, capsys):
    file = str(DATA / "nvbandwidth-two-gpus.txt")
    error = refused([file, "--base", "l40s"], tmp_path / "p.yaml", capsys)
    assert f"--base: {file} is of NVIDIA H100 80GB HBM3, which is h100-sxm-80gb, not l40s" in error


def test_a_rate_above_the_link_of_the_base_is_refused(tmp_path, capsys):
    file = str(DATA / "nvbandwidth.json")  # which does not tell its device
    error = refused([file, "--base", "l40s"], tmp_path / "p.yaml", capsys)
    assert f"{file}: no profile: 55.3142 GB/s h2d are above the 31.5 GB/s of PCIe 4.0 x16" in error


def test_a_file_without_a_usable_figure_writes_no_profile(tmp_path, capsys):
    data = json.loads("\n".join((DATA / "fio.json").read_text(encoding="utf-8").splitlines()[1:]))
    data["jobs"] = [job for job in data["jobs"] if job["jobname"] == "cached"]
    file = tmp_path / "fio.json"
    file.write_text(json.dumps(data))
    error = refused([str(file), "--base", "h100-sxm-80gb"], tmp_path / "p.yaml", capsys)
    assert f"{file}: no profile: no direct I/O: a cache answers buffered reads" in error


def test_nvbandwidth_without_a_test_is_refused(tmp_path, capsys):
    file = tmp_path / "nv.json"
    file.write_text('{"nvbandwidth": {\n"testcases": [], "version": "v0.8"}}')
    error = refused([str(file), "--base", "h100-sxm-80gb"], tmp_path / "p.yaml", capsys)
    assert f"{file}:2: nvbandwidth.testcases: empty; no test has run" in error


def test_jobs_that_all_failed_are_refused_with_their_errors(tmp_path, capsys):
    data = json.loads("\n".join((DATA / "fio.json").read_text(encoding="utf-8").splitlines()[1:]))
    data["jobs"] = [job for job in data["jobs"] if job["jobname"] == "broken"]
    file = tmp_path / "fio.json"
    file.write_text(json.dumps(data))
    assert run(["probe", "import", str(file)]) == 2
    assert "job 1: fio ended with error 22" in capsys.readouterr().err
