"""A real local Dask cluster of two worker processes."""

import os
import signal

import pytest

import kvcalc
from kvcalc.errors import SettingsError
from kvcalc.sweeping import cluster, grid

distributed = pytest.importorskip("distributed", reason="Dask is an extra")
pytestmark = pytest.mark.filterwarnings("default")  # Dask's own are not ours

VARY = ["prompt=1k..60k+1k", "tiers.dram.bandwidth=1..50 GB/s/25", "concurrency=1,400"]
ASKED = {"model": "llama-3.1-8b", "on": "h100-sxm-80gb", "vary": VARY}


@pytest.fixture
def two_workers(tmp_path):
    """Start two worker processes and a scheduler on this machine."""
    with (
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            dashboard_address=None,
            local_directory=str(tmp_path / "dask"),
            silence_logs=50,
        ) as local,
    ):
        yield local


def test_a_cluster_gives_the_same_file_as_a_local_run(tmp_path, two_workers):
    kvcalc.sweep(**ASKED, save=str(tmp_path / "here.csv"))
    kvcalc.sweep(**ASKED, save=str(tmp_path / "there.csv"), scheduler=two_workers.scheduler_address)
    assert (tmp_path / "there.csv").read_bytes() == (tmp_path / "here.csv").read_bytes()
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is an extra")
    for name, scheduler in (("here", None), ("there", two_workers.scheduler_address)):
        kvcalc.sweep(**ASKED, save=str(tmp_path / f"{name}.parquet"), scheduler=scheduler)
    here, there = (parquet.read_table(tmp_path / f"{name}.parquet") for name in ("here", "there"))
    assert there.equals(here)


def test_killing_a_worker_loses_nothing(tmp_path, two_workers, monkeypatch):
    """One of the two processes dies in the middle, with chunks in work and finished ones in its memory."""
    monkeypatch.setattr(grid, "CHUNK_ROWS", 40)
    kvcalc.sweep(**ASKED, save=str(tmp_path / "here.csv"))
    victim = two_workers.workers[0].pid
    killed = []

    def progress(done, whole):
        if done > whole // 10 and not killed:
            os.kill(victim, signal.SIGKILL)
            killed.append(done)

    address = two_workers.scheduler_address
    kvcalc.sweep(**ASKED, save=str(tmp_path / "there.csv"), scheduler=address, progress=progress)
    assert killed
    assert killed[0] < 3000 // 2
    assert (tmp_path / "there.csv").read_bytes() == (tmp_path / "here.csv").read_bytes()


def test_a_scheduler_that_does_not_answer_is_one_line(monkeypatch):
    monkeypatch.setattr(cluster, "PATIENCE", 1.0)
    with pytest.raises(SettingsError, match="no Dask scheduler answers"):
        kvcalc.sweep(**ASKED, scheduler="tcp://127.0.0.1:9")


def test_a_scheduler_that_does_not_answer_leaves_nothing_behind(tmp_path, monkeypatch):
    monkeypatch.setattr(cluster, "PATIENCE", 1.0)
    with pytest.raises(SettingsError, match="no Dask scheduler answers"):
        kvcalc.sweep(**ASKED, save=str(tmp_path / "rows.csv"), scheduler="tcp://127.0.0.1:9")
    assert os.listdir(tmp_path) == []


def test_an_address_that_is_none_is_one_line():
    with pytest.raises(SettingsError, match="--scheduler"):
        kvcalc.sweep(**ASKED, scheduler="nonsense://")
