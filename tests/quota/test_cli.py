"""The commands: keys of the contract, exit status, formats, schemas, speed."""

import json
import subprocess
import sys
import time
from pathlib import Path

import jsonschema
import pytest

import kvcalc
from kvcalc.cli import run
from kvcalc.output import schema
from kvcalc.output.table import Terminal
from kvcalc.quota.controls import CONTROLS

EXAMPLES = sorted((Path(__file__).resolve().parents[2] / "examples" / "ledgers").glob("*.yaml"))
TWO = next(file for file in EXAMPLES if file.stem == "two-tenants")


def answer(capsys, *arguments):
    assert run([*arguments, "--format", "json"]) == 0
    return json.loads(capsys.readouterr().out)


def reclaim(*more):
    return ["quota", "reclaim", str(TWO), "--tenant", "batch", "--bandwidth", "50 GB/s",
            "--prefill-rate", "12500 token/s", *more]  # fmt: skip


def test_the_keys_of_the_contract(capsys):
    body = answer(capsys, *reclaim("--bytes", "90 MB"))
    assert {"steps", "freed_bytes", "unreclaimable", "usable_after"} <= set(body)
    keys = {"means", "tenant", "session", "blocks", "bytes", "cost_seconds"}
    assert all(keys <= set(step) for step in body["steps"])
    assert [(s["means"], s["session"], s["blocks"]) for s in body["steps"]] == [
        ("free", "b2", 94),
        ("offload", "b1", 5),
    ]
    assert body["freed_bytes"] == 99 * 917_504
    assert body["usable_after"] is True
    assert {item["reason"] for item in body["unreclaimable"]} == {"pinned", "shared", "leased"}
    rules = json.loads((schema.FOLDER / "quota-reclaim-1.json").read_text(encoding="utf-8"))
    jsonschema.validate(body, rules)
    assert set(body) == set(rules["properties"])


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
@pytest.mark.parametrize("form", ["table", "json", "csv", "markdown"])
def test_every_example_is_shown_in_every_format(file, form, capsys):
    assert run(["quota", "show", str(file), "--format", form]) == 0
    assert len(capsys.readouterr().out) > 500


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
def test_every_example_validates(file, capsys):
    from kvcalc.documents import read

    jsonschema.validate(read(file), json.loads((schema.FOLDER / "ledger-1.json").read_text(encoding="utf-8")))
    rules = json.loads((schema.FOLDER / "quota-show-1.json").read_text(encoding="utf-8"))
    jsonschema.validate(answer(capsys, "quota", "show", str(file)), rules)


def test_the_pages_stay_within_80_columns():
    from kvcalc.api import question_of
    from kvcalc.output import render
    from kvcalc.quota.api import Asked, reclaim_file, show_file

    question = question_of(None)
    result, _, _ = reclaim_file(TWO, Asked("batch", bytes="90 MB"), question)
    for shown in (show_file(TWO)[0], result):
        assert max(map(len, render(shown, terminal=Terminal(80)).splitlines())) <= 80


def test_explain_puts_the_numbers_into_the_formulas(capsys):
    assert run([*reclaim("--bytes", "90 MB"), "--explain"]) == 0
    out = capsys.readouterr().out
    assert "offload_cost" in out
    assert "tier_room" in out


def test_the_library_answers_as_the_command_line_does(capsys):
    shown = kvcalc.quota_show(TWO, rule="owner")
    assert shown.to_dict() == answer(capsys, "quota", "show", str(TWO), "--rule", "owner")
    told = answer(capsys, *reclaim("--bytes", "90 MB", "--evict-tail"))
    for size, rate, speed in ((90e6, 50e9, 12_500), ("90 MB", "50 GB/s", "12500 token/s")):
        planned = kvcalc.quota_reclaim(
            TWO, "batch", bytes=size, bandwidth=rate, prefill_rate=speed, evict_tail=True
        )
        assert planned.to_dict() == told


def test_the_library_takes_a_ledger_as_data(small):
    assert kvcalc.quota_show(small).pool.used == (188 + 26) * 1000
    assert kvcalc.quota_reclaim(small, "b", everything=True).asked_bytes == (31 + 26) * 1000


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({"byte": 1e6}, "byte: unknown argument, did you mean 'bytes'"),
        ({"allowed": None}, "allowed: unknown argument"),
        ({"bytes": float("nan")}, "--bytes: nan is not finite"),
        ({"bytes": [1]}, r"--bytes: expected a text with a unit or a number, got \[1\]"),
        ({"bytes": "90"}, "--bytes"),
    ],
)
def test_the_library_refuses_what_it_does_not_know(said, told):
    with pytest.raises(kvcalc.SettingsError, match=told):
        kvcalc.quota_reclaim(TWO, "batch", **said)


def test_a_model_on_a_machine_gives_the_prices(capsys):
    line = ["quota", "reclaim", str(TWO), "--tenant", "chat", "--bytes", "1 MB", "--preempt",
            "--model", "qwen2.5-7b", "--on", "h100-sxm-80gb"]  # fmt: skip
    body = answer(capsys, *line)
    assert body["sources"]["prefill"]["kind"] == "derived"
    assert 0 < body["steps"][0]["cost_seconds"] < 1
    assert not any("bytes a token" in warning for warning in body["warnings"])
    other = answer(capsys, *[word if word != "qwen2.5-7b" else "llama-3.1-8b" for word in line])
    assert any("57,344 bytes a token" in warning for warning in other["warnings"])


def test_check_exits_with_1_when_the_bytes_are_not_reached(capsys):
    assert run([*reclaim("--bytes", "1 GB"), "--check"]) == 1
    assert run([*reclaim("--bytes", "1 MB"), "--check"]) == 0


def test_the_ledger_after_the_plan_is_written_and_smaller(capsys, tmp_path):
    later = tmp_path / "after.json"
    body = answer(capsys, *reclaim("--bytes", "90 MB", "--after", str(later)))
    shown = answer(capsys, "quota", "show", str(later))
    assert shown["pool"]["used"] == body["used_after"] == body["used_before"] - body["freed_bytes"]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--bytes", "5"], "--bytes: '5' has no unit"),
        (["--bytes", "-5 GB"], "'-5 GB' is negative"),
        ([], "--bytes"),
        (["--bytes", "1 GB", "--rule", "fulll"], "did you mean 'full'"),
        (["--bytes", "1 GB", "--compress-ratio", "1"], "--compress-ratio"),
        (["--bytes", "1 GB", "--model", "qwen2.5-7b"], "--model and --on"),
        (["--bytes", "1 GB", "--format", "tables"], "--format"),
    ],
)
def test_a_bad_option_is_one_line_and_exit_2(more, said, capsys):
    assert run(reclaim(*more)) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert said in captured.err


def test_a_bad_ledger_is_one_line_with_its_file(capsys, tmp_path):
    file = tmp_path / "bad.yaml"
    file.write_text(TWO.read_text(encoding="utf-8").replace("references: 3", "references: 4"))
    assert run(["quota", "show", str(file)]) == 2
    assert f"{file}: shared[0].references: states 4 references to block 0, but 3" in capsys.readouterr().err
    assert run(["quota", "show", str(tmp_path / "none.yaml")]) == 2
    assert "no such file" in capsys.readouterr().err


def test_import_then_show(capsys, tmp_path):
    events = tmp_path / "events.jsonl"
    event = {"type": "BlockStored", "block_hashes": [1, 2], "parent_block_hash": None, "block_size": 16}
    events.write_text(json.dumps(event) + "\n")
    ledger = str(tmp_path / "ledger.yaml")
    assert (
        run(["quota", "import", str(events), "--block-bytes", "2 MiB", "--blocks", "10", "--save", ledger])
        == 0
    )
    assert answer(capsys, "quota", "show", ledger)["pool"]["used"] == 2 * 2 * 2**20


def test_every_means_has_a_control_and_every_control_a_unit_and_a_source(capsys):
    assert {"free", "offload", "compress", "evict tail", "preempt", "pin", "lease", "quota"} <= {
        one.means for one in CONTROLS
    }
    assert {one.system for one in CONTROLS} == {"LMCache", "vLLM", "Mooncake", "TensorRT-LLM"}
    assert all(one.counts and one.source.startswith("https://") for one in CONTROLS)
    assert len(answer(capsys, "quota", "controls")["rows"]) == len(CONTROLS)


WORK = """
import resource, sys
from kvcalc.output import render
from kvcalc.planning.notebook import Notebook
from kvcalc.quota.document import read_ledger
from kvcalc.quota.rates import Given, rates_of
from kvcalc.quota.reclaim import Request, reclaim
from kvcalc.quota.show import show
ledger = read_ledger(sys.argv[1])
shown, _ = show(ledger)
assert (len(shown.rows), shown.pool.used_blocks) == (1000, 5_000_000)
assert len(render(shown)) > 1000
book = Notebook()
result, _, _ = reclaim(ledger, Request("t7", to_quota=True), rates_of(Given(), ledger, None, (), book), book)
assert (result.reached, result.freed_blocks) == (True, 1949)
assert len(render(result)) > 500
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
"""
# 5,000 blocks of 32,768 B are 163.84 MB; 63.84 MB over a quota of 100 MB are 1,948.2 blocks.


@pytest.fixture(scope="module")
def big(tmp_path_factory):
    """1,000 tenants with five sessions of 1,000 blocks each, as single numbers."""
    size, states = 1000, ["running", "suspended", "finished"]
    sessions = [
        {"id": f"s{i}", "tenant": f"t{i % 1000}", "state": states[i % 3], "tokens": size * 16 - 3,
         "blocks": list(range(i * size, (i + 1) * size)), "idle": "5 s"}
        for i in range(5000)
    ]  # fmt: skip
    data = {
        "block": {"tokens": 16, "bytes": 32768},
        "pool": {"blocks": 5_001_000, "dram": "100 GB", "dram_watermark": 0.9},
        "tenants": {f"t{i}": {"quota": "100 MB"} for i in range(1000)},
        "sessions": sessions,
    }
    file = tmp_path_factory.mktemp("big") / "big.json"
    file.write_text(json.dumps(data))
    return file


@pytest.mark.alone
@pytest.mark.parametrize("suffix", ["json", "parquet"])
def test_a_thousand_tenants_with_five_million_blocks_take_seconds(big, suffix):
    file = big.with_suffix(f".{suffix}")
    if suffix == "parquet":
        pytest.importorskip("pyarrow", reason="Parquet is an extra")
        from kvcalc.quota.document import read_ledger
        from kvcalc.quota.writing import write_ledger

        write_ledger(file, read_ledger(big))
    begin = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", WORK, str(file)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert time.perf_counter() - begin < 10
    assert int(done.stdout) < 2 * 10**9
