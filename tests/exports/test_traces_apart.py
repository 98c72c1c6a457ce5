"""Exports at once and one after the other: each is what it is alone, and leaves nothing behind."""

import gc
import sys
import threading
import zipfile

import pytest

import kvcalc
from kvcalc.tracing.expression import Node

DENSE = {"model": "llama-3.1-8b", "on": "h100-sxm-80gb", "concurrency": 32}
LATENT = {"model": "deepseek-v3", "on": "h200-sxm-141gb", "gpus": 8, "tp": 8, "engine": "sglang"}


def sheets(file):
    """Return the bytes of each sheet, with its words; the properties of the file hold the time of day."""
    with zipfile.ZipFile(file) as parts:
        return {name: parts.read(name) for name in parts.namelist() if name.startswith("xl/")}


def nodes():
    """Return how many nodes of graphs there are in this process."""
    gc.collect()
    return sum(type(item) is Node for item in gc.get_objects())


@pytest.fixture
def many_switches():
    """Let threads take turns so often that no step of an export is alone."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("many_switches")
def test_two_threads_write_the_cells_that_each_writes_alone(tmp_path):
    alone = {}
    for name, question in (("dense", DENSE), ("latent", LATENT)):
        kvcalc.export(**question, to=tmp_path / f"{name}.xlsx")
        alone[name] = sheets(tmp_path / f"{name}.xlsx")
    start, failed = threading.Barrier(2), []

    def write(name, question):
        start.wait()
        try:
            kvcalc.export(**question, to=tmp_path / f"{name}-at-once.xlsx")
        except BaseException as error:
            failed.append((name, error))

    threads = [threading.Thread(target=write, args=item) for item in (("dense", DENSE), ("latent", LATENT))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    for name, expected in alone.items():
        assert sheets(tmp_path / f"{name}-at-once.xlsx") == expected
    assert alone["dense"] != alone["latent"]


def test_an_export_leaves_no_node_behind(tmp_path):
    before = nodes()
    kvcalc.export("gpt-oss-20b", "h100-sxm-80gb", to=tmp_path / "plan.xlsx")
    assert nodes() == before


def test_an_export_that_fails_leaves_no_node_behind(tmp_path):
    before = nodes()
    with pytest.raises(kvcalc.KvcalcError, match="cannot write"):
        kvcalc.export("qwen3-8b", "h100-sxm-80gb", to=tmp_path / "nowhere" / "plan.xlsx")
    assert nodes() == before


def test_the_limit_of_calls_is_as_before_once_no_thread_needs_more():
    from kvcalc.tracing.depth import DEEPEST, deep

    before = sys.getrecursionlimit()
    first, second = deep(), deep()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert sys.getrecursionlimit() == max(before, DEEPEST)  # the second still runs
    second.__exit__(None, None, None)
    assert sys.getrecursionlimit() == before
