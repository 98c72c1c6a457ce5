"""Host memory, disk, and the facts of a machine, on this one and on trees of files made up for it."""

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from kvcalc.probe import environment
from kvcalc.probe.backends import disk
from kvcalc.probe.backends.host import HostCopies, buffer_size, cpu_list, memory, multiply
from kvcalc.probe.backends.pcie import hops, link_rate, numa_node, slowest
from kvcalc.probe.backends.protocol import UnavailableError
from kvcalc.probe.measurements import numa
from kvcalc.probe.options import Options
from kvcalc.probe.profile_host import memory_entry
from kvcalc.probe.run import Run

SIZE = 2**22


@pytest.mark.parametrize("threads", [1, 3])
def test_a_copy_by_threads_copies_everything(threads):
    copies = HostCopies(SIZE, threads, seed=7)
    assert not copies.same()
    copies.copy()()
    assert copies.same()
    copies.clear()
    assert not copies.same()
    copies.close()


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="only Linux tells which pages memory has")
def test_copies_are_between_the_pages_that_everybody_gets():
    """numpy asks for huge pages by itself; `hg` among the kernel's flags is that wish."""
    for huge in (False, True):
        buffer = memory(SIZE, huge)
        buffer[:] = 1
        assert ("hg" in flags_at(buffer.ctypes.data)) is huge


def flags_at(address):
    """Return the kernel's flags of the mapping that holds an address."""
    inside = False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        first, *words = line.split()
        if "-" in first and all(part.strip("0123456789abcdef") == "" for part in first.split("-")):
            low, high = (int(part, 16) for part in first.split("-"))
            inside = low <= address < high
        elif inside and first == "VmFlags:":
            return words
    raise AssertionError(f"no mapping holds {address:x}")


def test_the_content_has_no_repeats():
    copies = HostCopies(SIZE, 2)
    assert len(np.unique(copies.source)) == len(copies.source)
    copies.close()


def test_buffers_leave_the_cache_behind_and_the_memory_alone():
    assert buffer_size(32 * 2**20, 64e9) == 128 * 2**20
    assert buffer_size(None, 64e9) == 64 * 2**20
    with pytest.raises(UnavailableError, match="a quarter of the free memory"):
        buffer_size(32 * 2**20, 500e6)


def test_a_product_is_one(monkeypatch):
    made = []
    own = np.matmul
    monkeypatch.setattr(np, "matmul", lambda a, b, out: made.append((a.copy(), b.copy(), own(a, b, out=out))))
    multiply(64, seed=1)()
    ((first, second, product),) = made
    assert product == pytest.approx(np.einsum("ij,jk->ik", first, second), rel=1e-4, abs=1e-4)  # fp32


def test_lists_of_cpus_are_read():
    assert cpu_list("0-1,4,6-7\n") == {0, 1, 4, 6, 7}
    assert cpu_list("") == set()


def mountinfo(tmp_path, kind, point="/"):
    file = tmp_path / "mountinfo"
    file.write_text(f"25 1 254:0 / {point} rw,relatime shared:1 - {kind} /dev/x rw\n")
    return file


def test_the_file_system_is_that_of_the_deepest_mount(tmp_path):
    file = tmp_path / "mountinfo"
    file.write_text(
        "25 1 254:0 / / rw - ext4 /dev/vda rw\n"
        f"26 25 0:44 / {tmp_path} rw - tmpfs tmpfs rw\n"
        "27 25 0:45 / /elsewhere rw - nfs4 server rw\n"
    )
    assert disk.filesystem_of(tmp_path, file) == ("tmpfs", "0:44")
    assert disk.filesystem_of(Path("/"), file) == ("ext4", "254:0")


@pytest.mark.parametrize(
    ("kind", "named", "words"),
    [
        ("tmpfs", True, "tmpfs is memory"),
        ("nfs4", False, "network or a layered"),
        ("overlay", False, "layered"),
    ],
)
def test_what_is_no_disk_is_refused(kind, named, words, tmp_path, monkeypatch):
    monkeypatch.setattr(disk, "filesystem_of", lambda folder: (kind, "0:1"))
    with pytest.raises(UnavailableError, match=words):
        disk.check_folder(tmp_path, SIZE, named)


def test_a_network_disk_is_measured_when_it_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(disk, "filesystem_of", lambda folder: ("nfs4", "0:1"))
    disk.check_folder(tmp_path, SIZE, named=True)


def test_a_full_disk_and_a_missing_folder_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(disk, "filesystem_of", lambda folder: ("ext4", "254:0"))
    with pytest.raises(UnavailableError, match="not there"):
        disk.check_folder(tmp_path / "no", SIZE, named=True)
    with pytest.raises(UnavailableError, match="no room"):
        disk.check_folder(tmp_path, 10**18, named=True)


def test_a_file_system_without_direct_reads_is_said(tmp_path, monkeypatch):
    real = os.open

    def refuse(path, flags, *rest):
        if flags & os.O_DIRECT:
            raise OSError(22, "Invalid argument")
        return real(path, flags, *rest)

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(UnavailableError, match="no direct I/O here"), disk.temporary_file(tmp_path, SIZE, 1):
        pass
    assert list(tmp_path.iterdir()) == []


def plain_folder(folder):
    """Return the folder if direct reads work in it, as in CI's own; else skip with the reason."""
    try:
        disk.check_folder(folder, disk.WRITE_PIECE, named=True)
        with disk.temporary_file(folder, disk.WRITE_PIECE, 1):
            pass
    except UnavailableError as error:
        pytest.skip(f"no disk to read directly under the test folder: {error}")
    return folder


def test_reads_return_what_was_written_and_leave_no_file(tmp_path):
    folder = plain_folder(tmp_path)
    with disk.temporary_file(folder, 2 * disk.WRITE_PIECE, seed=5) as handle:
        assert list(folder.iterdir()) == []  # it has no name any more
        for depth in (1, 4):
            reader = disk.DiskReads(handle, 2 * disk.WRITE_PIECE, 65536, depth, seed=5)
            reader.read(8)()
            assert reader.verified(5)
            assert not reader.verified(6)
            reader.close()


def test_no_place_is_read_twice_before_every_other(tmp_path):
    folder = plain_folder(tmp_path)
    with disk.temporary_file(folder, disk.WRITE_PIECE, seed=5) as handle:
        reader = disk.DiskReads(handle, disk.WRITE_PIECE, 2**20, 1, seed=5)
        places = [reader._place() for _ in range(8)]
        reader.close()
    assert sorted(places) == [step * 2**20 for step in range(8)]


def test_the_disk_test_measures_and_names_no_place(tmp_path):
    folder = plain_folder(tmp_path)
    options = Options(level="quick", tests=("Z1",), disk=folder, disk_named=True, disk_bytes=2**26)
    result = Run(options).result()
    assert result.tests[0].status in ("ok", "unstable")
    rows = [row for row in result.measurements if row.series == "disk.read.depth1"]
    assert all(row.verified and row.bandwidth > 0 for row in rows)
    assert "small_file" in rows[0].flags
    assert result.machine.disk.file == 2**26


def tree(root, files):
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def test_the_facts_of_a_machine_are_read_from_its_files(tmp_path):
    root = tree(
        tmp_path,
        {
            "proc/meminfo": "MemTotal:       1000 kB\nMemAvailable:    600 kB\n",
            "proc/version": "Linux version 6.6.87.2-microsoft-standard-WSL2 (somebody@builder)",
            "proc/cpuinfo": "model name\t: Some CPU @ 2 GHz\nflags\t\t: fpu hypervisor sse\n",
            "sys/fs/cgroup/memory.max": "409600\n",
            "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n",
            "sys/devices/system/cpu/cpu0/cache/index3/size": "32768K\n",
            "sys/devices/system/node/node0/cpulist": "0-1\n",
            "sys/devices/system/node/node0/meminfo": "Node 0 MemTotal:  800 kB\n",
            "sys/devices/system/node/node1/cpulist": "\n",
            "sys/devices/system/node/node1/meminfo": "Node 1 MemTotal:  200 kB\n",
        },
    )
    found = environment.environment_of(root=root)
    assert (found.memory, found.memory_available, found.cgroup_memory) == (1024000, 409600, 409600)
    assert (found.wsl, found.hypervisor, found.huge_pages) == (True, True, "madvise")
    assert found.cpu == "Some CPU @ 2 GHz"
    assert found.last_level_cache == 32 * 2**20
    assert [(node.id, node.is_gpu) for node in found.numa_nodes] == [(0, False), (1, True)]
    assert {"wsl", "cgroup_limit"} <= set(environment.flags_of(found))


def test_a_machine_that_tells_nothing_has_facts_all_the_same(tmp_path):
    found = environment.environment_of(root=tmp_path)
    assert found.memory > 0
    assert found.numa_nodes == ()


def test_memory_that_grows_while_it_is_measured_is_flagged(tmp_path):
    before = environment.environment_of(root=tree(tmp_path / "a", {"proc/meminfo": "MemTotal: 1000 kB\n"}))
    after = environment.environment_of(root=tree(tmp_path / "b", {"proc/meminfo": "MemTotal: 1200 kB\n"}))
    assert "memory_grows" in environment.flags_of(after, before)


def pci(root):
    """A card that trains to x16 of generation 4 behind a bridge of x8, as a card with its own switch may."""
    bridge = root / "devices/0000:00:01.0"
    card = bridge / "0000:01:00.0"
    links = {bridge: ("16.0 GT/s PCIe", "8"), card: ("16.0 GT/s PCIe", "16")}
    for place, (speed, width) in links.items():
        place.mkdir(parents=True, exist_ok=True)
        (place / "class").write_text("0x060400\n")
        for kind in ("current", "max"):
            (place / f"{kind}_link_speed").write_text(f"{speed}\n")
            (place / f"{kind}_link_width").write_text(f"{width}\n")
    (card / "numa_node").write_text("-1\n")
    (root / "bus").mkdir()
    (root / "bus/0000:01:00.0").symlink_to(card)
    return root / "bus"


def test_the_slowest_hop_to_the_root_is_found(tmp_path):
    path = hops("0000:01:00.0", pci(tmp_path))
    assert [(hop.hop, hop.width) for hop in path] == [("device", 16), ("bridge 1", 8)]
    assert slowest(path).hop == "bridge 1"


def test_a_device_that_the_kernel_does_not_show_has_no_path(tmp_path):
    assert hops("0000:09:00.0", tmp_path) == ()
    assert slowest(()) is None


def test_a_node_that_the_kernel_does_not_know_is_none(tmp_path):
    assert numa_node("0000:01:00.0", pci(tmp_path)) is None


@pytest.mark.parametrize(
    ("generation", "width", "gigabytes"),
    [(1, 16, 4.0), (3, 16, 15.75), (4, 16, 31.5), (5, 16, 63.0), (3, 4, 3.94)],
)
def test_what_a_link_carries(generation, width, gigabytes):
    assert link_rate(generation, width) / 1e9 == pytest.approx(gigabytes, rel=0.002)


def test_one_node_has_nothing_remote(monkeypatch):
    monkeypatch.setattr(numa, "node_cpus", lambda node: {0} if node == 0 else set())
    result = Run(Options(tests=("N1",))).result()
    assert result.tests[0].status == "unsupported"
    assert "one NUMA node" in result.tests[0].reason


def test_fresh_memory_is_looked_for_in_the_maps(tmp_path):
    maps = tmp_path / "maps"
    maps.write_text("7f00 default anon=8192 dirty=8192 N0=8192 kernelpagesize_kB=4\n")
    assert numa._pages(0, maps) == 8192
    assert numa._pages(1, maps) == 0
    assert not numa.lies_on(0, maps)  # nothing has changed since


@pytest.mark.parametrize("size", [2**26, 2**26 + 2**22, 500_000_000 // 2])
def test_every_size_of_a_file_is_written_whole(size, tmp_path):
    """The file holds whole pieces, and no read goes past its end."""
    options = Options(level="quick", tests=("Z1",), disk=tmp_path, disk_named=True, disk_bytes=size)
    result = Run(options).result()
    (test,) = result.tests
    if test.status == "unsupported":
        assert "no direct I/O" in test.reason or "memory, not a disk" in test.reason
        pytest.skip(f"the disk test cannot run here: {test.reason}")
    assert test.status in ("ok", "unstable"), test.reason
    assert result.machine.disk.file == size // 2**23 * 2**23


def test_a_short_write_is_gone_on_with(tmp_path, monkeypatch):
    own = os.write
    monkeypatch.setattr(disk.os, "write", lambda handle, data: own(handle, data[: 2**20]))
    with (tmp_path / "file").open("wb+") as file:
        disk._write(file.fileno(), 2 * disk.WRITE_PIECE, 1, lambda: None)
        file.seek(0)
        assert file.read() == b"".join(disk.content(1, piece, disk.WRITE_PIECE) for piece in (0, 1))


def test_the_time_for_writing_the_file_is_that_of_all_tests(tmp_path):
    options = Options(
        level="quick", tests=("Z1",), disk=tmp_path, disk_named=True, disk_bytes=2**30, max_seconds=0.05
    )
    (test,) = Run(options).result().tests
    if "no direct I/O" in test.reason or "memory, not a disk" in test.reason:
        pytest.skip(f"the disk test cannot run here: {test.reason}")
    assert (test.status, test.reason) == (
        "unsupported",
        "the time was used up before anything was measured",
    )
    assert list(tmp_path.iterdir()) == []


CGROUPS = {
    "of version 2, below a limit": (
        {
            "proc/self/cgroup": "0::/a/b\n",
            "sys/fs/cgroup/a/b/memory.max": "max\n",
            "sys/fs/cgroup/a/memory.max": "2147483648\n",
            "sys/fs/cgroup/a/b/cpu.max": "150000 100000\n",
        },
        2**31,
        1.5,
    ),
    "of version 1": (
        {
            "proc/self/cgroup": "5:memory:/job\n3:cpu,cpuacct:/job\n",
            "sys/fs/cgroup/memory/job/memory.limit_in_bytes": "1073741824\n",
            "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
            "sys/fs/cgroup/cpu/job/cpu.cfs_quota_us": "50000\n",
            "sys/fs/cgroup/cpu/job/cpu.cfs_period_us": "100000\n",
        },
        2**30,
        0.5,
    ),
    "without limits": (
        {
            "proc/self/cgroup": "0::/\n",
            "sys/fs/cgroup/memory.max": "max",
            "sys/fs/cgroup/cpu.max": "max 100000",
        },
        None,
        None,
    ),
}


@pytest.mark.parametrize("case", CGROUPS)
def test_the_limits_are_those_of_this_process_s_cgroup(case, tmp_path):
    files, memory_limit, cpus = CGROUPS[case]
    root = tree(tmp_path, files)
    assert environment.cgroup_memory(root) == memory_limit
    assert environment.cgroup_cpus(root) == cpus


def test_a_profile_holds_the_memory_that_the_cgroup_allows():
    facts = environment.environment_of()
    entry = memory_entry(replace(facts, memory=64e9, cgroup_memory=8e9))
    assert (entry["value"], entry["note"]) == (
        "8000000000 B",
        "limit of the cgroup, of 64 GB that the kernel reports",
    )
    assert memory_entry(replace(facts, memory=64e9, cgroup_memory=None))["value"] == "64000000000 B"
