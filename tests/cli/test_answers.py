"""What the command line answers, by figures that are worked out by hand, and how it behaves."""

import json
import os
import subprocess
import sys
from importlib import resources

import jsonschema
import pytest

import kvcalc as package

RESTORE = (
    *("restore", "--bytes", "1 GB", "--bandwidth", "10 GB/s", "--bandwidth", "20 GB/s"),
    *("--prefill", "100 ms", "--setup", "5 ms", "--format", "json"),
)
PLAN = ("plan", "llama-3.1-8b", "--on", "h100-sxm-80gb")


def answer(kvcalc, *arguments):
    outcome = kvcalc(*arguments)
    assert outcome.status == 0
    return json.loads(outcome.out)


def test_a_restore_at_two_bandwidths(kvcalc):
    """1 GB takes 0.1 or 0.05 s, with 5 ms of set-up and 30 ms of prefill; 65 ms is the break-even."""
    result = answer(kvcalc, *RESTORE, "--remaining", "30 ms")
    assert [row["cached_total"] for row in result["rows"]] == pytest.approx([0.135, 0.085], rel=1e-12)
    assert [row["verdict"] for row in result["rows"]] == ["recompute", "restore"]
    assert result["break_even_bandwidth"] == pytest.approx(1e9 / 0.065, rel=1e-12)
    assert result["break_even_bandwidth"] == pytest.approx(15_384_615_384.6, abs=0.05)


def test_no_bandwidth_breaks_even_when_too_little_is_saved(kvcalc):
    """96 ms that remain and 5 ms of set-up exceed the 100 ms of a full prefill at any bandwidth."""
    result = answer(kvcalc, *RESTORE, "--remaining", "96 ms")
    assert result["break_even_bandwidth"] is None
    assert result["reason"]
    assert [row["verdict"] for row in result["rows"]] == ["recompute", "recompute"]


@pytest.mark.parametrize(
    ("model", "per_token"), [("qwen2.5-7b", 28 * 4 * 128 * 2 * 2), ("qwen2.5-72b", 80 * 8 * 128 * 2 * 2)]
)
def test_bytes_per_token(kvcalc, model, per_token):
    assert per_token in (57_344, 327_680)
    result = answer(kvcalc, "kv", model, "--kv-dtype", "fp16", "--format", "json")
    assert result["bytes_per_token"] == per_token


def test_a_batch_of_32_at_32ki_on_the_7b(kvcalc):
    result = answer(kvcalc, "kv", "qwen2.5-7b", "--tokens", "32Ki", "--format", "json")
    batch = 32 * result["views"]["serialized"]
    assert batch == 32 * 32_768 * 57_344 == 56 * 2**30
    assert round(batch / 1e9, 2) == 60.13


def test_four_contexts_of_32ki_on_the_72b(kvcalc):
    result = answer(kvcalc, "kv", "qwen2.5-72b", "--tokens", "32Ki", "--format", "json")
    four = 4 * result["views"]["serialized"]
    assert four == 4 * 32_768 * 327_680 == 40 * 2**30
    assert round(four / 1e9, 1) == 42.9


def test_k_and_ki_differ(kvcalc):
    lengths = [
        answer(kvcalc, "kv", "llama-3.1-8b", "--tokens", text, "--format", "json")["tokens"]
        for text in ("32k", "32Ki", "32,000")
    ]
    assert lengths == [32_000, 32_768, 32_000]


def test_the_exit_status_tells_whether_it_fits_only_when_asked(kvcalc):
    much = ("--concurrency", "100000", "--prompt", "16k")
    fits, does_not = kvcalc(*PLAN, "--check"), kvcalc(*PLAN, *much, "--check")
    assert (fits.status, does_not.status, kvcalc(*PLAN, *much).status) == (0, 1, 0)
    assert does_not.out  # answered all the same


@pytest.mark.parametrize("form", ["table", "json", "csv", "markdown"])
@pytest.mark.parametrize(
    "arguments",
    [
        PLAN,
        ("kv", "gemma-2-9b", "--engine", "vllm", "--pool", "20 GiB", "--max-len", "8k"),
        RESTORE[:-2],
        ("models", "list", "llama"),
        ("models", "show", "deepseek-v3"),
        ("hardware", "list"),
        ("hardware", "show", "l40s"),
        ("explain", "break_even_bandwidth"),
        ("explain",),
    ],
    ids=lambda arguments: "-".join(arguments[:2]),
)
def test_every_answer_in_every_format_is_plain_text(kvcalc, arguments, form):
    outcome = kvcalc(*arguments, "--format", form)
    assert outcome.status == 0
    assert outcome.out.endswith("\n")
    assert "\x1b" not in outcome.out  # no colour where there is no terminal
    for line in outcome.err.splitlines():
        assert line.startswith("kvcalc: warning: ")


def published(identifier: str) -> dict:
    """Return the schema that the package ships for ``kvcalc.plan/1`` and the like."""
    name = identifier.removeprefix("kvcalc.").replace("/", "-") + ".json"
    folder = resources.files("kvcalc") / "schemas"
    shipped = folder / name
    return json.loads((shipped if shipped.is_file() else folder / "table-1.json").read_text())


@pytest.mark.parametrize(
    "arguments",
    [
        PLAN,
        (*PLAN, "--gpus", "2", "--rate", "2/s", "--tier", "dram=512 GB@54 GB/s", "--hit", "0.5"),
        ("kv", "deepseek-v3", "--engine", "sglang", "--pool", "60 GiB"),
        RESTORE[:-2],
        ("models", "show", "qwen2.5-7b"),
        ("models", "list"),
        ("hardware", "show", "h200-sxm-141gb"),
    ],
    ids=lambda arguments: " ".join(arguments[:2]),
)
def test_json_follows_its_published_schema(kvcalc, arguments):
    result = answer(kvcalc, *arguments, "--format", "json")
    jsonschema.validate(result, published(result["schema"]))
    assert result["version"] == package.__version__


def test_explain_puts_the_numbers_of_the_run_in(kvcalc):
    shown = kvcalc(*RESTORE[:-2], "--remaining", "30 ms", "--explain")
    assert "break_even_bandwidth" in shown.out
    assert "gives        15.4 GB/s  break_even_bandwidth" in shown.out


def test_save_writes_what_stdout_would_have_had(kvcalc, tmp_path):
    file = tmp_path / "plan.json"
    saved = kvcalc(*PLAN, "--format", "json", "--save", str(file))
    assert (saved.status, saved.out) == (0, "")
    assert file.read_text() == kvcalc(*PLAN, "--format", "json").out
    assert [entry.name for entry in tmp_path.iterdir()] == ["plan.json"]


@pytest.mark.parametrize("target", ["missing/plan.json", "folder", "file/plan.json"])
def test_what_cannot_be_saved_leaves_nothing_behind(refusal, tmp_path, target):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("mine")
    before = sorted(entry.name for entry in tmp_path.rglob("*"))
    line = refusal(*PLAN, "--save", str(tmp_path / target))
    assert line.startswith(f"cannot write {tmp_path / target}: ")
    assert sorted(entry.name for entry in tmp_path.rglob("*")) == before
    assert (tmp_path / "file").read_text() == "mine"


def test_bad_input_does_not_touch_the_file_to_save(refusal, tmp_path):
    file = tmp_path / "plan.json"
    file.write_text("mine")
    refusal(*PLAN, "--pool", "80 gigs", "--save", str(file))
    assert file.read_text() == "mine"


def test_an_imported_profile_answers_as_its_config_did(kvcalc, tmp_path):
    config = {
        "model_type": "llama",
        "num_hidden_layers": 2,
        "hidden_size": 64,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "intermediate_size": 128,
        "vocab_size": 100,
        "max_position_embeddings": 1024,
    }
    source, profile = tmp_path / "config.json", tmp_path / "small.yaml"
    source.write_text(json.dumps(config))
    assert kvcalc("models", "import", str(source), "--name", "small", "--save", str(profile)).status == 0
    results = [answer(kvcalc, "kv", str(file), "--format", "json") for file in (source, profile)]
    assert results[0]["bytes_per_token"] == results[1]["bytes_per_token"] == 2 * 2 * 32 * 2
    assert results[0]["components"] == results[1]["components"]


def test_ctrl_c_exits_130_without_a_word(kvcalc, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("kvcalc.catalog.models.load", interrupt)
    outcome = kvcalc("kv", "llama-3.1-8b")
    assert (outcome.status, outcome.out) == (130, "")
    assert "Traceback" not in outcome.err


# The rest runs as a program of its own.


def program(*arguments: str, **environment: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "kvcalc", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, **environment},
    )


def test_the_program_answers_and_refuses():
    answered = program("kv", "llama-3.1-8b", "--format", "json")
    assert (answered.returncode, answered.stderr) == (0, "")
    assert json.loads(answered.stdout)["bytes_per_token"] == 32 * 8 * 256 * 2
    refused = program("kv", "lama-3.1-8b")
    assert (refused.returncode, refused.stdout, refused.stderr.count("\n")) == (2, "", 1)
    assert program(*PLAN, "--concurrency", "100000", "--check").returncode == 1


def test_version_comes_first_and_loads_nothing():
    shown = program("--version")
    assert (shown.returncode, shown.stdout) == (0, f"kvcalc {package.__version__}\n")
    code = "import sys; sys.argv = ['kvcalc', '--version']; import runpy\n"
    code += "try: runpy.run_module('kvcalc', run_name='__main__')\nexcept SystemExit: print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert {"numpy", "typer", "yaml", "pint", "rich", "kvcalc.cli"} & set(loaded.stdout.split()) == set()


def test_help_is_an_answer():
    shown = program("--help")
    assert (shown.returncode, shown.stderr) == (0, "")
    for command in ("plan", "kv", "restore", "models", "hardware", "explain"):
        assert command in shown.stdout


def test_a_reader_that_goes_away_is_no_error():
    writer = subprocess.Popen(
        [sys.executable, "-m", "kvcalc", "models", "list"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert writer.stdout is not None
    assert writer.stderr is not None
    writer.stdout.read(10)
    writer.stdout.close()
    complaint = writer.stderr.read()
    writer.stderr.close()
    assert (writer.wait(60), complaint) == (0, b"")


def on_a_terminal(**environment: str) -> bytes:
    """Return what a plan writes to a terminal of its own."""
    pty = pytest.importorskip("pty", reason="this system has no pseudo-terminals")
    outer, inner = pty.openpty()
    clean = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "TERM")}
    child = subprocess.Popen(
        [sys.executable, "-m", "kvcalc", *PLAN],
        stdout=inner,
        stderr=subprocess.DEVNULL,
        env={**clean, "TERM": "xterm-256color", **environment},
    )
    os.close(inner)
    written = b""
    while True:
        try:
            chunk = os.read(outer, 65_536)
        except OSError:  # the terminal is gone with the child
            break
        if not chunk:
            break
        written += chunk
    os.close(outer)
    assert child.wait(60) == 0
    return written


def test_colour_is_for_terminals_that_want_it():
    assert b"\x1b[" in on_a_terminal()
    assert b"\x1b[" not in on_a_terminal(NO_COLOR="1")
