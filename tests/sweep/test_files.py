"""Files of rows: the same in every form, whole or not there, and never begun anew."""

import csv
import json
import os
import signal
import subprocess
import sys
import time

import pytest

import kvcalc
from kvcalc.errors import SettingsError
from kvcalc.sweeping import answer, grid

VARY = ["prompt=1k..9k+1k", "tp=1,2,3", "concurrency=1,400", "hit=0,0.5"]
ASKED = {"model": "llama-3.1-8b", "on": "l40s", "vary": VARY}


@pytest.fixture
def small_chunks(monkeypatch):
    monkeypatch.setattr(grid, "CHUNK_ROWS", 10)


def typed(text):
    return {"": None, "true": True, "false": False}.get(text, text)


def test_csv_json_and_parquet_hold_the_same_rows(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is an extra")
    wanted = [dict(row) for row in kvcalc.sweep(**ASKED).rows]
    for name in ("rows.csv", "rows.json", "rows.parquet"):
        saved = kvcalc.sweep(**ASKED, save=str(tmp_path / name))
        assert (saved.count, list(saved.rows)) == (len(wanted), [])
    assert json.loads((tmp_path / "rows.json").read_text())["rows"] == wanted
    table = parquet.read_table(tmp_path / "rows.parquet")
    assert table.to_pylist() == wanted
    assert table.schema.field("decode.step_time").metadata == {b"unit": b"second"}
    about = json.loads(parquet.read_metadata(tmp_path / "rows.parquet").metadata[b"kvcalc.sweep/1"])
    assert (about["count"], about["inputs"]["model"], about["rows"]) == (len(wanted), "llama-3.1-8b", [])
    with (tmp_path / "rows.csv").open(newline="") as file:
        header, *lines = csv.reader(file)
    assert [name.partition(" [")[0] for name in header] == list(wanted[0])
    for cells, row in zip(lines, wanted, strict=True):
        for text, value in zip(cells, row.values(), strict=True):
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                assert float(text) == value
            else:
                assert typed(text) == value
    assert sorted(os.listdir(tmp_path)) == ["rows.csv", "rows.json", "rows.parquet"]


def test_the_json_of_a_file_is_that_of_the_answer(tmp_path):
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is a test extra")
    from kvcalc.output.schema import schema_of

    asked = {**ASKED, "best": "decode.step_time", "chart": "decode.step_time"}
    kvcalc.sweep(**asked, save=str(tmp_path / "rows.json"))
    body = json.loads((tmp_path / "rows.json").read_text())
    assert body == json.loads(json.dumps(kvcalc.sweep(**asked).to_dict()))
    jsonschema.validate(body, schema_of(kvcalc.SweepResult))


def test_texts_cannot_become_formulas(tmp_path, monkeypatch):
    """Names come from users: those of a model's file and of a tier stand in the rows."""
    shape = json.dumps(
        {
            **{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "num_hidden_layers": 2},
            **{"hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2},
            **{"intermediate_size": 128, "vocab_size": 100, "max_position_embeddings": 4096},
            **{"torch_dtype": "bfloat16"},
        }
    )
    name = "<script>alert(1)<!--script>"  # no stroke: it is a folder
    (tmp_path / name).mkdir()
    (tmp_path / name / "config.json").write_text(shape)
    formula = '=HYPERLINK("http://x")'
    monkeypatch.chdir(tmp_path)
    kvcalc.sweep(
        f"./{name}",
        on="l40s",
        tiers={formula: {"bandwidth": "20 GB/s"}},
        vary={"hit": [0.5, 0.9], "prompt": [2000]},
        save="rows.csv",
    )
    with open("rows.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["model"] for row in rows} == {f"./{name}"}
    assert {row["offload.tier"] for row in rows} == {"'" + formula}
    text = (tmp_path / "rows.csv").read_text()
    assert not any(cell.startswith(("=", "@")) for line in csv.reader(text.splitlines()) for cell in line)


def test_an_interrupted_sweep_goes_on_where_it_stopped(tmp_path, monkeypatch, small_chunks):
    target = tmp_path / "rows.csv"
    compute = answer.compute
    computed = []

    def failing(asked, number, told):
        if number == 4:
            raise KeyboardInterrupt
        computed.append(number)
        return compute(asked, number, told)

    monkeypatch.setattr(answer, "compute", failing)
    with pytest.raises(KeyboardInterrupt):
        kvcalc.sweep(**ASKED, save=str(target))
    assert not target.exists()
    assert computed == [0, 1, 2, 3]
    computed.clear()

    def counting(asked, number, told):
        computed.append(number)
        return compute(asked, number, told)

    monkeypatch.setattr(answer, "compute", counting)
    kvcalc.sweep(**ASKED, save=str(target))
    assert computed == [4, 5, 6, 7, 8, 9, 10]
    assert os.listdir(tmp_path) == ["rows.csv"]
    kvcalc.sweep(**ASKED, save=str(tmp_path / "whole.csv"))
    assert (tmp_path / "whole.csv").read_bytes() == target.read_bytes()


def test_a_sweep_that_fails_before_its_first_chunk_leaves_nothing_behind(tmp_path, monkeypatch):
    def failing(asked, number, told):
        raise KeyboardInterrupt

    monkeypatch.setattr(answer, "compute", failing)
    with pytest.raises(KeyboardInterrupt):
        kvcalc.sweep(**ASKED, save=str(tmp_path / "rows.csv"))
    assert os.listdir(tmp_path) == []


def test_another_question_does_not_go_on_with_the_parts_of_the_first(tmp_path, monkeypatch, small_chunks):
    target = str(tmp_path / "rows.csv")
    compute, seen = answer.compute, []

    def failing(asked, number, told):
        seen.append(number)
        if len(seen) > 2:
            raise KeyboardInterrupt
        return compute(asked, number, told)

    monkeypatch.setattr(answer, "compute", failing)
    with pytest.raises(KeyboardInterrupt):
        kvcalc.sweep(**ASKED, save=target)
    seen.clear()
    with pytest.raises(KeyboardInterrupt):
        kvcalc.sweep(**ASKED, generate=100, save=target)
    assert seen == [0, 1, 2]


def test_a_killed_run_leaves_no_file_and_is_continued(tmp_path):
    """A process that dies without a word, as one that the kernel kills."""
    target = tmp_path / "rows.csv"
    code = (
        "import sys, kvcalc, kvcalc.sweeping.grid as grid\n"
        "grid.CHUNK_ROWS = 50\n"
        "kvcalc.sweep('llama-3.1-8b', 'l40s', vary={'prompt': range(1000, 3000),"
        " 'tiers.dram.bandwidth': [1e9, 2e9]}, save=sys.argv[1])\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code, str(target)])
    parts = tmp_path / ".rows.csv.parts"
    deadline = time.monotonic() + 60
    while len(list(parts.glob("0*.npz"))) < 5 and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not target.exists()
    kept = {file.name: file.stat().st_mtime_ns for file in parts.glob("0*.npz")}
    assert len(kept) >= 5
    second = subprocess.run([sys.executable, "-c", code, str(target)], check=True, capture_output=True)
    assert second.returncode == 0
    assert os.listdir(tmp_path) == ["rows.csv"]
    assert len(target.read_text().splitlines()) == 4001


def test_an_interrupt_is_130_and_says_how_to_go_on(tmp_path):
    code = (
        "import sys, kvcalc.sweeping.grid as grid\n"
        "from kvcalc.cli import run\n"
        "grid.CHUNK_LAUNCHES = 5\n"
        "sys.exit(run(['sweep', 'llama-3.1-8b', '--on', 'l40s', '--vary', "
        "'tiers.dram.bandwidth=1..50 GB/s/2000', '--save', sys.argv[1]]))\n"
    )
    target = tmp_path / "rows.csv"
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(target)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    parts = tmp_path / ".rows.csv.parts"
    deadline = time.monotonic() + 60
    while len(list(parts.glob("0*.npz"))) < 3 and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate()
    assert (process.returncode, out) == (130, "")
    assert err == f"kvcalc: interrupted; the same command goes on with {target}\n"
    assert os.listdir(tmp_path) == [".rows.csv.parts"]
    assert not any(name.startswith(".") for name in os.listdir(parts))


def test_a_part_that_was_cut_off_is_refused_by_name(tmp_path, monkeypatch, small_chunks):
    from kvcalc.sweeping.parts import Parts

    parts = Parts.beside(str(tmp_path / "rows.csv"), "question", 1)
    parts.keep(0, kvcalc.sweep("llama-3.1-8b", "l40s", vary={"tp": [1]}).rows.chunks[0])
    (file,) = parts.folder.glob("*.npz")
    file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(SettingsError, match="cannot be read"):
        list(parts)


def test_a_sweep_without_an_answer_writes_nothing(tmp_path):
    target = tmp_path / "rows.csv"
    with pytest.raises(SettingsError, match="no row of the sweep has an answer"):
        kvcalc.sweep("llama-3.1-8b", "l40s", vary={"tp": [3, 5]}, save=str(target))
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("name", "words"), [("rows.xls", "must end in"), ("none/rows.csv", "no such file"), ("", "must end in")]
)
def test_a_file_that_cannot_be_written_is_refused_before_any_work(tmp_path, name, words):
    with pytest.raises(SettingsError, match=words):
        kvcalc.sweep(**ASKED, save=str(tmp_path / name))
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("name", ["rows.xls", "rows.xlsx", "rows.pdf", "rows"])
def test_a_file_of_no_known_form_is_refused_with_those_there_are(tmp_path, capsys, name):
    from kvcalc.cli import run

    said = ["sweep", "llama-3.1-8b", "--on", "l40s", "--vary", "tp=1", "--save", str(tmp_path / name)]
    assert run(said) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert "kvcalc export" in err if ".xls" in name else ".csv, .json or .parquet" in err
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("command", ["plan", "kv"])
def test_no_command_writes_a_text_as_a_workbook(tmp_path, capsys, command):
    from kvcalc.cli import run

    said = [command, "llama-3.1-8b", *(["--on", "l40s"] if command == "plan" else [])]
    assert run([*said, "--save", str(tmp_path / "plan.XLSX")]) == 2
    assert "kvcalc export" in capsys.readouterr().err
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(("name", "begins"), [("rows.txt", "Sweep of"), ("rows.md", "#")])
def test_the_page_is_saved_by_name_as_well(tmp_path, name, begins):
    from kvcalc.cli import run

    said = ["sweep", "llama-3.1-8b", "--on", "l40s", "--vary", "tp=1", "--save", str(tmp_path / name)]
    assert run(said) == 0
    assert (tmp_path / name).read_text().startswith(begins)


def test_progress_tells_rows():
    told = []
    kvcalc.sweep(**ASKED, progress=lambda done, whole: told.append((done, whole)))
    # One launch for each of three tp, of which the last does not divide the model: 36 loads each.
    assert told == [(0, 108), (36, 108), (72, 108), (108, 108)]
