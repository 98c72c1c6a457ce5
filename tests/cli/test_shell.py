"""What a shell sees: help on one screen, examples that work, completion, and exit codes that stay."""

import os
import re
import shlex
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from kvcalc.cli import COMMANDS, run

ROOT = Path(__file__).resolve().parents[2]
PLAN = ("plan", "llama-3.1-8b", "--on", "h100-sxm-80gb")


def leaves(kvcalc, words=()):
    """Yield the words of every command that has none below it."""
    _, _, listed = kvcalc(*words, "--help").out.partition("\nCommands:\n")
    names = re.findall(r"^  (\w[\w-]*)", listed.partition("\n\n")[0], re.MULTILINE)
    if not names:
        yield words
    for name in names:
        yield from leaves(kvcalc, (*words, name))


def test_the_help_of_all_commands_fits_one_screen(kvcalc, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    lines = kvcalc("--help").out.splitlines()
    assert len(lines) <= 24 - 1  # the prompt takes one
    assert max(map(len, lines)) <= 80
    for name, (_, summary) in COMMANDS.items():
        (line,) = [line for line in lines if line.startswith(f"  {name} ")]
        assert line.endswith(summary), f"the summary of {name} is cut off"


def test_every_command_has_examples_and_says_what_its_exit_status_means(kvcalc):
    found = list(leaves(kvcalc))
    assert len(found) >= 15
    for words in found:
        text = kvcalc(*words, "--help").out
        examples = re.findall(r"^  (kvcalc .*)$", text, re.MULTILINE)
        assert examples, words
        assert all(shlex.split(line)[1 : len(words) + 1] == list(words) for line in examples), words
        checked = " 1 does not fit (with --check)," * ("  --check " in text)
        assert f"\nExit status:\n  0 answered,{checked} 2 bad input" in text
        assert "Example:" not in text


def test_examples_on_files_of_the_project_and_on_profiles_work(kvcalc, monkeypatch, tmp_path):
    """Those on files that only the reader has are left out."""
    monkeypatch.chdir(ROOT)
    ran = 0
    for words in leaves(kvcalc):
        for line in re.findall(r"^  (kvcalc .*)$", kvcalc(*words, "--help").out, re.MULTILINE):
            arguments = shlex.split(line)[1:]
            files = [word for word in arguments if re.search(r"\.\w{3,7}$", word) and "=" not in word]
            written = {"--save", "--chart-file", "--curve-file", "-o", "--output"}
            outputs = [word for option, word in pairwise(arguments) if option in written]
            needed = [word for word in files if word not in outputs and not word.startswith("-")]
            if not all((ROOT / word).exists() or word == "p5.48xlarge" for word in needed):
                continue
            if words[0] in ("app", "probe"):
                continue  # one opens a browser, one measures this machine
            here = [str(tmp_path / Path(word).name) if word in outputs else word for word in arguments]
            assert run(here) == 0, line
            ran += 1
    assert ran >= 12


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (("--help",), 0),
        (("plan", "--help"), 0),
        (PLAN, 0),
        ((*PLAN, "--concurrency", "9999"), 0),  # answered: it does not fit
        ((*PLAN, "--concurrency", "9999", "--check"), 1),
        ((*PLAN, "--concurrency", "9", "--check"), 0),
        ((*PLAN, "--concurrency", "many"), 2),
        ((*PLAN, "--concurency", "9"), 2),
        (("plan", "no-such-model", "--on", "l4"), 2),
        (("plann",), 2),
        ((), 2),
        (("sweep", "llama-3.1-8b", "--on", "l4"), 2),
        (("compare", "l4"), 2),
        (("explain", "nothing"), 2),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else str(value),
)
def test_exit_codes_stay(kvcalc, arguments, status):
    assert kvcalc(*arguments).status == status


def test_the_version_is_one_line():
    found = subprocess.run([sys.executable, "-m", "kvcalc", "--version"], capture_output=True, check=True)
    assert re.fullmatch(rb"kvcalc \d+\.\d+\.\d+\n", found.stdout)


def test_an_interrupt_is_130(kvcalc, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("kvcalc.api.with_file", interrupted)
    assert kvcalc(*PLAN).status == 130


def test_a_reader_that_goes_away_is_no_error():
    python = shlex.quote(sys.executable)
    command = f"{python} -m kvcalc sweep llama-3.1-8b --on l4 --vary prompt=1..30000 --format csv"
    found = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command} | head -1"], capture_output=True, text=True, check=False
    )
    assert found.stderr == ""
    assert found.returncode == 0
    assert found.stdout.startswith("model,on,prompt [token],fits,")


def completed(words, **more):
    """Return what a shell gets for the words that were typed so far."""
    typed = " ".join(words)
    environment = {
        **os.environ,
        "_KVCALC_COMPLETE": "complete_bash",
        "COMP_WORDS": typed,
        "COMP_CWORD": str(len(words) - 1),
        **more,
    }
    found = subprocess.run(
        [sys.executable, "-m", "kvcalc"], capture_output=True, text=True, env=environment, check=False
    )
    assert found.stderr == ""
    return found.stdout.split()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["kvcalc", "swe"], {"sweep"}),
        (["kvcalc", "plan", "--concur"], {"--concurrency"}),
        (["kvcalc", "sweep", "--var"], {"--vary"}),
        (["kvcalc", "plan", "llama-3.1-7"], {"llama-3.1-70b"}),
        (["kvcalc", "plan", "llama-3.1-8b", "--on", "h100-sxm"], {"h100-sxm-80gb"}),
        (["kvcalc", "quota", "recl"], {"reclaim"}),
        (["kvcalc", "sweep", "llama-3.1-8b", "--vary", "conc"], {"concurrency="}),
        (["kvcalc", "sweep", "llama-3.1-8b", "--best", "dec"], {"decode.step_time"}),
        (["kvcalc", "sweep", "llama-3.1-8b", "--chart", "offload.sp"], {"offload.speedup"}),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_shell_completes_commands_options_models_and_machines(words, expected):
    assert expected <= set(completed(words))


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_installed_for_a_shell(tmp_path, shell):
    environment = {
        **os.environ,
        "HOME": str(tmp_path),
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1",
    }
    found = subprocess.run(
        [sys.executable, "-m", "kvcalc", "--install-completion", shell],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert (found.returncode, found.stderr) == (0, "")
    assert f"{shell} completion installed" in found.stdout
    written = "".join(file.read_text() for file in tmp_path.rglob("*") if file.is_file())
    assert "_KVCALC_COMPLETE" in written
