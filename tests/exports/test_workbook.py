"""A workbook against `kvcalc plan`: recalculated by LibreOffice, as exported and with other inputs."""

import json
import re
import shutil
import sys
from pathlib import Path

import openpyxl
import pytest
import recalculated as office

import kvcalc
from kvcalc.cli import run
from kvcalc.errors import SettingsError

ROOT = Path(__file__).parents[2]

needs_office = pytest.mark.skipif(office.OFFICE is None, reason="LibreOffice (soffice) is not installed")

DENSE = {"model": "llama-3.1-8b", "on": "h100-sxm-80gb", "concurrency": 32}
TIERED = {"model": str(ROOT / "examples/four-gpus-70b.yaml")}
LATENT = {"model": str(ROOT / "examples/eight-gpus-mla.yaml")}
WINDOWED = {
    "model": "gpt-oss-20b",
    "on": "h100-sxm-80gb",
    "engine": "vllm",
    "concurrency": 64,
    "prompt": "8k",
}

# What is asked, what of it changes for `kvcalc plan`, and the cells that a planner changes for the same.
SCENARIOS = {
    "dense on one GPU": (
        DENSE,
        {
            **{"prompt": 24000, "generate": 900, "concurrency": 210, "utilization": 0.8, "cached": 0},
            "set": {"device.bandwidth": "2.5 TB/s", "host_to_device.bandwidth": "20 GB/s"},
        },
        {
            **{"prompt": 24000, "generate": 900, "concurrency": 210, "utilization": 0.8, "cached": 0},
            **{"device.bandwidth": 2.5e12, "host_to_device.bandwidth": 20e9},
        },
    ),
    "tiers and four GPUs under vLLM": (
        TIERED,
        {
            **{"prompt": 20000, "hit": 0.35, "rate": 1.2, "gpus": 8, "concurrency": 50},
            "tiers": {
                "dram": {"capacity": "512 GB", "bandwidth": "25 GB/s", "setup": "30 ms"},
                "nvme": {"capacity": "8 TB", "bandwidth": "3 GB/s", "setup": "13 ms"},
            },
        },
        {
            **{"prompt": 20000, "hit": 0.35, "rate": 1.2, "gpus": 8, "concurrency": 50},
            **{"tiers.dram.bandwidth": 25e9, "tiers.dram.setup": 0.03, "tiers.nvme.bandwidth": 3e9},
        },
    ),
    "latents": (
        LATENT,
        {"prompt": 30000, "generate": 300, "concurrency": 20, "hit": 0.5, "price": 0.001},
        {"prompt": 30000, "generate": 300, "concurrency": 20, "hit": 0.5, "price": 0.001},
    ),
    "windows under vLLM": (
        WINDOWED,
        {"prompt": 30000, "generate": 300, "concurrency": 200, "rate": 4, "prefill": 0.9, "window": 0.02},
        {"prompt": 30000, "generate": 300, "concurrency": 200, "rate": 4, "prefill": 0.9, "window": 0.02},
    ),
}


def body_of(question):
    return json.loads(json.dumps(kvcalc.plan(**question).to_dict()))


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """Return the file of a scenario, written once."""
    written = {}

    def file_of(name):
        if name not in written:
            written[name] = tmp_path_factory.mktemp("plan") / "plan.xlsx"
            kvcalc.export(**SCENARIOS[name][0], to=written[name])
        return written[name]

    return file_of


# Which workbook is recalculated, and its cells that are changed before; None leaves the file untouched.
RECALCULATED = {
    **{(name, "untouched"): (name, None) for name in SCENARIOS},
    **{(name, "as exported"): (name, {}) for name in SCENARIOS},
    **{(name, "changed"): (name, cells) for name, (_, _, cells) in SCENARIOS.items()},
    "too much": ("dense on one GPU", {"concurrency": 5000, "tp": 3}),
    "half as much": ("dense on one GPU", {"Sensitivity!B2": 0.5}),
}


@pytest.fixture(scope="module")
def computed(exported, tmp_path_factory):
    """Return a workbook as LibreOffice computes it; all of them are computed at once."""
    folder = tmp_path_factory.mktemp("recalculated")
    files = {key: folder / f"{place}.xlsx" for place, key in enumerate(RECALCULATED)}
    for key, (name, cells) in RECALCULATED.items():
        if cells is None:
            shutil.copy(exported(name), files[key])
        else:
            office.changed(exported(name), files[key], cells)
    found = dict(zip(files, office.recalculated(list(files.values()), folder), strict=True))
    return lambda *key: openpyxl.load_workbook(found[key if len(key) > 1 else key[0]], data_only=True)


@needs_office
@pytest.mark.parametrize("name", SCENARIOS)
@pytest.mark.parametrize("change", ["as exported", "changed"])
def test_the_recalculated_workbook_equals_the_plan(name, change, computed):
    question, said, _ = SCENARIOS[name]
    book = computed(name, change)
    count, wrong = office.compared(book, body_of({**question, **said} if change == "changed" else question))
    assert wrong == []
    assert count > 120
    assert office.errors(book) == []
    assert book["Answers"]["B5"].value == "yes"


@needs_office
@pytest.mark.parametrize("name", SCENARIOS)
def test_the_file_as_exported_opens_without_an_error(name, computed):
    """LibreOffice keeps the numbers and words of the file, and computes conditions from them."""
    book = computed(name, "untouched")
    assert office.errors(book) == []
    assert book["Answers"]["B5"].value == "yes"


@needs_office
def test_the_verdict_follows_a_cell_and_a_bad_division_is_said(computed):
    book = computed("too much")
    assert book["Answers"]["B4"].value == "does not fit"
    assert book["Answers"]["B5"].value == "no"  # three ranks do not divide eight KV heads
    assert ("tp divides the heads", False) in [row[:2] for row in book["Checks"].iter_rows(values_only=True)]


def test_the_inner_sheets_say_what_stands_for_no_end(tmp_path):
    """Cells have no infinity: the steps hold a number for it, which a reader sees as a word."""
    file = tmp_path / "plan.xlsx"
    kvcalc.export(**DENSE, rate=60.0, tiers={"dram": {"bandwidth": "2 GB/s"}}, to=file)
    values, book = openpyxl.load_workbook(file, data_only=True), openpyxl.load_workbook(file)
    for name, head in (("Steps", 3), ("Variants", 3)):
        endless = [cell for row in values[name].iter_rows() for cell in row if is_endless(cell.value)]
        assert {abs(cell.value) for cell in endless} == {1e250}
        words = [str(cell.value) for cell in values[name][head]]
        assert any("1E+250, shown as unlimited, stands for a number without an end" in text for text in words)
        worded = [
            area
            for area, rules in book[name].conditional_formatting._cf_rules.items()
            if any(rule.dxf.numFmt and "unlimited" in rule.dxf.numFmt.formatCode for rule in rules)
        ]
        assert all(any(cell.coordinate in area.cells for area in worded) for cell in endless)


def is_endless(value):
    return isinstance(value, (int, float)) and abs(value) > 1e99


@pytest.mark.parametrize("rate", [0.5, 60.0], ids=["the slowest link has no end", "nothing has"])
def test_a_time_without_an_end_is_a_word_and_not_a_number(rate, tmp_path):
    file = tmp_path / "plan.xlsx"
    kvcalc.export(**DENSE, rate=rate, tiers={"dram": {"bandwidth": "2 GB/s"}}, to=file)
    book = openpyxl.load_workbook(file, data_only=True)
    read = [name for name in book.sheetnames if name not in ("Steps", "Variants")]
    shown = [cell.value for name in read for row in book[name].iter_rows() for cell in row]
    assert [value for value in shown if is_endless(value)] == []
    points = [row[1:] for row in book["Charts"].iter_rows(min_row=12, max_row=19, values_only=True)]
    assert points[0][0] == "unlimited"  # a sixteenth of what the link gives
    top = 2 * max(value for point in points for value in point[:2] if value != "unlimited")
    for with_hit, without, drawn_with, drawn_without in points:
        assert drawn_with == (top if with_hit == "unlimited" else with_hit)
        assert drawn_without == without


def test_a_bar_of_memory_is_never_less_than_nothing(tmp_path):
    """The weights of a 70B model alone are more than one GPU has."""
    said = {"model": "llama-3.1-70b", "on": "h100-sxm-80gb"}
    kvcalc.export(**said, to=tmp_path / "plan.xlsx")
    book = openpyxl.load_workbook(tmp_path / "plan.xlsx", data_only=True)
    bars = {row[0]: row[1] for row in book["Charts"].iter_rows(min_row=4, max_row=9, values_only=True)}
    memory = kvcalc.plan(**said).memory
    parts = memory.weights + memory.activations + memory.kv_pool
    assert bars["Other"] == 0
    assert bars["Missing"] == pytest.approx(parts - memory.total)
    assert min(bars.values()) == 0


@needs_office
def test_the_sensitivity_table_follows_its_share(computed):
    rows = list(computed("half as much")["Sensitivity"].iter_rows(min_row=3, values_only=True))
    prompt = next(row for row in rows if row[0] == "Prompt up")
    assert prompt[1:3] == (4096, 6144)
    longer = kvcalc.plan(**DENSE, prompt=6144)
    shown = dict(zip(rows[0], prompt, strict=True))
    assert shown["Prefill"] == pytest.approx(longer.prefill.time, rel=1e-9)
    assert shown["Sequences that fit"] == longer.capacity.sessions


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_cached_values_are_those_of_the_plan(name, exported):
    """What a program shows that does not calculate."""
    book = openpyxl.load_workbook(exported(name), data_only=True)
    assert office.compared(book, body_of(SCENARIOS[name][0]))[1] == []


@pytest.mark.parametrize("name", SCENARIOS)
def test_no_number_is_typed_where_a_formula_belongs(name, exported):
    """A figure of one plan that differs in another is a formula; so is every step and every answer."""
    question, said, _ = SCENARIOS[name]
    book = openpyxl.load_workbook(exported(name))
    before, after = body_of(question), body_of({**question, **said})
    for key, shown in office.figures(book).items():
        if office.at(before, key) != office.at(after, key):
            assert str(shown).startswith("="), key
    for rows in office.tiers(book).values():
        assert str(rows["bytes"]).startswith("=")
        assert str(rows["transfer"]).startswith("=")
    for sheet, column in (("Steps", 3), ("Checks", 2)):
        cells = [row[0] for row in book[sheet].iter_rows(5, min_col=column, max_col=column) if row[0].value]
        assert cells
        assert all(cell.data_type == "f" for cell in cells)
    for row in book["Answers"].iter_rows(min_row=4, max_col=4):
        if row[3].value:
            assert row[1].data_type == "f", row[3].value


def test_inputs_have_names_units_notes_and_sources(exported):
    book = openpyxl.load_workbook(exported("tiers and four GPUs under vLLM"))
    rows = [row for row in book["Inputs"].iter_rows(min_row=4, values_only=True) if row[5]]
    named = {row[5]: row for row in rows}
    for name in (
        "prompt",
        "generate",
        "concurrency",
        "hit",
        "rate",
        "gpus",
        "utilization",
        "queue",
        "window",
    ):
        assert name in book.defined_names
    assert named["tiers.dram.bandwidth"][:3] == ("Tiers, dram, bandwidth", 54e9, "byte/second")
    assert "four-gpus-70b.yaml" in named["tiers.dram.bandwidth"][4]
    assert all(row[2] and row[3] and row[4] for row in rows)


@pytest.mark.parametrize("engine", ["vllm", "sglang", "llama.cpp"])
def test_conditions_and_what_is_fixed_are_in_words_of_a_planner(engine, tmp_path):
    kvcalc.export(**DENSE, engine=engine, to=tmp_path / "plan.xlsx")
    book = openpyxl.load_workbook(tmp_path / "plan.xlsx")
    conditions = [row[0] for row in book["Checks"].iter_rows(min_row=4, values_only=True) if row[0]]
    assert conditions
    assert not [text for text in conditions if re.search(r"\.\.\.|<|lambda|_choice|[a-z][A-Z]\w+\.", text)]
    rows = {row[0]: row for row in book["Inputs"].iter_rows(values_only=True)}
    assert rows["DP attention"][1] == "no"
    assert rows["GPU layers"][1] == "not set"
    assert rows["Draws"][3] == rows["Seed"][3] == "a workbook draws no random numbers"
    assert not [row for row in rows.values() if row[1] in ("None", "True", "False")]


def test_round_ups_to_blocks_are_live(exported):
    book = openpyxl.load_workbook(exported("tiers and four GPUs under vLLM"))
    steps = {f"C{row[0].row}": row[0].value for row in book["Steps"].iter_rows(5, min_col=3, max_col=3)}
    total = next(cell for cell, text in steps.items() if text == "=(prompt+generate)")
    block = next(cell for cell, text in steps.items() if ",16,block_size)" in str(text))  # vLLM's own is 16
    assert any(f"CEILING(({total}/{block}),1)" in str(text) for text in steps.values())


def test_names_from_others_are_text(tmp_path):
    evil, script = '=HYPERLINK("http://x")', "<script>alert(1)</script>"
    profile = (ROOT / "models" / "llama-3.2-1b.yaml").read_text(encoding="utf-8")
    named = re.sub(r"(?m)^name: .*$", f"name: '{script}'", profile)
    (tmp_path / "evil.yaml").write_text(named, encoding="utf-8")
    file = tmp_path / "plan.xlsx"
    kvcalc.export(
        str(tmp_path / "evil.yaml"), on="h100-sxm-80gb", tiers={evil: {"bandwidth": "20 GB/s"}}, to=file
    )
    book = openpyxl.load_workbook(file)
    cells = [cell for sheet in book for row in sheet.iter_rows() for cell in row]
    assert any(script in str(cell.value) for cell in cells)
    assert any(evil in str(cell.value) and cell.data_type == "s" for cell in cells)
    assert not [cell for cell in cells if cell.data_type == "f" and str(cell.value).startswith("=HYPERLINK")]
    assert not [cell for cell in cells if cell.hyperlink]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["llama-3.1-8b", "--on", "h100-sxm-80gb", "-o", "plan.xls"], "did you mean '.xlsx'"),
        (["llama-3.1-8b", "--on", "h100-sxm-80gb", "-o", "plan"], "unknown kind of file"),
        (
            ["llama-3.1-8b", "--on", "h100-sxm-80gb", "-o", "nowhere/plan.xlsx"],
            "cannot write nowhere/plan.xlsx",
        ),
        (["lama-3.1-8b", "--on", "h100-sxm-80gb", "-o", "plan.xlsx"], "did you mean"),
        (["llama-3.1-8b", "--on", "h100-sxm-80gb", "--draws", "100", "-o", "plan.xlsx"], "no random numbers"),
        (["missing.yaml", "-o", "plan.xlsx"], "missing.yaml: no such file"),
    ],
)
def test_what_cannot_be_written_is_one_line(arguments, words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert run(["export", *arguments]) == 2
    told = capsys.readouterr()
    assert words in told.err
    assert told.err.count("\n") == 1
    assert told.out == ""
    assert list(tmp_path.iterdir()) == []


def test_a_missing_extra_is_one_line(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "xlsxwriter", None)
    with pytest.raises(SettingsError, match=r"pip install 'kvcalc\[xlsx\]'"):
        kvcalc.export(**DENSE, to=tmp_path / "plan.xlsx")
    assert list(tmp_path.iterdir()) == []


def test_the_help_shows_how_to_write_each_kind_of_file(capsys):
    assert run(["export", "--help"]) == 0
    shown = [line for line in capsys.readouterr().out.splitlines() if line.startswith("  kvcalc export ")]
    assert [line.rpartition(".")[2] for line in shown] == ["html", "xlsx"]


def test_the_command_writes_the_file(tmp_path, capsys):
    file = tmp_path / "plan.xlsx"
    assert run(["export", "llama-3.1-8b", "--on", "h100-sxm-80gb", "-o", str(file)]) == 0
    assert capsys.readouterr().out == ""
    sheets = openpyxl.load_workbook(file).sheetnames
    assert sheets[:7] == ["Answers", "Inputs", "KV", "Memory", "Speed", "Restore", "Fleet"]
    assert {"Eviction", "Sensitivity", "Charts", "Sources", "Checks", "Steps"} <= set(sheets)
