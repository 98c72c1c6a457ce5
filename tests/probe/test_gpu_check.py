"""The check of a real GPU's evidence, on that of a simulated device: it holds, and it can fail."""

import json
import runpy
import subprocess
from pathlib import Path

import pytest

from kvcalc.cli import run
from kvcalc.probe import command
from kvcalc.probe.backends.found import Devices
from kvcalc.probe.backends.simulated import Behaviour, SimulatedDevice
from kvcalc.probe.options import GPU_NOTE, VERIFIED

ROOT = Path(__file__).resolve().parents[2]
CHECK = runpy.run_path(str(ROOT / "tests/gpu/check.py"))
TESTS = ("F", "O1", "H1", "H2", "H3", "S1", "D1", "C1", "P1", "K1", "M1")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("gpu")
    device = SimulatedDevice(Behaviour(bound=63e9, bandwidth=55e9))
    patch = pytest.MonkeyPatch()
    patch.setattr(command, "find", lambda: Devices((device,), ()))
    chosen = [word for test in TESTS for word in ("--test", test)]
    paths = [str(folder / name) for name in ("e.json", "p.yaml")]
    assert run(["probe", "--quick", *chosen, "--evidence", paths[0], "--profile", paths[1]]) == 0
    patch.undo()
    return paths


def test_the_evidence_of_a_sound_device_holds(files, monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    assert CHECK["main"](*files) == 0
    assert "WRONG" not in capsys.readouterr().out


@pytest.mark.parametrize(
    "change",
    [
        lambda body: body["measurements"][5].update(verified=False),
        lambda body: body.update(complete=False),
        lambda body: body["machine"]["devices"][0]["link"].update(bound=1e9),
        lambda body: body["tests"][3].update(status="failed"),
        lambda body: body.pop("derived"),
    ],
    ids=["wrong content", "cut off", "above the link", "a failed test", "against the schema"],
)
def test_evidence_that_shows_less_does_not(change, files, monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(ROOT)
    body = json.loads(Path(files[0]).read_text())
    change(body)
    broken = tmp_path / "e.json"
    broken.write_text(json.dumps(body))
    assert CHECK["main"](str(broken), files[1]) == 1


def test_the_script_is_one_that_bash_reads():
    subprocess.run(["bash", "-n", str(ROOT / "tests/gpu/check.sh")], check=True)


def test_the_help_claims_what_the_evidence_in_the_repository_shows():
    evidence = (ROOT / "hardware/probes").glob("*.json")
    kinds = {
        device["backend"]
        for file in evidence
        for device in json.loads(file.read_text())["machine"]["devices"]
    }
    assert kinds == VERIFIED
    readme = " ".join((ROOT / "README.md").read_text().split())
    for words in (GPU_NOTE, readme):
        assert ("not yet verified on a GPU" in words) == (not kinds)
