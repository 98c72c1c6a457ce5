"""Every example is run; the commands of the pages are in test_docs.py."""

import re
import runpy
from pathlib import Path

import pytest

from kvcalc.cli import run

ROOT = Path(__file__).resolve().parents[1]
SCENARIOS = [ROOT / "examples" / f"{name}.yaml" for name in ("one-gpu-7b", "four-gpus-70b", "eight-gpus-mla")]


@pytest.mark.parametrize("file", SCENARIOS, ids=lambda file: file.stem)
@pytest.mark.parametrize("form", ["table", "json", "csv", "markdown"])
def test_a_scenario_is_answered_in_every_format(file, form, capsys):
    assert run(["plan", str(file), "--format", form]) == 0
    assert len(capsys.readouterr().out) > 500


def test_options_win_over_the_scenario_file(capsys):
    assert run(["plan", str(SCENARIOS[0]), "--concurrency", "1", "--format", "json"]) == 0
    assert '"concurrency": 1,' in capsys.readouterr().out


def test_the_spreadsheet_example_answers_every_row():
    pd = pytest.importorskip("pandas", reason="pandas is a test extra")
    module = runpy.run_path(str(ROOT / "examples" / "spreadsheet.py"))
    import io

    sheet = module["capacity_sheet"](pd.read_csv(io.StringIO(module["DEPLOYMENTS"])))
    assert sheet["reason"].isna().all()
    assert (sheet["sessions"] >= 0).all()
    # 1,310,720,000 B/s of KV at 20 GB/s: 4,096 tokens of 131,072 B take 26.8 ms
    assert sheet["restore_at_20_GB_per_s"].iloc[0] == pytest.approx(4096 * 131072 / 20e9)


def test_the_readme_of_the_examples_names_each_of_them():
    folder = ROOT / "examples"
    files = {str(file.relative_to(folder)) for file in folder.rglob("*.*") if "__pycache__" not in file.parts}
    text = (folder / "README.md").read_text(encoding="utf-8")
    rows = [cell for line in text.splitlines() if line.startswith("| `") for cell in line.split("|")[1:2]]
    assert sorted(re.findall(r"`(.*?)`", " ".join(rows))) == sorted(files - {"README.md"})


def test_the_readme_opens_with_the_two_commands_of_set_up():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    first, second = re.findall(
        r"```console title=\"needs a network\"\n(python3 -m venv .*?)\n```", text, flags=re.S
    )
    assert "kvcalc plan examples/" in first
    assert "pytest" in second


def test_the_python_of_the_readme_runs(capsys):
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", text, flags=re.S)
    exec(compile(code, "README.md", "exec"), {})
    printed = capsys.readouterr().out.split()
    # domain: 1 GB in 100 - 30 - 5 ms
    assert float(printed[-1]) == pytest.approx(1e9 / 0.065)
