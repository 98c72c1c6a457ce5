"""`kvcalc replay` from the command line: rows, formats, and one line for each wrong input."""

import csv
import io
import json

import pytest

from kvcalc.cli import BAD_INPUT, OK, run


@pytest.fixture
def trace(tmp_path):
    """Write a Mooncake trace of a loop over four requests and return its path."""
    rows = [
        {"timestamp": 1_000 * n, "input_length": 1_024, "output_length": 8, "hash_ids": [0, 1 + n % 4]}
        for n in range(20)
    ]
    file = tmp_path / "loop.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(file)


def answered(capsys, *words):
    status = run(["replay", *words])
    return status, capsys.readouterr()


def test_json_has_a_row_for_each_capacity_and_policy(trace, capsys):
    status, printed = answered(
        capsys,
        trace,
        "--capacity",
        "3 blocks",
        "--capacity",
        "2560 tokens",
        "--policy",
        "lfu",
        "--format",
        "json",
    )
    body = json.loads(printed.out)
    assert (status, printed.err) == (OK, "")
    assert body["schema"] == "kvcalc.replay/1"
    assert [(row["policy"], row["capacity_blocks"]) for row in body["rows"]] == [
        *(("fifo", 3), ("lru", 3), ("lfu", 3), ("belady", 3)),
        *(("fifo", 5), ("lru", 5), ("lfu", 5), ("belady", 5)),
        ("infinite", None),
    ]
    names = {"hit_rate_blocks", "hit_rate_tokens", "restored_bytes", "recomputed_tokens", "evictions"}
    assert names | {"tiers", "tenants"} <= set(body["rows"][0])
    assert body["requests_per_second"] > 0
    # Block 0 is hit by all but the first; of the loop of four others a cache of five hits all.
    lru = {row["capacity_blocks"]: row["hit_blocks"] for row in body["rows"] if row["policy"] == "lru"}
    assert lru == {3: 19, 5: 19 + 16}
    assert body["inputs"]["touch"] == "tail"


def test_csv_is_one_rectangle(trace, capsys):
    _, printed = answered(capsys, trace, "--capacity", "3 blocks", "--format", "csv")
    header, *rows = csv.reader(io.StringIO(printed.out))
    assert len(rows) == 4
    assert "hit_rate_tokens [1]" in header


def test_the_page_says_what_counts(trace, capsys):
    status, printed = answered(capsys, trace, "--capacity", "3 blocks")
    assert status == OK
    for words in ("Hit rates are shares of input tokens", "policy", "belady", "The knee", "weight=token"):
        assert words in printed.out


def test_bytes_need_the_size_of_a_block(trace, capsys):
    status, printed = answered(
        capsys, trace, "--capacity", "3 MB", "--bytes-per-token", "1 kB", "--format", "json"
    )
    assert status == OK
    assert json.loads(printed.out)["rows"][0]["capacity_blocks"] == 5


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--capacity", "3"], "--capacity: '3' has no unit; write '5859 blocks'"),
        (["--capacity", "16M tokens"], "--capacity: '16M' is ambiguous"),
        (["--capacity", "3 MB"], "the bytes of a block are unknown; give --model or --bytes-per-token"),
        (["--policy", "lur"], "unknown policy 'lur', did you mean 'lru'"),
        (["--touch", "middle"], "--touch: unknown word 'middle'; it is one of tail, head"),
        (["--warmup", "150 %"], "warmup: expected a share from 0 to below 1"),
        (["--refine", "100"], "--refine: 100 does not divide the 512 tokens"),
        (["--quota", "hard"], "--quota: loop.jsonl names no tenants"),
        (["--workers", "0"], "--workers: expected a whole number above 0"),
        (["--sample", "some"], "--sample: expected a whole number above 0"),
        (["--tier", "dram"], "--tier"),
        (["--format", "jsn"], "--format: unknown format 'jsn'"),
    ],
)
def test_a_wrong_input_is_one_line(trace, capsys, words, message):
    status, printed = answered(capsys, trace, *words)
    assert status == BAD_INPUT
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    assert message in printed.err


def test_two_tiers_and_finer_blocks_on_the_command_line(trace, capsys):
    words = ("--tier", "dram=4 blocks", "--inclusion", "exclusive", "--refine", "256", "--format", "json")
    status, printed = answered(capsys, trace, "--capacity", "2 blocks", *words)
    body = json.loads(printed.out)
    assert status == OK
    assert body["load"]["block_tokens"] == 256
    assert any("upper estimate" in line for line in body["warnings"])
    (tiered,) = (row for row in body["rows"] if row["tiers"])
    assert [part["tier"] for part in tiered["tiers"]] == ["cache", "dram"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--describe", "--capacity", "3 blocks"), "--capacity: --describe shows no cache"),
        (("--describe", "--policy", "arc"), "--policy: --describe shows no cache"),
        (("--describe", "--chart-file", "a.svg"), "--chart-file: --describe shows no cache"),
        (("--shared-prefix", "16"), "--shared-prefix: is of use with --refine alone"),
        (("--session-every", "3 s"), "--session-every: the dialect mooncake has times of its own"),
    ],
)
def test_options_without_use_are_refused(trace, capsys, words, message):
    status, printed = answered(capsys, trace, *words)
    assert status == BAD_INPUT
    assert message in printed.err
