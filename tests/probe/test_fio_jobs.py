"""Jobs of fio: which ran together and add up, which tell a latency, and which tell nothing of a disk."""

import json

import pytest

from kvcalc.cli import run
from kvcalc.probe.imported import imported

MIB = 2**20
START = 1764400000000


def job(name="seq", rate=1_750_000_000, side="read", group=0, start=None, seconds=10, error=0, **options):
    """Return one job as fio reports it; `start` in seconds after the first."""
    done = {"io_bytes": rate * seconds, "bw_bytes": rate, "runtime": seconds * 1000}
    said = {key: str(value) for key, value in options.items()}
    found = {"jobname": name, "error": error, "job options": said, side: done}
    found |= {} if group is None else {"groupid": group}
    if start is not None:
        found |= {"job_start": START + start * 1000, "job_runtime": seconds * 1000}
    return found


@pytest.fixture
def fio(tmp_path):
    """Return the writer of a file of fio; its shared options are those of direct reads."""

    def write(*jobs, **shared):
        path = tmp_path / "fio.json"
        options = {"direct": "1", "ioengine": "libaio"} | shared
        body = {"fio version": "fio-3.36", "timestamp": 1764400011, "global options": options}
        path.write_text(json.dumps(body | {"jobs": list(jobs)}, indent=1))
        return path

    return write


def large(**more):
    return {"rw": "read", "bs": "1m", "iodepth": 32} | more


def rates(path):
    result = imported(str(path))
    return {(row.series, row.in_flight): row.bandwidth for row in result.measurements}, result.warnings


def storage(path):
    target = path.with_name("p.yaml")
    result = imported(str(path), profile=str(target), base="h100-sxm-80gb")
    return json.loads(target.read_text()), result


def test_clones_of_one_job_are_added(fio):
    found, _ = storage(fio(*[job(**large(numjobs=4)) for _ in range(4)]))
    rate = found["storage"]["bandwidth"]
    assert rate["value"] == "7 GB/s"  # 4 of 1.75 GB/s
    assert "128 at once" in rate["note"]  # 4 of 32


def test_clones_that_fio_has_added_already_are_not_added_again(fio):
    found, _ = storage(fio(job(rate=7_000_000_000, **large(numjobs=4, group_reporting=""))))
    assert found["storage"]["bandwidth"]["value"] == "7 GB/s"
    assert "128 at once" in found["storage"]["bandwidth"]["note"]


def test_clones_that_ended_apart_have_their_bytes_over_the_longest_time(fio):
    ends = [job(seconds=10, **large(numjobs=2)), job(seconds=14, **large(numjobs=2))]
    found, _ = rates(fio(*ends))
    assert list(found.values()) == [pytest.approx(1.75e9 * 24 / 14)]


def test_jobs_without_a_wall_ran_together(fio):
    found, notes = rates(fio(job("a", **large()), job("b", **large())))
    assert found == {("disk.read.sequential.depth64", 64): 3.5e9}
    assert notes == ()


@pytest.mark.parametrize(
    "second",
    [
        {"group": 1, "stonewall": ""},
        {"wait_for": "a"},
        {"group": 1},
        {"start": 12},
    ],
    ids=["stonewall", "wait_for", "another group", "a later start"],
)
def test_jobs_that_waited_for_each_other_are_not_added(second, fio):
    first = job("a", start=0 if "start" in second else None, **large(iodepth=8))
    found, notes = rates(fio(first, job("b", **(large() | second))))
    assert sorted(found) == [("disk.read.sequential.depth32", 32), ("disk.read.sequential.depth8", 8)]
    assert notes == ()


def test_the_times_of_jobs_settle_which_ran_together(fio):
    both = [job("a", group=0, start=0, **large()), job("b", group=1, start=0, **large(new_group=""))]
    assert rates(fio(*both))[0] == {("disk.read.sequential.depth64", 64): 3.5e9}


def test_a_file_that_does_not_say_who_ran_with_whom_is_questioned(fio):
    _, notes = rates(fio(job("a", group=None, **large(iodepth=8)), job("b", group=None, **large())))
    assert any("does not say which jobs ran at the same time" in note for note in notes)


def test_jobs_of_two_kinds_that_shared_a_disk_tell_no_latency(fio):
    small = job("lat", 51_200_000, rw="randread", bs="4k", iodepth=1)
    found, result = storage(fio(small, job("seq", 6_000_000_000, **large())))
    assert set(found["storage"]) == {"bandwidth"}
    assert found["storage"]["bandwidth"]["note"].endswith("32 at once, beside other jobs")
    assert (
        "jobs 1 and 2 ran at the same time: none tells a latency, and each may be faster alone"
        in result.warnings
    )


def test_files_of_two_names_may_be_of_two_disks(fio):
    found, notes = rates(fio(job("a", **large(filename="/dev/x")), job("b", **large(filename="/dev/y"))))
    assert list(found.values()) == [1.75e9]
    assert any("ran at the same time" in note for note in notes)


def test_a_job_that_failed_disturbs_no_other(fio):
    found, _ = rates(fio(job("a", **large()), job("b", error=5, **large())))
    assert found == {("disk.read.sequential.depth32", 32): 1.75e9}


def walled(*jobs):
    """Return jobs that ran one after the other."""
    return [{**one, "groupid": at} for at, one in enumerate(jobs)]


def test_only_random_reads_tell_latency_and_iops(fio):
    jobs = walled(
        job("s", 400_000_000, rw="read", bs="4k", iodepth=1),
        job("r", 51_200_000, rw="randread", bs="4k", iodepth=1),
        job("big", 7_000_000_000, **large()),
    )
    found, _ = storage(fio(*jobs))
    assert found["storage"]["latency"]["value"] == "80 us"  # 4096 B at 51.2 MB/s
    assert found["storage"]["iops"]["value"] == "12500/s"
    assert found["storage"]["bandwidth"]["note"] == "direct sequential reads of 1048576 B, 32 at once"


@pytest.mark.parametrize("pattern", ["read", "rw", "readwrite", "randread:8"])
def test_reads_in_sequence_tell_neither(pattern, fio):
    jobs = walled(job("s", 400_000_000, rw=pattern, bs="4k"), job("big", 7_000_000_000, **large()))
    assert set(storage(fio(*jobs))[0]["storage"]) == {"bandwidth"}


@pytest.mark.parametrize("engine", ["sync", "psync", "pvsync2"])
def test_an_engine_of_system_calls_reads_one_block_at_a_time(engine, fio):
    jobs = walled(
        job("r", 51_200_000, rw="randread", bs="4k", iodepth=32), job("big", 3_000_000_000, **large())
    )
    found, _ = storage(fio(*jobs, ioengine=engine))
    assert found["storage"]["latency"]["value"] == "80 us"
    assert found["storage"]["bandwidth"]["note"].endswith(", 1 at once")


def test_a_depth_without_an_engine_is_questioned(fio):
    path = fio(job(**large()))
    body = json.loads(path.read_text())
    del body["global options"]["ioengine"]
    path.write_text(json.dumps(body))
    assert any("job 1: no ioengine is named" in note for note in rates(path)[1])


@pytest.mark.parametrize(
    ("key", "value"), [("bssplit", "4k/50:1m/50"), ("bsrange", "4k-1m"), ("rate_iops", "100")]
)
def test_a_job_without_one_size_or_at_a_set_rate_is_left_out(key, value, fio):
    jobs = walled(job("m", rw="randread", iodepth=1, **{key: value}), job("big", 7_000_000_000, **large()))
    found, result = storage(fio(*jobs))
    assert set(found["storage"]) == {"bandwidth"}
    assert any(note.startswith(f"job 1: {key} ") for note in result.warnings)


@pytest.mark.parametrize(
    ("options", "flags"),
    [({"buffered": "0"}, ()), ({"buffered": "1"}, ("buffered",)), ({}, ("buffered",)), ({"direct": 1}, ())],
)
def test_buffered_is_the_opposite_of_direct(options, flags, fio):
    path = fio(job(**large(**options)))
    body = json.loads(path.read_text())
    del body["global options"]["direct"]
    path.write_text(json.dumps(body))
    assert [row.flags for row in imported(str(path)).measurements] == [flags]


def refused(path, capsys):
    """Return the one line with which an import is refused."""
    target = path.with_name("p.yaml")
    command = ["probe", "import", str(path), "--base", "h100-sxm-80gb", "--profile", str(target)]
    assert run(command) == 2
    out, error = capsys.readouterr()
    assert (out, error.count("\n"), target.exists()) == ("", 1, False)
    return error


def line_with(path, words):
    lines = path.read_text().splitlines()
    return next(at + 1 for at, line in enumerate(lines) if words in line)


def test_buffered_reads_are_said_to_be_no_direct_io(fio, capsys):
    assert "no direct I/O" in refused(fio(job(**large(direct=0))), capsys)


def test_an_engine_that_reads_no_disk_is_refused(fio, capsys):
    path = fio(job(**large(ioengine="null")))
    line = line_with(path, '"null"')
    assert f"{path}:{line}: job 1: ioengine=null reads no disk" in refused(path, capsys)


@pytest.mark.parametrize(
    ("rate", "words"),
    [
        (10**30, "read.bw_bytes: 1e+30 B/s is more than any disk reaches"),
        (10**400, "is no bandwidth"),
        (1, "read.bw_bytes: 1 B/s is less than any disk reaches"),
    ],
    ids=["huge", "no float", "tiny"],
)
def test_a_rate_that_no_disk_has_is_refused_at_its_line(rate, words, fio, capsys):
    path = fio(job(**large()))
    path.write_text(path.read_text().replace('"bw_bytes": 1750000000', f'"bw_bytes": {rate}'))
    line = line_with(path, '"bw_bytes"')
    error = refused(path, capsys)
    assert f"{path}:{line}: " in error
    assert words in error


def test_a_rate_above_that_of_any_disk_is_a_cache(fio, capsys):
    path = fio(job(rate=60 * 10**9, **large()))
    (row,) = imported(str(path)).measurements
    assert row.flags == ("cache_hit",)  # as the probe's own above 20 GB/s
    assert "60 GB/s is faster than any single disk" in refused(path, capsys)


def test_clones_above_that_of_any_disk_are_a_cache(fio):
    (row,) = imported(str(fio(*[job(rate=6 * 10**9, **large(numjobs=4)) for _ in range(4)]))).measurements
    assert (row.bandwidth, row.flags) == (24e9, ("cache_hit",))


def test_a_job_measured_twice_has_one_figure(fio):
    found, notes = rates(fio(*walled(job(rate=2 * 10**9, **large()), job(rate=10**9, **large()))))
    assert list(found.values()) == [2e9]
    assert notes == (
        "jobs 1 and 2: all measure disk.read.sequential.depth32 at 1048576 B; the fastest is taken",
    )


def test_many_jobs_are_told_in_one_note(fio):
    _, notes = rates(fio(*walled(*[job(str(at), **large()) for at in range(100)])))
    assert [note.partition(":")[0] for note in notes] == ["100 jobs from job 1 to job 100"]


def test_more_jobs_than_are_read_are_refused(fio, capsys):
    error = refused(fio(*[job(str(at), **large()) for at in range(2049)]), capsys)
    assert "jobs: 2049 are more than 2048" in error


def test_the_second_job_is_refused_at_its_own_line(fio, capsys):
    path = fio(*walled(job("a", **large()), job("a", **large(bs="huge"))))
    assert f"{path}:{line_with(path, 'huge')}: job options.bs: 'huge'" in refused(path, capsys)


def test_no_name_of_a_job_or_file_is_in_what_is_written(fio, capsys):
    secret = "alice@vm:/home/alice/job"
    jobs = [
        job(secret, error=5, **large()),
        job(secret + "2", **large(filename="/home/alice/f")),
        job(secret + "3", rw="randread", bssplit="4k/50:8k/50"),
    ]
    path = fio(*jobs, directory="/home/alice")
    evidence, profile = path.with_name("e.json"), path.with_name("p.yaml")
    command = ["probe", "import", str(path), "--base", "h100-sxm-80gb", "--profile", str(profile)]
    assert run([*command, "--evidence", str(evidence)]) == 0
    assert "job 1: fio ended with error 5" in evidence.read_text()
    assert "alice" not in evidence.read_text() + profile.read_text() + capsys.readouterr().out.replace(
        str(path), ""
    )


def test_the_profile_says_whose_its_figures_are_and_of_when(fio):
    found, _ = storage(fio(job(**large())))
    source = found["sources"]["probe"]
    assert source["title"].startswith("fio-3.36, imported by kvcalc probe ")
    assert source["measured"] == "2025-11-29"  # 1764400011 s after 1970 began
    assert "from what fio-3.36 measured" in found["note"]


def test_a_number_that_is_none_is_named_once_with_its_line(fio, capsys):
    path = fio(job(**large()))
    path.write_text(path.read_text().replace('"bw_bytes": 1750000000', '"bw_bytes": NaN'))
    error = refused(path, capsys)
    assert error == f"kvcalc: {path}:{line_with(path, 'NaN')}: NaN is not a number\n"
