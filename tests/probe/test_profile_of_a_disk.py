"""The disk of a profile: its rate is that of the largest reads, its latency that of one read alone."""

import json

import pytest

from kvcalc.cli import run
from kvcalc.probe.imported import _left_out, imported
from kvcalc.probe.profile_disk import disk_reads

KIB, MIB = 2**10, 2**20


def job(block, depth, rate, side="read", error=0, direct="1"):
    """Return one job as fio reports it."""
    done = {"io_bytes": rate * 10, "bw_bytes": rate, "clat_ns": {"mean": 120000.0}}
    return {
        "jobname": f"{side}-{block}-{depth}",
        "error": error,
        "job options": {"rw": f"rand{side}", "bs": str(block), "iodepth": str(depth), "direct": direct},
        side: done,
    }


@pytest.fixture
def fio(tmp_path):
    """Return the writer of a file of fio."""

    def write(*jobs):
        path = tmp_path / "fio.json"
        path.write_text(json.dumps({"fio version": "fio-3.36", "jobs": list(jobs)}))
        return path

    return write


def storage(path, target):
    """Return the storage of the profile that an import writes."""
    result = imported(str(path), profile=str(target), base="h100-sxm-80gb")
    return json.loads(target.read_text())["storage"], result


def test_many_reads_under_way_tell_no_latency(fio, tmp_path):
    path = fio(job(4 * KIB, 16, 512_000_000), job(MIB, 8, 6_500_000_000))
    found, _ = storage(path, tmp_path / "p.yaml")
    assert "latency" not in found
    assert found["bandwidth"]["value"] == "6.5 GB/s"
    assert found["iops"]["value"] == "125000/s"


def test_one_read_at_a_time_tells_the_latency(fio, tmp_path):
    path = fio(job(4 * KIB, 1, 51_200_000), job(4 * KIB, 16, 512_000_000), job(MIB, 8, 6_500_000_000))
    found, _ = storage(path, tmp_path / "p.yaml")
    assert found["latency"]["value"] == "80 us"  # 4096 B at 51.2 MB/s


def test_small_blocks_tell_no_bandwidth(fio):
    result = imported(str(fio(job(4 * KIB, 16, 512_000_000))))
    assert disk_reads(result.measurements).large is None
    assert list(_left_out(result)) == [
        "the profile has no disk: reads of less than 128 KiB do not tell its bandwidth"
    ]


def test_the_rate_is_that_of_the_largest_reads(fio, tmp_path):
    path = fio(job(MIB, 1, 2_175_000_000), job(4 * MIB, 1, 1_150_000_000), job(4 * MIB, 16, 1_580_000_000))
    found, _ = storage(path, tmp_path / "p.yaml")
    assert found["bandwidth"]["value"] == "1.58 GB/s"
    assert "latency" not in found  # of 1 MiB: moving the bytes is most of it


def test_writes_are_no_reads(fio, tmp_path):
    path = fio(job(MIB, 8, 3_000_000_000), job(MIB, 8, 5_000_000_000, side="write"))
    found, _ = storage(path, tmp_path / "p.yaml")
    assert found["bandwidth"]["value"] == "3 GB/s"


@pytest.mark.parametrize(("when", "said"), [(None, "fio-3.36"), (1_764_374_400, "fio-3.36, 2025-11-29")])
def test_a_plan_says_which_tool_measured_the_disk_and_when(when, said, fio, tmp_path, capsys):
    path = fio(job(MIB, 8, 6_500_000_000))
    if when is not None:  # seconds since 1970 of 2025-11-29, 00:00 UTC
        path.write_text(json.dumps(json.loads(path.read_text()) | {"timestamp": when}))
    target = tmp_path / "p.yaml"
    imported(str(path), profile=str(target), base="h100-sxm-80gb")
    assert run(["plan", "llama-3.1-8b", "--on", str(target), "--format", "json"]) == 0
    (value,) = json.loads(capsys.readouterr().out)["calibration"]["values"]
    assert value["source"].startswith("fio-3.36, imported by kvcalc probe ")
    assert value["measured_on"] == (None if when is None else "2025-11-29")
    assert run(["plan", "llama-3.1-8b", "--on", str(target)]) == 0
    assert f"measured ({said})" in capsys.readouterr().out
