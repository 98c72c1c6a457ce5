"""``kvcalc evict`` on the command line: keys, formats, refusals, charts, the examples."""

import csv
import io
import json
from pathlib import Path

import jsonschema
import pytest

from kvcalc.cli import run
from kvcalc.output import schema

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
SEQUENCES = "id,tokens_done,tokens_remaining\nA,30000,8000\nB,2000,1000\nC,26000,200\n"

BARE = """
pool: 1 GB
bytes_per_token: 100 kB/token
step: 20 ms
prefill_rate: 10000 token/s
max_seqs: 16
deadline: 20 s
arrivals:
  {rate: 0.8/s, prompt: {lognormal: [800, 0.6]}, generate: {lognormal: [400, 0.6]}, requests: 80, seed: 7}
policies: [lru, ratio, rules, cost, queue]
"""


@pytest.fixture
def sequences(tmp_path):
    file = tmp_path / "sequences.csv"
    file.write_text(SEQUENCES)
    return str(file)


@pytest.fixture
def simulation(tmp_path):
    file = tmp_path / "simulate.yaml"
    file.write_text(BARE)
    return str(file)


@pytest.fixture
def out(capsys):
    def call(*arguments, status=0):
        capsys.readouterr()
        assert run(["evict", *arguments]) == status
        return capsys.readouterr().out

    return call


@pytest.fixture
def refused(capsys):
    def call(*arguments):
        capsys.readouterr()
        assert run(["evict", *arguments]) == 2
        said = capsys.readouterr()
        assert said.out == ""
        assert said.err.count("\n") == 1
        assert "internal error" not in said.err
        return said.err

    return call


def valid(text, name):
    body = json.loads(text)
    jsonschema.validate(body, json.loads((schema.FOLDER / name).read_text()))
    return body


BYTES = ("--need", "100 MB", "--bytes-per-token", "131072")


def test_rank_has_the_keys_of_the_contract(out, sequences):
    body = valid(out("rank", sequences, *BYTES, "--policy", "rules", "--format", "json"), "evict-rank-1.json")
    assert body["schema"] == "kvcalc.evict-rank/1"
    (victim,) = body["victims"]
    assert {"id", "reason", "cost", "benefit", "ratio", "mode", "freed_bytes"} <= set(victim)
    assert (victim["id"], victim["ratio"], victim["mode"]) == ("B", 2.0, "recompute")
    assert victim["cost"] == pytest.approx(0.16)  # 2,000 tokens of 0.08 ms
    assert victim["freed_bytes"] == body["freed_bytes"] == 2000 * 131072
    assert [row["id"] for row in body["protected"]] == ["C"]
    assert body["fallback"] is None
    assert body["units"]["victims.cost"] == "second"
    assert body["units"]["inputs.need"] == "byte"


def test_the_fallback_has_its_word(out, tmp_path):
    file = tmp_path / "two.csv"
    file.write_text("id,tokens_done,tokens_remaining\nA,30000,8000\nC,26000,200\n")
    body = json.loads(out("rank", str(file), *BYTES, "--policy", "rules", "--format", "json"))
    assert (body["victims"], body["fallback"]) == ([], "queue_new_request")


def test_without_a_size_it_ranks_and_leaves_bytes_open(out, sequences):
    body = json.loads(out("rank", sequences, "--policy", "ratio", "--format", "json"))
    assert [row["id"] for row in body["victims"]] == ["B", "A"]
    assert body["freed_bytes"] is None
    assert body["victims"][0]["freed_bytes"] is None


def test_a_model_on_a_machine_gives_bytes_times_and_the_price_of_queueing(out, sequences):
    body = json.loads(
        out(
            "rank",
            sequences,
            "--need",
            "100 MB",
            "--model",
            "llama-3.1-8b",
            "--on",
            "l40s",
            "--format",
            "json",
        )
    )
    assert body["victims"][0]["id"] == "B"
    assert body["queue_cost"] > body["cost"] > 0
    # Llama 3.1 8B holds 131,072 bytes a token in 16 bits.
    assert body["victims"][0]["freed_bytes"] == pytest.approx(131072 * body["victims"][0]["dropped_tokens"])


def test_bytes_per_token_may_have_a_unit(out, sequences):
    texts = ("131072", "128 KiB", "128 KiB/token", "131072 B/token")
    asked = ("--policy", "ratio", "--need", "100 MB", "--bytes-per-token")
    answers = {out("rank", sequences, *asked, text) for text in texts}
    assert len(answers) == 1


def test_rank_as_csv_has_a_line_for_each_victim(out, sequences):
    rows = list(csv.DictReader(io.StringIO(out("rank", sequences, "--policy", "ratio", "--format", "csv"))))
    assert [row["id"] for row in rows] == ["B", "A"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--policy", "lrv"), "--policy: unknown policy 'lrv', did you mean 'lru'"),
        (("--policy", "queue"), "--policy: unknown policy 'queue'"),
        (("--need", "100 MB"), "give --bytes-per-token or --model"),
        (("--need", "100"), "--need"),
        (("--need", "100 s", "--bytes-per-token", "1"), "--need"),
        (("--bytes-per-token", "-1"), "--bytes-per-token"),
        (("--model", "llama-3.1-8x"), "llama-3.1-8x"),
        (("--rules", "missing.yaml"), "missing.yaml"),
    ],
)
def test_rank_refuses_in_one_line(refused, sequences, arguments, message):
    assert message in refused("rank", sequences, *arguments)


def test_swap_without_a_tier_is_refused(refused, sequences, tmp_path):
    rules = tmp_path / "rules.yaml"
    rules.write_text("kv_eviction: {preempt_mode: swap}\n")
    said = refused("rank", sequences, *BYTES, "--policy", "ratio", "--rules", str(rules))
    assert "preempt_mode swap needs a tier" in said


def test_explain_shows_this_runs_numbers(out, sequences):
    told = out("rank", sequences, *BYTES, "--policy", "ratio", "--explain")
    assert "price_ratio" in told
    assert "recompute_time" in told


def test_names_from_a_file_cannot_steer_a_terminal_or_a_spreadsheet(out, tmp_path):
    file = tmp_path / "s.json"
    name = "=cmd()\x1b[31m"
    file.write_text(json.dumps([{"id": name, "tokens_done": 2000, "tokens_remaining": 1000}]))
    assert "\x1b" not in out("rank", str(file), "--policy", "ratio")
    assert "'=cmd()" in out("rank", str(file), "--policy", "ratio", "--format", "csv")


def test_simulate_has_its_keys_and_follows_its_schema(out, simulation):
    body = valid(out("simulate", simulation, "--format", "json"), "evict-simulate-1.json")
    policies = ["lru", "ratio", "rules", "cost", "queue"]
    assert [row["policy"] for row in body["rows"] if row["load"] == 1] == policies
    assert {row["load"] for row in body["rows"]} == {0.5, 0.75, 1.0, 1.25, 1.5}
    for row in body["rows"]:
        for times in (row["ttft"], row["itl"], row["total"]):
            assert times["p50"] <= times["p95"] <= times["p99"]
        assert 0 <= row["goodput"] <= row["throughput"]
    assert len(body["stability"]) == 5
    assert [limit["policy"] for limit in body["limits"]] == policies
    assert body["units"]["rows.ttft.p99"] == "second"


def test_a_seed_repeats_and_another_differs(out, simulation):
    first, again, other = (
        out("simulate", simulation, "--seed", seed, "--format", "csv") for seed in ("3", "3", "4")
    )
    assert first == again
    assert first != other


def test_requests_can_be_fewer_for_a_quick_look(out, simulation):
    body = json.loads(out("simulate", simulation, "--requests", "40", "--format", "json"))
    assert {row["requests"] for row in body["rows"]} == {40}


@pytest.mark.parametrize("form", ["table", "markdown", "csv"])
def test_simulate_prints_in_every_format(out, simulation, form):
    text = out("simulate", simulation, "--format", form)
    assert "queue" in text
    if form != "csv":
        assert "Goodput against load" in text


@pytest.mark.parametrize("kind", ["png", "svg"])
def test_the_chart_is_drawn(out, simulation, tmp_path, kind):
    pytest.importorskip("matplotlib", reason="matplotlib is the chart extra")
    file = tmp_path / f"load.{kind}"
    out("simulate", simulation, "--chart-file", str(file))
    content = file.read_bytes()
    assert content.startswith(b"\x89PNG" if kind == "png" else b"<?xml")
    if kind == "svg":
        out("simulate", simulation, "--chart-file", str(file))
        assert file.read_bytes() == content


def test_the_line_marks_where_admission_should_close(out, tmp_path):
    # Short prompts that grow a hundredfold in a small pool, far above what it can serve.
    file = tmp_path / "thrash.yaml"
    text = BARE.replace("rate: 0.8/s", "rate: 4/s").replace("lognormal: [800, 0.6]", "uniform: [500, 700]")
    file.write_text(
        text.replace("[lru, ratio, rules, cost, queue]", "[lru]").replace("pool: 1 GB", "pool: 300 MB")
    )
    body = json.loads(out("simulate", str(file), "--format", "json"))
    (limit,) = body["limits"]
    thrashing = [row["rate"] for row in body["rows"] if row["thrashing"]]
    assert limit["close_admission_rate"] == min(thrashing)
    for row in body["rows"]:
        assert row["thrashing"] == (row["evictions_per_second"] > 5 or row["recomputed_share"] > 0.2)
    assert "| close admission" in out("simulate", str(file))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--seed", "x"), "--seed: 'x' is not a whole number"),
        (("--requests", "1"), "--requests: '1' is not a whole number from 2"),
        (("--chart-file", "a.gif"), "--chart-file a.gif: the name must end in .png or .svg"),
    ],
)
def test_simulate_refuses_in_one_line(refused, simulation, arguments, message):
    assert message in refused("simulate", simulation, *arguments)


@pytest.mark.parametrize("missing", ["pool", "bytes_per_token", "step"])
def test_bare_numbers_must_be_complete(refused, tmp_path, missing):
    file = tmp_path / "s.yaml"
    file.write_text("\n".join(line for line in BARE.splitlines() if not line.startswith(missing)))
    assert "give model and on, or the bare numbers pool, bytes_per_token and step" in refused(
        "simulate", str(file)
    )


def test_the_example_of_sequences_shows_every_reason(out):
    rules = str(EXAMPLES / "eviction-rules.yaml")
    told = out(
        "rank", str(EXAMPLES / "sequences.csv"), "--policy", "rules", "--rules", rules,
        "--need", "3 GB", "--bytes-per-token", "131072", "--format", "json",
    )  # fmt: skip
    for word in (
        "finished",
        "short_low_remaining",
        "long_stalled",
        "near completion",
        "cooldown",
        "priority",
    ):
        assert word in told
    assert "queue_new_request" in told


def test_the_example_of_a_simulation_runs_on_a_model(out):
    body = json.loads(
        out("simulate", str(EXAMPLES / "simulate.yaml"), "--requests", "200", "--format", "json")
    )
    assert body["inputs"]["model"] == "llama-3.1-8b"
    assert {row["policy"] for row in body["rows"]} == {"lru", "lru-guarded", "ratio", "rules", "queue"}


def test_a_bar_on_stderr_and_nothing_but_the_answer_on_stdout(simulation, capsys, monkeypatch):
    from kvcalc.cli import progress

    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert run(["evict", "simulate", simulation, "--format", "json"]) == 0
    said = capsys.readouterr()
    assert "simulating" in said.err
    json.loads(said.out)


def test_the_price_of_queueing_can_be_given(out, sequences):
    asked = ("rank", sequences, *BYTES, "--format", "json")
    # 100 MB are the last 48 blocks of B: 768 tokens of 0.08 ms are 61 ms.
    for wait, fallback in (("50 ms", "queue_new_request"), ("70 ms", None)):
        body = json.loads(out(*asked, "--queue", wait))
        assert body["fallback"] == fallback
        assert body["inputs"]["queue"] == body["queue_cost"]


def test_the_library_answers_as_the_command_line_does(out, sequences, simulation):
    from kvcalc.eviction.rank_answer import evict_rank
    from kvcalc.eviction.simulate_answer import evict_simulate

    ranked = evict_rank(sequences, policy="ratio", need=100e6, bytes_per_token=131072)
    told = json.loads(out("rank", sequences, *BYTES, "--policy", "ratio", "--format", "json"))
    assert ranked.to_dict()["victims"] == told["victims"]
    simulated = json.loads(out("simulate", simulation, "--format", "json"))
    assert evict_simulate(simulation).to_dict()["rows"] == simulated["rows"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("{lognormal: [800, 0.6]}", "100000"),  # every prompt is longer than the pool
        ("{lognormal: [400, 0.6]}", "1"),
        ("requests: 80", "requests: 1"),
        ("max_seqs: 16", "max_seqs: 1\nmax_batched_tokens: 64\nblock_size: 1"),
        ("max_seqs: 16", "watermark: 1"),
        ("deadline: 20 s", "deadline: 0 s\nmax_len: 900"),
        ("[lru, ratio, rules, cost, queue]", "[{policy: rules, mode: queue}, {policy: lru, mode: swap}]"),
    ],
)
@pytest.mark.parametrize("form", ["json", "table"])
def test_odd_engines_and_loads_have_an_answer(out, tmp_path, old, new, form):
    assert old in BARE
    file = tmp_path / "odd.yaml"
    file.write_text(BARE.replace(old, new).replace("requests: 80", "requests: 20"))
    assert "policy" in out("simulate", str(file), "--format", form)


def test_a_pool_of_less_than_a_block_is_refused(refused, tmp_path):
    file = tmp_path / "s.yaml"
    file.write_text(BARE.replace("pool: 1 GB", "pool: 1 MB"))
    assert "the pool holds 10 tokens, less than one block of 16" in refused("simulate", str(file))


def test_rejected_prompts_are_warned_of(out, tmp_path):
    file = tmp_path / "s.yaml"
    file.write_text(BARE.replace("{lognormal: [800, 0.6]}", "100000").replace("requests: 80", "requests: 5"))
    (warning,) = json.loads(out("simulate", str(file), "--format", "json"))["warnings"]
    assert warning.startswith("100% of the prompts are longer than the 10,000 tokens")
