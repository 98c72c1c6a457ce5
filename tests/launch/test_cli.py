"""`--check-config` and `--emit` from the command line."""

import json

import pytest

from kvcalc.cli import run

PLAN = ["plan", "llama-3.1-8b", "--on", "h100-sxm-80gb"]


@pytest.fixture
def launch(tmp_path):
    path = tmp_path / "launch.sh"
    path.write_text("vllm serve m -tp 2 --kv-offloading-size 8 --max-model-lenght 4096\n")
    return str(path)


def test_the_checks_are_part_of_the_json(capsys, launch):
    assert run([*PLAN, "--check-config", launch, "--format", "json"]) == 0
    body = json.loads(capsys.readouterr().out)
    found = {item["id"]: item for item in body["config_checks"]}
    assert set(found["misspelt"]) == {"id", "severity", "message", "instead", "where", "source"}
    assert found["misspelt"]["where"] == f"{launch}:1"
    assert found["host-tier-adds-nothing"]["severity"] == "warning"
    assert body["inputs"]["tp"] == 2  # the launch is what is planned
    assert body["inputs"]["engine"] == "vllm"


def test_without_a_launch_there_are_none(capsys):
    assert run([*PLAN, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["config_checks"] == []


def test_the_table_has_a_block(capsys, launch):
    assert run([*PLAN, "--check-config", launch]) == 0
    out = capsys.readouterr().out
    assert "Launch check: 1 error" in out
    assert "Write: --max-model-len." in " ".join(out.split())


def test_an_option_takes_precedence_over_the_launch(capsys, launch):
    assert run([*PLAN, "--check-config", launch, "--tp", "4", "--format", "json"]) == 0
    body = json.loads(capsys.readouterr().out)
    assert body["inputs"]["tp"] == 4
    assert "plan-differs" in {item["id"] for item in body["config_checks"]}


def test_check_fails_on_errors_of_the_launch(launch, tmp_path, capsys):
    assert run([*PLAN, "--check-config", launch, "--check"]) == 1
    sound = tmp_path / "sound.sh"
    sound.write_text("vllm serve m --max-model-len 8192\n")
    assert run([*PLAN, "--check-config", str(sound), "--check"]) == 0


def test_emit_prints_a_launch_and_nothing_else(capsys):
    assert run([*PLAN, "--emit", "vllm"]) == 0
    out = capsys.readouterr().out
    rows = [line for line in out.splitlines() if not line.startswith("#")]
    assert rows[0] == "vllm serve meta-llama/Llama-3.1-8B \\"
    assert all(line.startswith("  --") for line in rows[1:])


def test_emit_saves(tmp_path):
    path = tmp_path / "launch.sh"
    assert run([*PLAN, "--emit", "sglang", "--save", str(path)]) == 0
    assert "sglang.launch_server" in path.read_text()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--emit", "vlm"], "did you mean 'vllm'"),
        (["--emit", "vllm", "--check-config", "x.sh"], "leave --check-config out"),
        (["--check-config", "/nowhere.sh"], "no such file"),
    ],
)
def test_mistakes_are_one_line(capsys, options, message):
    assert run([*PLAN, *options]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_nothing_in_a_launch_is_run(tmp_path):
    mark = tmp_path / "mark"
    script = tmp_path / "launch.sh"
    script.write_text(f"touch {mark}\nX=$(touch {mark})\nvllm serve m --max-model-len `touch {mark}`\n")
    run([*PLAN, "--check-config", str(script)])
    assert not mark.exists()
