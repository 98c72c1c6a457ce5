"""`kvcalc probe` from the outside: files, exit status, interrupts, and what must not stand in a file."""

import getpass
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import jsonschema
import pytest

from kvcalc.cli import run
from kvcalc.output import schema
from kvcalc.probe import command
from kvcalc.probe.backends.found import Devices
from kvcalc.probe.backends.simulated import Behaviour, SimulatedDevice
from kvcalc.probe.options import Options
from kvcalc.probe.run import Run

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
RULES = json.loads((schema.FOLDER / "probe-1.json").read_text(encoding="utf-8"))
BLOCKED = ("typer", "click", "rich", "pint", "yaml", "pydantic", "pandas", "prometheus_client", "torch")
BARE = (
    "import sys\n"
    "class Block:\n"
    "    def find_spec(self, name, path=None, target=None):\n"
    f"        if name.split('.')[0] in {BLOCKED!r}:\n"
    "            raise ImportError(name + ' is blocked')\n"
    "sys.meta_path.insert(0, Block())\n"
    "from kvcalc.probe.__main__ import run\n"
    "sys.exit(run(sys.argv[1:]))\n"
)


def valid(path):
    """Return the evidence of a file that the schema accepts."""
    body = json.loads(Path(path).read_text(encoding="utf-8"))
    jsonschema.validate(body, RULES)
    return body


def test_a_bare_machine_probes_and_kvcalc_plans_on_it(tmp_path, capsys):
    command = [
        sys.executable,
        "-c",
        BARE,
        "--test",
        "M1",
        "--quick",
        "--format",
        "json",
        "--model",
        "llama-3.1-8b",
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    printed = json.loads(done.stdout)
    assert printed["profile"] == "probe.yaml"
    assert printed["inputs"]["pieces"]["block"] == 16 * 131072
    assert valid(tmp_path / "probe.json")["complete"]
    assert run(["plan", "llama-3.1-8b", "--on", str(tmp_path / "probe.yaml"), "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["sources"]["device.bandwidth"]["kind"] == "measured"


def test_the_bare_door_refuses_in_one_line(tmp_path):
    command = [sys.executable, "-c", BARE, "--test", "M9"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr.count("\n"), list(tmp_path.iterdir())) == (2, 1, [])
    assert "unknown test 'M9'" in done.stderr


SLOW = ["--test", "M1", "--test", "Z1", "--disk", "."]


@pytest.mark.parametrize(
    "number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda number: number.name
)
def test_a_killed_probe_leaves_a_valid_file_and_no_other(number, tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-m", "kvcalc.probe", *SLOW],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    evidence = tmp_path / "probe.json"
    for _ in range(1200):  # until one test has measured something and the next is under way
        if evidence.exists() and json.loads(evidence.read_text())["measurements"]:
            break
        time.sleep(0.05)
    process.send_signal(number)
    _, error = process.communicate(timeout=60)
    body = valid(evidence)
    assert not body["complete"]
    assert body["measurements"]
    status = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGKILL: -9}[number]
    assert process.returncode == status
    said = (
        b"" if number == signal.SIGKILL else b"kvcalc: ended early; probe.json is partial (complete: false)\n"
    )
    assert error == said
    assert [path.name for path in tmp_path.iterdir()] == ["probe.json"]


def simulated(monkeypatch, **behaviour):
    """Let the command find one simulated device."""
    device = SimulatedDevice(Behaviour(**behaviour))
    monkeypatch.setattr(command, "find", lambda: Devices((device,), ()))


@pytest.fixture
def at(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_table_shows_fits_checks_and_where_the_profile_is(at, monkeypatch, capsys):
    simulated(monkeypatch, bound=63e9)
    assert run(["probe", "--quick", "--test", "H1", "--test", "D1"]) == 0
    page = capsys.readouterr().out
    assert "Time of one copy = fixed time + bytes / rate" in page
    assert re.search(r"h2d\.pinned +(49|50)\.\d GB/s +(49|50)\.\d to 5\d\.\d GB/s +(2\.9|3\.0)\d µs", page)
    assert "pass  verification" in page
    assert "kvcalc plan MODEL --on ./probe.yaml" in page


def test_stdout_names_the_profile_as_it_was_given_and_the_evidence_does_not(at, monkeypatch, capsys):
    simulated(monkeypatch, bound=63e9)
    (at / "out").mkdir()
    files = ["--profile", "out/p.yaml", "--evidence", "out/e.json"]
    assert run(["probe", "--quick", "--test", "H1", "--test", "D1", *files, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["profile"] == "out/p.yaml"
    assert valid("out/e.json")["profile"] is None


@pytest.mark.parametrize("door", ["kvcalc", "python -m kvcalc.probe"])
@pytest.mark.parametrize("lost", ["evidence", "profile"])
def test_what_was_measured_is_shown_where_no_file_can_be_written_any_more(
    door, lost, at, monkeypatch, capsys
):
    from kvcalc.probe.__main__ import run as bare

    simulated(monkeypatch, bound=63e9)
    (at / "out").mkdir()
    measured = Run.result

    def then_gone(self):
        result = measured(self)
        shutil.rmtree(at / "out")
        return result

    monkeypatch.setattr(Run, "result", then_gone)
    names = {"evidence": "e.json", "profile": "p.yaml"}
    names[lost] = f"out/{names[lost]}"
    said = ["--quick", "--test", "H1", "--test", "D1"]
    said += [f"--{option}={name}" for option, name in names.items()]
    assert (run(["probe", *said]) if door == "kvcalc" else bare(said)) == 2
    out, error = capsys.readouterr()
    assert "h2d.pinned" in out
    assert names[lost] in error
    assert error.count("\n") == 1
    assert not (at / "out").exists()


def test_wrong_content_exits_with_4(at, monkeypatch, capsys):
    simulated(monkeypatch, corrupt=True)
    assert run(["probe", "--quick", "--test", "H1", "--test", "D1"]) == 4
    assert "other bytes arrived than were sent" in " ".join(capsys.readouterr().out.split())


def test_a_failed_figure_exits_with_1_only_where_that_is_asked(at, monkeypatch, capsys):
    simulated(monkeypatch, bandwidth=60e9, bound=30e9)
    assert run(["probe", "--quick", "--test", "H1", "--test", "D1"]) == 0
    assert run(["probe", "--quick", "--test", "H1", "--test", "D1", "--check"]) == 1
    assert "physically" in capsys.readouterr().out


def test_no_gpu_exits_with_3_only_where_one_is_required(at, monkeypatch, capsys):
    monkeypatch.setattr(command, "find", lambda: Devices((), ("torch is not installed",)))
    assert run(["probe", "--quick", "--test", "F"]) == 0
    assert run(["probe", "--quick", "--test", "F", "--require-gpu"]) == 3
    assert "torch is not installed" in capsys.readouterr().out


def test_a_file_of_somebody_else_is_not_written_over(at, capsys):
    (at / "probe.yaml").write_text("schema: kvcalc.hardware/1\nname: mine\n")
    assert run(["probe", "--quick", "--test", "F"]) == 2
    assert "was not written by kvcalc probe" in capsys.readouterr().err
    assert (at / "probe.yaml").read_text().endswith("mine\n")
    assert not (at / "probe.json").exists()


def test_an_own_file_is_written_over(at, monkeypatch, capsys):
    simulated(monkeypatch)
    for _ in range(2):
        assert run(["probe", "--quick", "--test", "D1", "--test", "H1"]) == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--quick", "--full"], "--quick and --full say two different things"),
        (["--test", "H7"], "unknown test 'H7', did you mean"),
        (["--disk-bytes", "1 GB/s"], "--disk-bytes: "),
        (["--max-seconds", "5 apples"], "--max-seconds: "),
        (["--device", "first"], "--device: 'first' is not a whole number"),
        (["--model", "llama-9"], "no model is named 'llama-9'"),
        (["--evidence", "no/such/e.json"], "the folder no/such is not there"),
        (["--profile", "."], "is a folder"),
        (["--format", "yaml"], "--format: unknown format 'yaml'"),
        (["--quik"], "No such option"),
        (["--base", "h100-sxm-80g"], "'h100-sxm-80g'"),
        (["--disk", "/nonexistent"], "--disk: /nonexistent is not there"),
        (["--disk", __file__], "is a file; name a folder"),
        (["--disk-bytes", "900 TB"], "--disk-bytes: 900,000 GB find no room"),
        (["--device", "3"], "--device: there is no device 3: "),
        (["--device", "0", "--host-only"], "--device and --host-only say two different things"),
        (["--base", "l40s", "--host-only"], "--base and --host-only say two different things"),
        (
            ["--evidence", "x.json", "--profile", "./x.json"],
            "--profile: ./x.json is the file of --evidence too",
        ),
        (["--save", "probe.json"], "--save: probe.json is the file of --evidence too"),
    ],
)
def test_a_wrong_option_is_one_line(arguments, words, at, capsys):
    assert run(["probe", *arguments]) == 2
    out, error = capsys.readouterr()
    assert (out, error.count("\n")) == ("", 1)
    assert words in error
    assert list(at.iterdir()) == []


def test_a_profile_of_an_earlier_probe_is_said_to_be_one(at, monkeypatch, capsys):
    simulated(monkeypatch)
    assert run(["probe", "--quick", "--test", "D1", "--test", "H1"]) == 0
    before = (at / "probe.yaml").read_text()
    capsys.readouterr()
    assert run(["probe", "--quick", "--test", "F", "--format", "json"]) == 0
    warnings = json.loads(capsys.readouterr().out)["warnings"]
    assert "probe.yaml is of an earlier probe, not of this one, and stays as it was" in warnings
    assert (at / "probe.yaml").read_text() == before


def test_a_base_that_is_not_used_is_said(at, monkeypatch, capsys):
    monkeypatch.setattr(command, "find", lambda: Devices((), ("torch is not installed",)))
    assert run(["probe", "--quick", "--test", "M1", "--base", "l40s", "--format", "json"]) == 0
    assert "--base l40s was not used: no GPU was measured" in json.loads(capsys.readouterr().out)["warnings"]


def test_the_help_says_what_no_gpu_has_verified(capsys):
    from kvcalc.probe.__main__ import run as bare

    with pytest.raises(SystemExit) as left:
        bare(["--help"])
    assert left.value.code == 0
    assert "not yet verified on a GPU" in " ".join(capsys.readouterr().out.split())
    assert run(["probe", "--help"]) == 0
    assert "not yet verified on a GPU" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (["--quik"], "no such option: --quik, did you mean '--quick'"),
        (["--quick", "--full"], "--full: not allowed with argument --quick"),
        (["--seed", "-3"], "--seed: '-3' is not a whole number below 4294967296"),
        (["--device", "x"], "--device: 'x' is not a whole number below 1024"),
        (["--max-seconds", "abc"], "--max-seconds: 'abc' is not a number with one of s, ms, min"),
        (["--disk-bytes", "1 GiBB"], "--disk-bytes: '1 GiBB' is not a number with one of B, KiB"),
        (["--max-seconds", "0"], "--max-seconds: 0 is not a positive time"),
        (["--test", "H9"], "--test: unknown test 'H9'"),
        (["--fu"], "no such option: --fu"),  # no option is guessed from its first letters
    ],
)
def test_the_bare_door_refuses_wrong_options_in_one_line(said, words, tmp_path, monkeypatch, capsys):
    from kvcalc.probe.__main__ import run as bare

    monkeypatch.chdir(tmp_path)
    assert bare(said) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert words in shown.err
    assert shown.err.startswith("kvcalc: ")
    assert shown.err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


SECRETS = {
    "host name": r"{host}",
    "user": r"\b{user}\b",
    "home": r"{home}",
    "UUID": r"[0-9a-f]{{8}}-[0-9a-f]{{4}}-[0-9a-f]{{4}}",
    "bus id": r"[0-9a-fA-F]{{4,8}}:[0-9a-fA-F]{{2}}:[0-9a-fA-F]{{2}}",
    "path": r"(?<![\w./])/(?:home|root|tmp|mnt|usr|dev|proc|sys|var|opt|work)\b",
}


@pytest.mark.parametrize("secret", SECRETS)
def test_no_file_tells_whose_machine_it_was(secret, redacted):
    pattern = SECRETS[secret].format(
        host=re.escape(socket.gethostname()),
        user=re.escape(getpass.getuser()),
        home=re.escape(str(Path.home())),
    )
    for name, text in redacted.items():
        assert re.findall(pattern, text) == [], name


@pytest.fixture(scope="module")
def redacted(tmp_path_factory):
    """Evidence and profile of a run with a device that knows its address, a disk, and a test that fails."""
    from kvcalc.probe.backends.torch_device import TorchDevice
    from tests.probe import fake_torch

    folder = tmp_path_factory.mktemp("secret-place")
    places = command.Places(str(folder / "e.json"), str(folder / "p.yaml"))
    torch = fake_torch.machine()
    device = TorchDevice(torch, "cuda")
    assert device.address == "0000:1b:00.0"
    options = Options(
        level="quick",
        tests=("F", "M1", "Z1", "D1", "C1", "P1"),
        disk=folder,
        disk_named=True,
        disk_bytes=2**26,
    )
    failing = OSError(5, "Input/output error", f"{Path.home()}/file")

    class Broken(TorchDevice):
        def multiply(self, side):
            return lambda: None

        def convert(self, conversion, elements):
            raise failing

        def memory(self, size):
            return super().memory(min(size, 2**20))

    found = command.probe(options, places, devices=Devices((Broken(torch, "cuda"),), (), torch))
    assert any(test.status == "failed" for test in found.tests)
    return {path.name: path.read_text(encoding="utf-8") for path in folder.iterdir()}


def test_both_files_were_looked_at(redacted):
    assert set(redacted) == {"e.json", "p.yaml"}


def evidence(tmp_path, name, monkeypatch, **behaviour):
    simulated(monkeypatch, **behaviour)
    path = tmp_path / name
    assert (
        run(
            [
                "probe",
                "--quick",
                "--test",
                "H1",
                "--evidence",
                str(path),
                "--profile",
                str(tmp_path / "p.yaml"),
            ]
        )
        == 0
    )
    return str(path)


def test_two_probes_are_compared(tmp_path, monkeypatch, capsys):
    first = evidence(tmp_path, "a.json", monkeypatch, bandwidth=50e9)
    same = evidence(tmp_path, "b.json", monkeypatch, bandwidth=50e9, seed=9)
    slow = evidence(tmp_path, "c.json", monkeypatch, bandwidth=25e9)
    capsys.readouterr()
    for other, expected in ((same, {"same"}), (slow, {"same", "slower"})):
        assert run(["probe", "compare", first, other, "--format", "json"]) == 0
        rows = json.loads(capsys.readouterr().out)["rows"]
        assert {row["verdict"] for row in rows} <= expected
    large = [row for row in rows if row["bytes"] >= 2**24]
    assert all(row["verdict"] == "slower" and row["change"] == pytest.approx(-0.5, abs=0.03) for row in large)
    assert run(["probe", "compare", first, slow]) == 0
    assert "slower" in capsys.readouterr().out


@pytest.mark.parametrize(
    "content", ["{", "[]", '{"schema": "kvcalc.plan/1"}', '{"schema": "kvcalc.probe/1"}']
)
def test_a_file_that_is_no_evidence_is_not_compared(content, tmp_path, capsys):
    file = tmp_path / "a.json"
    file.write_text(content)
    assert run(["probe", "compare", str(file), str(file)]) == 2
    error = capsys.readouterr().err
    assert str(file) in error
    assert error.count("\n") == 1


def test_progress_is_for_terminals_alone(at, monkeypatch, capsys):
    simulated(monkeypatch)
    assert run(["probe", "--quick", "--test", "H1"]) == 0
    assert capsys.readouterr().err == ""
    assert os.environ.get("TERM") != "impossible"


def test_figures_of_another_tool_are_compared_device_by_device(capsys):
    first, second = (str(EXAMPLES / f"probe-{when}.json") for when in ("before", "after"))
    assert run(["probe", "compare", first, second, "--format", "json"]) == 0
    found = {row["series"]: row["verdict"] for row in json.loads(capsys.readouterr().out)["rows"]}
    assert found["h2d.pinned"] == "slower"  # 55.3 to 27.1 GB/s
    assert found["h2d.pinned (device 1)"] == "same"


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (["--engine", "vllmm"], "--engine is of a model; name --model too"),
        (["--tp", "3"], "--tp is of a model; name --model too"),
        (["--disk", ""], "--disk: the name of the folder is empty"),
    ],
)
def test_options_without_what_they_are_of_are_refused(said, words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert run(["probe", *said]) == 2
    assert words in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_model_whose_pieces_nothing_moves_is_told(at, monkeypatch, capsys):
    monkeypatch.setattr(command, "find", lambda: Devices((), ("torch is not installed",)))
    assert run(["probe", "--quick", "--test", "F", "--model", "llama-3.1-8b", "--format", "json"]) == 0
    warnings = json.loads(capsys.readouterr().out)["warnings"]
    assert any(told.startswith("--model llama-3.1-8b changed nothing") for told in warnings)


def test_the_bare_door_reads_units():
    from kvcalc.probe.__main__ import BYTES, TIMES, quantity

    assert (quantity(TIMES)("3"), quantity(TIMES)("3 s"), quantity(TIMES)("2 min")) == (3.0, 3.0, 120.0)
    assert (quantity(BYTES)("1 GiB"), quantity(BYTES)("1.5 GB"), quantity(BYTES)("512")) == (
        2**30,
        1.5e9,
        512,
    )


def test_the_help_tells_the_tests_and_the_exit_statuses(capsys):
    assert run(["probe", "--help"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "H1, H2, H3, S1" in shown
    assert "4 other bytes arrived than were sent" in shown


@pytest.mark.parametrize("name", ["a.json", "b.json", "./a.json"])
def test_a_comparison_is_not_saved_over_what_it_compares(name, at, capsys):
    for side, when in (("a", "before"), ("b", "after")):
        (at / f"{side}.json").write_text((EXAMPLES / f"probe-{when}.json").read_text())
    before = (at / name).read_text()
    assert run(["probe", "compare", "a.json", "b.json", "--save", name]) == 2
    assert f"--save: {name} is the file that is read; name another one" in capsys.readouterr().err
    assert (at / name).read_text() == before


@pytest.mark.parametrize(
    ("save", "words"),
    [
        ("no/such/x.json", "--save: no/such/x.json: the folder no/such is not there"),
        ("", "is empty"),
        (".", "is a folder"),
    ],
)
@pytest.mark.parametrize("arguments", [["compare", "a.json", "b.json"], ["import", "f.json"], ["--quick"]])
def test_a_wrong_place_is_refused_before_anything_is_read(arguments, save, words, at, capsys):
    assert run(["probe", *arguments, "--save", save]) == 2  # none of the files that it names is there
    out, error = capsys.readouterr()
    assert (out, error.count("\n")) == ("", 1)
    assert "--save: " in error
    assert words in error
    assert list(at.iterdir()) == []


def changed(at, name, **parts):
    """Write the earlier evidence of the examples with other parts."""
    body = json.loads((EXAMPLES / "probe-before.json").read_text())
    (at / name).write_text(json.dumps(body | parts))


DISK = {"filesystem": "ext4", "rotational": False, "scheduler": None, "virtual": False, "free": 1e12}


def test_a_comparison_says_what_else_differs(at, capsys):
    machine = json.loads((EXAMPLES / "probe-before.json").read_text())["machine"]
    changed(at, "a.json", level="quick", machine=machine | {"disk": DISK | {"file": 2**30}})
    other = machine | {"disk": DISK | {"file": 2**34, "filesystem": "xfs"}}
    changed(at, "b.json", complete=False, version="9.9.9", machine=other)
    assert run(["probe", "compare", "a.json", "b.json", "--format", "json"]) == 0
    notes = json.loads(capsys.readouterr().out)["notes"]
    for words in (
        "b.json is partial: its probe ended early (complete: false).",
        "The level differs: quick against imported.",
        "The file on the disk differs: 1024 MiB against 16384 MiB.",
        "The file system of the disk differs: ext4 against xfs.",
        "against 9.9.9.",
    ):
        assert any(words in note for note in notes), words
    assert not any("a.json is partial" in note for note in notes)


def test_a_comparison_marks_figures_that_were_unstable(at, capsys):
    rows = json.loads((EXAMPLES / "probe-before.json").read_text())["measurements"]
    flagged = [{**rows[0], "flags": ["unstable", "outliers"]}, *rows[1:]]
    both = [flagged[0], {**rows[1], "flags": ["unstable"]}, *rows[2:]]
    changed(at, "a.json", measurements=flagged)
    changed(at, "b.json", measurements=both)
    assert run(["probe", "compare", "a.json", "b.json", "--format", "json"]) == 0
    found = [row["flags"] for row in json.loads(capsys.readouterr().out)["rows"]]
    assert found[:3] == ["unstable (both)", "unstable (after)", ""]


@pytest.mark.parametrize("part", [{"machine": 5}, {"machine": {"devices": 5}}, {"inputs": None}])
def test_a_comparison_survives_what_it_does_not_need(part, at, capsys):
    changed(at, "a.json", **part)
    assert run(["probe", "compare", "a.json", str(EXAMPLES / "probe-before.json")]) == 0


IMPORT = ["probe", "import", str(EXAMPLES / "nvbandwidth.json"), "--base", "h100-sxm-80gb"]


@pytest.mark.parametrize(
    ("option", "written", "words"),
    [
        ("--evidence", "--profile", "--evidence: x is a profile of an earlier probe, not evidence"),
        ("--profile", "--evidence", "--profile: x is evidence of an earlier probe, not a profile"),
    ],
)
def test_an_option_writes_over_its_own_kind_alone(option, written, words, at, capsys):
    assert run([*IMPORT, written, "x"]) == 0
    before = (at / "x").read_text()
    assert run([*IMPORT, written, "x"]) == 0
    capsys.readouterr()
    assert run([*IMPORT, option, "x"]) == 2
    assert words in capsys.readouterr().err
    assert (at / "x").read_text() == before


@pytest.mark.parametrize("option", ["--evidence", "--profile"])
def test_an_empty_name_is_said_to_be_empty(option, at, capsys):
    assert run([*IMPORT, option, ""]) == 2
    assert f"{option}: the name of the file is empty" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--evidence", "--profile", "--save"])
def test_an_import_is_not_written_over_its_file(option, at, capsys):
    (at / "n.json").write_text((EXAMPLES / "nvbandwidth.json").read_text())
    assert run(["probe", "import", "n.json", option, "n.json"]) == 2
    error = capsys.readouterr().err
    assert "FILE" not in error
    assert f"{option}: n.json is" in error


@pytest.mark.parametrize("key", ["chunk_bytes", "bandwidth"])
def test_a_number_beyond_every_float_is_refused_by_its_key(key, at, capsys):
    rows = json.loads((EXAMPLES / "probe-before.json").read_text())["measurements"]
    changed(at, "a.json", measurements=[rows[0] | {key: 10**400}])
    assert run(["probe", "compare", "a.json", "a.json"]) == 2
    assert f"a.json: measurements[0].{key}: expected a number" in capsys.readouterr().err
