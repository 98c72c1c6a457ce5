"""Sequence, rules and simulation files: four formats, strict names, one line for each mistake."""

import gzip
import json

import pytest

from kvcalc.catalog.arrivals import read_arrivals
from kvcalc.catalog.eviction_rules import read_rules
from kvcalc.catalog.sequences import read_sequences
from kvcalc.catalog.simulation import read_simulation
from kvcalc.errors import KvcalcError
from kvcalc.eviction.rules import Rules

ROWS = [
    {"id": "A", "tokens_done": 30000, "tokens_remaining": 8000},
    {"id": "B", "tokens_done": 2000, "tokens_remaining": 1000, "state": "suspended", "idle_seconds": 12.5},
]
FORMS = {
    "s.csv": "id,tokens_done,tokens_remaining,state,idle_seconds\n"
    "A,30000,8000,,\nB,2000,1000,suspended,12.5\n\n",
    "s.json": json.dumps(ROWS),
    "under.json": json.dumps({"sequences": ROWS}),
    "s.jsonl": "\n".join(map(json.dumps, ROWS)) + "\n",
    "s.yaml": "- {id: A, tokens_done: 30k, tokens_remaining: 8k}\n"
    "- {id: B, tokens_done: 2k, tokens_remaining: 1k, state: suspended, idle_seconds: 12.5}\n",
}


def write(folder, name, text):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("name", FORMS)
def test_every_format_says_the_same(tmp_path, name):
    first, second = read_sequences(write(tmp_path, name, FORMS[name]))
    assert (first.id, first.tokens_done, first.tokens_remaining, first.state) == (
        "A",
        30_000,
        8_000,
        "running",
    )
    assert (second.state, second.idle_seconds, second.evicted_seconds_ago) == ("suspended", 12.5, None)


def test_an_expected_remainder_takes_the_place_of_a_known_one(tmp_path):
    text = "id,tokens_done,tokens_remaining_p50,tokens_remaining_p95\nA,10,500,900\n"
    (found,) = read_sequences(write(tmp_path, "s.csv", text))
    assert (found.tokens_remaining, found.tokens_remaining_p95) == (500, 900)


HEAD = "id,tokens_done,tokens_remaining"


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "s.csv",
            "id,token_done,tokens_remaining\nA,1,1\n",
            "unknown column 'token_done', did you mean 'tokens_done'",
        ),
        ("s.csv", f"{HEAD},id\nA,1,1,B\n", "column id is there twice"),
        ("s.csv", f"{HEAD}\nA,1\n", "line 2: 2 values for 3 columns"),
        ("s.csv", f"{HEAD}\nA,many,1\n", "line 2: tokens_done"),
        ("s.csv", f"{HEAD}\nA,-1,1\n", "line 2: tokens_done"),
        ("s.csv", f"{HEAD}\nA,1,\n", "tokens_remaining: missing"),
        ("s.csv", f"{HEAD}\nA,1,1\nA,2,2\n", "line 3: id: 'A' is there twice"),
        ("s.csv", f"{HEAD},state\nA,1,1,runing\n", "unknown state 'runing', did you mean 'running'"),
        ("s.csv", f"{HEAD},idle_seconds\nA,1,1,nan\n", "idle_seconds: expected a number"),
        ("s.csv", f"{HEAD},idle_seconds\nA,1,1,-3\n", "idle_seconds: '-3' is below 0"),
        ("s.csv", f"{HEAD},blocks,shared_blocks\nA,1,1,2,3\n", "3 is more than the 2 blocks"),
        ("s.csv", f"{HEAD}\n", "no sequences"),
        ("s.csv", "", "no sequences"),
        ("s.json", '[{"id": "A", "tokens_done": true, "tokens_remaining": 1}]', "tokens_done"),
        ("s.json", '[{"id": "A", "tokens_done": 1.5, "tokens_remaining": 1}]', "tokens_done"),
        ("s.json", '{"sequence": []}', "unknown key, did you mean 'sequences'"),
        ("s.json", "[3]", "sequences 1: expected keys with values"),
        ("s.json", '"x"', "expected a list of sequences"),
        ("s.jsonl", '{"id": "A"\n', "line 1:1: not valid JSON"),
        ("s.txt", "x", "unknown format '.txt'"),
    ],
)
def test_a_bad_sequence_file_is_refused_in_one_line(tmp_path, name, text, message):
    with pytest.raises(KvcalcError) as error:
        read_sequences(write(tmp_path, name, text))
    assert message in str(error.value)
    assert "\n" not in str(error.value)


SPEC = """
kv_eviction:
  preempt_mode: recompute            # or swap, tail, queue
  victim_order: [completed_not_released, short_low_remaining, long_stalled]
  protect:
    - near_completion: remaining < 512
    - high_priority_tenant
  cooldown: 30 s
  fallback: queue_new_request
"""


def test_the_rules_of_the_specification_are_the_defaults(tmp_path):
    assert read_rules(write(tmp_path, "r.yaml", SPEC)) == Rules()


def test_every_limit_can_be_set_in_the_file(tmp_path):
    text = """
kv_eviction:
  victim_order:
    - long_stalled: done >= 8k, idle >= 2 s
    - short_low_remaining: done < 1000 and remaining < 300
  protect: [near_completion: remaining < 64, high_priority_tenant: priority > 5]
  cooldown: 1 min
"""
    assert read_rules(write(tmp_path, "r.yaml", text)) == Rules(
        victim_order=("long_stalled", "short_low_remaining"),
        long=8000,
        stalled=2.0,
        short=1000,
        low_remaining=300,
        near_completion=64,
        high_priority=5.0,
        cooldown=60.0,
    )


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("kv_eviction", "kv_evicton", "did you mean 'kv_eviction'"),
        ("preempt_mode", "preempt_modes", "did you mean 'preempt_mode'"),
        ("recompute ", "recalculate ", "unknown word 'recalculate', did you mean 'recompute'"),
        ("long_stalled", "long_staled", "unknown word 'long_staled', did you mean 'long_stalled'"),
        ("high_priority_tenant", "high_priority_tenants", "did you mean 'high_priority_tenant'"),
        ("queue_new_request", "drop_new_request", "unknown word 'drop_new_request'"),
        (
            "remaining < 512",
            "remaining > 512",
            "is not understood; write remaining < NUMBER",
        ),
        ("remaining < 512", "done < 512", "'done < 512' is not understood"),
        ("remaining < 512", "remaining < few", "near_completion: 'few'"),
        ("30 s", "30", "cooldown"),
        ("30 s", "30 GB", "cooldown"),
        ("[completed_not_released, short_low_remaining, long_stalled]", "long_stalled", "expected a list"),
        ("short_low_remaining, long", "long_stalled, long", "long_stalled is there twice"),
    ],
)
def test_an_unknown_word_of_the_rules_is_refused_by_name(tmp_path, old, new, message):
    assert old in SPEC
    with pytest.raises(KvcalcError) as error:
        read_rules(write(tmp_path, "r.yaml", SPEC.replace(old, new)))
    assert message in str(error.value)


BARE = """
pool: 1 GB
bytes_per_token: 100 kB/token
step: 10 ms
arrivals: {rate: 6/s, prompt: {lognormal: [2000, 1.0]}, generate: 300, requests: 50, seed: 7}
policies: [lru, ratio, rules, queue]
"""


def test_a_simulation_file_is_read(tmp_path):
    found = read_simulation(write(tmp_path, "s.yaml", BARE))
    assert (found.rate, found.seed, len(found.requests), found.step) == (6.0, 7, 50, 0.01)
    assert set(found.requests.generate) == {300}
    assert [tactic.name for tactic in found.tactics] == ["lru", "ratio", "rules", "queue"]
    assert found.tactics[2].rules == Rules()  # only the rule list protects by itself
    assert found.tactics[0].rules.protect == ()
    assert read_simulation(write(tmp_path, "s.yaml", BARE), seed=8, requests=9).requests.prompt.size == 9


def test_a_policy_can_be_named_and_guarded(tmp_path):
    text = BARE.replace(
        "[lru, ratio, rules, queue]",
        "[lru, {policy: lru, name: guarded, protect_remaining: 100, cooldown: 5 s, mode: tail, keep: 0.25}]",
    )
    bare, guarded = read_simulation(write(tmp_path, "s.yaml", text)).tactics
    assert (bare.name, bare.mode, bare.rules.cooldown) == ("lru", "recompute", 0.0)
    assert (guarded.name, guarded.policy, guarded.mode, guarded.keep) == ("guarded", "lru", "tail", 0.25)
    assert (guarded.rules.near_completion, guarded.rules.cooldown) == (100, 5.0)


def test_a_trace_beside_the_file_is_found_and_sorted(tmp_path):
    write(tmp_path, "t.csv", "arrival,prompt,generate,cached\n12,20,5,4\n10,10,3,99\n")
    text = BARE.replace(
        "{rate: 6/s, prompt: {lognormal: [2000, 1.0]}, generate: 300, requests: 50, seed: 7}",
        "{trace: t.csv}",
    )
    found = read_simulation(write(tmp_path, "s.yaml", text))
    assert found.requests.arrival.tolist() == [0.0, 2.0]
    assert found.requests.cached.tolist() == [9, 4]  # the last token of a prompt is always computed
    assert found.rate == 0.5


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("policies", "policy", "unknown key, did you mean 'policies'"),
        ("[lru,", "[lrv,", "unknown policy 'lrv', did you mean 'lru'"),
        ("[lru,", "[ratio,", "'ratio' is there twice"),
        ("[lru,", "[{policy: lru, mode: swop},", "unknown mode 'swop', did you mean 'swap'"),
        ("[lru,", "[{policy: cost, mode: swap},", "chooses the cheapest mode itself"),
        ("[lru,", "[{policy: lru, keep: 2},", "keep: 2 is not between 0 and 1"),
        ("lognormal: [2000, 1.0]", "lognormale: [2000, 1.0]", "did you mean 'lognormal'"),
        ("lognormal: [2000, 1.0]", "lognormal: [2000]", "expected median, sigma"),
        ("lognormal: [2000, 1.0]", "uniform: [20, 10]", "the least one first"),
        ("rate: 6/s", "rate: 6", "rate"),
        ("rate: 6/s", "rate: 0/s", "more than zero"),
        ("rate: 6/s", "rato: 6/s", "unknown key, did you mean 'rate'"),
        ("requests: 50", "requests: 0", "requests"),
        ("requests: 50", "requests: 9999999999", "requests"),
        ("arrivals:", "loads: [0]\narrivals:", "0 is not a multiple of the rate"),
        ("arrivals:", "deadline: soon\narrivals:", "deadline"),
        ("step: 10 ms", "step: 10 GB", "step"),
    ],
)
def test_a_bad_simulation_file_is_refused_in_one_line(tmp_path, old, new, message):
    assert old in BARE
    with pytest.raises(KvcalcError) as error:
        read_simulation(write(tmp_path, "s.yaml", BARE.replace(old, new)))
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("t.jsonl", '{"timestamp": 1000, "input_length": 20, "output_length": 5, "hash_ids": [1]}\n'
                    '{"timestamp": 3500, "input_length": 10, "output_length": 3, "hash_ids": [2]}\n'),
        ("t.csv", "TIMESTAMP,ContextTokens,GeneratedTokens\n"
                  "2023-11-16 18:01:51.0000000,20,5\n2023-11-16 18:01:53.5000000,10,3\n"),
    ],
)  # fmt: skip
def test_public_traces_are_read_under_their_own_names(tmp_path, name, text):
    found = read_arrivals(write(tmp_path, name, text))
    assert found.arrival.tolist() == [0.0, 2.5]
    assert found.prompt.tolist() == [20, 10]
    assert found.generate.tolist() == [5, 3]


def test_traces_with_blocks_are_read_in_every_dialect_and_compressed(tmp_path):
    lines = [
        {"t": 3.5, "in": 640, "out": 0, "hash_ids": [[1, 10]], "block_size": 64},
        {"t": 1.0, "in": 130, "out": 5, "hash_ids": [[1, 2]], "block_size": 64},
    ]
    file = tmp_path / "t.jsonl.gz"
    file.write_bytes(gzip.compress("".join(json.dumps(line) + "\n" for line in lines).encode()))
    found = read_arrivals(str(file))
    assert found.arrival.tolist() == [0.0, 2.5]
    assert found.prompt.tolist() == [130, 640]
    assert found.generate.tolist() == [5, 1]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([{"t": 1, "in": 64, "out": 1, "hash_ids": [1]}], "two requests or more"),
        ([{"t": 1, "in": 64, "out": 1, "hash_ids": [1]}] * 2, "all requests arrive at once"),
        ([{"t": None, "in": 64, "out": 1, "hash_ids": [1]}] * 2, "without a time of arrival"),
        ([{"t": 1, "in": -64, "out": 1, "hash_ids": [1]}] * 2, ":1: in: -64 is negative"),
    ],
)
def test_a_bad_trace_with_blocks_is_refused_in_one_line(tmp_path, lines, message):
    file = write(tmp_path, "t.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(KvcalcError) as error:
        read_arrivals(file)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("arrival,prompt\n1,2\n", "generate: missing"),
        ("arrival,prompt,generate\n1,2,3\n", "two requests or more"),
        ("arrival,prompt,generate\n1,2,3\n1,2,3\n", "all requests arrive at once"),
        ("arrival,prompt,generate\n1,0,3\n", "prompt"),
        ("arrival,prompt,input_length\n1,2,3\n", "unknown key"),
        ("arival,prompt,generate\n1,2,3\n", "did you mean 'arrival'"),
        ("TIMESTAMP,ContextTokens,GeneratedTokens\nnoon,2,3\n", "is not a date and time"),
    ],
)
def test_a_bad_trace_is_refused_in_one_line(tmp_path, text, message):
    with pytest.raises(KvcalcError) as error:
        read_arrivals(write(tmp_path, "t.csv", text))
    assert message in str(error.value)
