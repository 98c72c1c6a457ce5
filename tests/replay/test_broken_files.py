"""Broken lines, cut files, wrong numbers: refused with the line, or counted; never silently wrong."""

import gzip
import json
import os
import threading

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kvcalc.errors import KvcalcError, ProfileError
from kvcalc.replay.readers import DIALECTS, Asked, read_trace, stream
from kvcalc.replay.readers.ragpulse import LENGTHS
from tests.replay.conftest import expanded, found, row

GOOD = row([0, 1], 1024)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"timestamp": 1, "input_', r":2: not valid JSON"),
        ("NaN", ":2: not"),
        ("[1, 2]", ":2: not a JSON object"),
        (row([0], -5), ":2: input_length: -5 is negative"),
        (row([0], 1.5), "input_length: 1.5 is not a whole number"),
        (row([0], "7"), "input_length: '7' is not a whole number"),
        (row([0], True), "input_length: True is not a whole number"),
        (row([0], 2**50), "is more than any request has"),
        (row([0], 5, time="soon"), "timestamp: 'soon' is not a time"),
        (row([0], 5, output=-1), "output_length: -1 is negative"),
        (row([0, 1.5], 600), "1.5 is neither a whole number nor a text"),
        (row([0, None], 600), "nothing is neither"),
        (row([True, 2], 600), "block ids: True is neither a whole number nor a text"),
        (row([7, False], 600), "block ids: False is neither"),
        (row([[7, True]], 600), "block ids: True is neither"),
        (row([0, 2**64], 600), "block ids: a number of more than 64 bits; write such ids as texts"),
        (row([0, -(2**63) - 1], 600), "more than 64 bits"),
        (row([0, [1]], 600), "neither a list of ids nor"),
        (row([[0, 0]], 600), "a run is"),
        (row([[0, 1, 2]], 600), "a list is neither"),
        (row("01", 600), "hash_ids: expected a list"),
        ({"timestamp": 1, "input_length": 5, "output_length": 1}, "hash_ids: missing"),
        ({"timestamp": 1, "hash_ids": [0]}, "input_length: missing"),
        (row([0], 5, session_id={"a": 1}), "session_id: keys with values is not a name"),
        (row([0], 5, block_size=0), "block_size: 0 is no size of a block"),
    ],
)
def test_a_broken_line_is_refused_with_its_number_or_counted(read, line, message):
    with pytest.raises(ProfileError, match=message):
        read([GOOD, line, GOOD])
    trace = read([GOOD, line, GOOD], skip_broken=True)
    assert expanded(trace) == [[0, 1], [0, 1]]
    assert found(trace, "broken_lines").count == 1
    assert found(trace, "broken_lines").lines == (2,)
    assert found(trace, "broken_lines").warning


@pytest.mark.parametrize("parser", ["orjson", "json"])
def test_ids_of_more_than_64_bits_are_refused_by_both_parsers(read, monkeypatch, parser):
    if parser == "orjson":
        pytest.importorskip("orjson", reason="the extra orjson is not installed")
    else:
        monkeypatch.setattr(stream, "import_module", lambda name: (_ for _ in ()).throw(ImportError(name)))
    assert expanded(read([row([2**64 - 1, -(2**63)], 600)])) == [[0, 1]]
    for wrong in (2**64, -(2**63) - 1, 2**80):
        with pytest.raises(ProfileError, match="block ids: a number of more than 64 bits"):
            read([row([5, wrong], 600)])


def test_mixed_block_sizes_are_refused_with_the_line(read):
    lines = [{**GOOD, "block_size": 512}, {**GOOD, "block_size": 256}]
    with pytest.raises(ProfileError, match=r":2: block_size: 256, but the lines before have 512; mixed"):
        read(lines)
    assert read(lines, skip_broken=True).requests == 1


@pytest.mark.parametrize("content", [b"", b"\n\n", b"   \n"])
@pytest.mark.parametrize("name", ["t.jsonl", "t.json", "t.jsonl.gz"])
def test_empty_files_are_refused(tmp_path, content, name):
    file = tmp_path / name
    file.write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    with pytest.raises(ProfileError, match=r"empty|no request"):
        read_trace(str(file))


def test_a_last_line_that_is_cut_says_so(tmp_path):
    file = tmp_path / "t.jsonl"
    file.write_text(json.dumps(GOOD) + "\n" + json.dumps(GOOD)[:30])
    with pytest.raises(ProfileError, match=":2: not valid JSON, and the last line: the file may be cut off"):
        read_trace(str(file))


def packed(content, name):
    if name.endswith("zst"):
        return pytest.importorskip("backports.zstd", reason="the extra zstd is not installed").compress(
            content
        )
    return gzip.compress(content)


@pytest.mark.parametrize("name", ["t.jsonl.gz", "t.jsonl.zst"])
def test_compressed_files_are_read_and_cut_ones_noticed(tmp_path, name):
    lines = [row([number], 512, number) for number in range(4000)]
    content = "".join(json.dumps(line) + "\n" for line in lines).encode()
    file = tmp_path / name
    whole = packed(content, name)
    file.write_bytes(whole)
    assert read_trace(str(file)).requests == 4000
    file.write_bytes(whole[:-1] if name.endswith("zst") else whole[:-9])
    with pytest.raises(ProfileError, match="cut off or damaged"):
        read_trace(str(file))
    file.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ProfileError, match="cut off or damaged"):
        read_trace(str(file))
    try:
        trace = read_trace(str(file), asked=Asked(skip_broken=True))
    except ProfileError as error:
        assert "no request" in str(error)  # noqa: PT017 - nothing could be unpacked
    else:
        assert found(trace, "cut_off").warning
        assert trace.requests < 4000


def test_the_name_does_not_decide_how_a_file_is_packed(tmp_path):
    file = tmp_path / "plain.jsonl.gz"
    file.write_text(json.dumps(GOOD) + "\n")
    assert read_trace(str(file)).requests == 1


def test_a_missing_file_and_an_empty_folder_are_named(tmp_path):
    with pytest.raises(ProfileError, match="no such file"):
        read_trace(str(tmp_path / "none.jsonl"))
    (tmp_path / "empty").mkdir()
    with pytest.raises(ProfileError, match=r"no .json or .jsonl file"):
        read_trace(str(tmp_path / "empty"))


def test_an_endless_line_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(stream, "MOST_LINE", 1000)
    file = tmp_path / "t.jsonl"
    file.write_bytes(b'{"a": "' + b"x" * 5000)
    with pytest.raises(ProfileError, match=":1: a line of more than"):
        read_trace(str(file))


def test_a_byte_order_mark_is_passed_over(tmp_path):
    file = tmp_path / "t.jsonl"
    file.write_bytes(b"\xef\xbb\xbf" + json.dumps(GOOD).encode())
    assert read_trace(str(file)).requests == 1


def test_ids_that_do_not_fit_together_are_refused(read):
    with pytest.raises(ProfileError, match="single block ids after runs"):
        read([row([[0, 2]], 1024), row([5], 5)])
    with pytest.raises(ProfileError, match="runs of block ids after single ids"):
        read([row([5], 5), row([[0, 2]], 1024)])


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=8,
)
KEYS = (
    *(
        "timestamp",
        "input_length",
        "output_length",
        "hash_ids",
        "session_id",
        "delay",
        "block_size",
        "t",
        "in",
    ),
    *(
        "out",
        "requests",
        "chat_id",
        "parent_chat_id",
        "schema",
        "version",
        "hash_id_scope",
        "event",
        "events",
    ),
    *(
        "ts",
        "type",
        "block_hashes",
        "parent_block_hash",
        "tokens",
        "input",
        "messages",
        "num_turns",
        "request",
    ),
)
rows = st.dictionaries(st.sampled_from(KEYS), json_values, max_size=8)


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    st.lists(rows, min_size=1, max_size=4),
    st.sampled_from([None, *(one.name for one in DIALECTS)]),
    st.booleans(),
)
def test_whatever_a_file_holds_it_is_read_or_refused_in_one_line(tmp_path, lines, dialect, skip):
    file = tmp_path / "fuzz.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    try:
        trace = read_trace(str(file), dialect, Asked(skip_broken=skip))
    except KvcalcError as error:
        assert "\n" not in str(error)  # noqa: PT017 - either is well
    else:
        assert (trace.input_tokens >= 0).all()
        assert (trace.run_blocks >= 1).all()


parts = st.dictionaries(
    st.sampled_from(("sys_prompt", "passages_ids", "history", "other")), json_values, max_size=4
)


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    st.lists(st.fixed_dictionaries({"hash_ids": parts, "input_length": json_values}), min_size=1, max_size=3)
)
def test_whatever_components_a_file_holds(tmp_path, lines):
    for name in LENGTHS:
        (tmp_path / f"{name}.jsonl").write_text('{"some_id": 1, "token_length": 5}\n')
    file = tmp_path / "0_trace.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    try:
        assert read_trace(str(file), "ragpulse").requests == len(lines)
    except KvcalcError as error:
        assert "\n" not in str(error)  # noqa: PT017 - either is well


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.binary(max_size=200))
def test_whatever_bytes_a_file_holds(tmp_path, content):
    for name in ("fuzz.jsonl", "fuzz.json"):
        file = tmp_path / name
        file.write_bytes(content)
        with pytest.raises(KvcalcError):
            read_trace(str(file))


def test_requests_without_blocks_stand_among_runs(read):
    line = {"t": 1.0, "in": 3, "out": 1, "block_size": 64}
    trace = read(
        [{**line, "hash_ids": []}, {**line, "in": 128, "hash_ids": [[4, 2]]}, {**line, "hash_ids": []}]
    )
    assert expanded(trace) == [[], [0, 1], []]
    assert found(trace, "no_blocks").count == 2


def test_a_session_with_a_broken_request_is_left_out_whole(read):
    def session(name, *ids):
        calls = [{"t": 0, "in": 64 * len(one), "out": 1, "hash_ids": one} for one in ids]
        return {"id": name, "block_size": 64, "requests": calls}

    trace = read(
        [session("a", [1], [1, 2]), session("b", [1], [1, 2.5]), session("c", [9])], skip_broken=True
    )
    assert expanded(trace) == [[0], [0, 1], [2]]
    assert found(trace, "broken_lines").lines == (2,)


def test_ids_of_many_scopes_stay_apart_whatever_their_numbers(read):
    def call(ids):
        return {"t": 0, "in": 64 * len(ids), "out": 1, "hash_ids": ids}

    sessions = [
        {"id": "a", "block_size": 64, "requests": [call([2**50, 5])]},
        {"id": "b", "block_size": 64, "requests": [call([2**50, 5]), call([2**50, 5, "x"])]},
    ]
    assert expanded(read(sessions)) == [[0, 1], [2, 3], [2, 3, 4]]
    assert expanded(read(sessions[1:])) == [[0, 1], [0, 1, 2]]
    small = {"id": "c", "block_size": 64, "requests": [call([5]), call([5, 2**50]), call([5, "x"])]}
    assert expanded(read([small])) == [[0], [0, 1], [0, 2]]


@pytest.mark.parametrize("content", [b"# Traces, and what they hold\n", b"\x89PN,G\x00\xff\n", b"one, two\n"])
def test_what_is_no_table_is_not_called_one(tmp_path, content):
    file = tmp_path / "t.jsonl"
    file.write_bytes(content)
    with pytest.raises(ProfileError, match=":1: not valid JSON"):
        read_trace(str(file))
    file.write_bytes(b"TIMESTAMP,ContextTokens\n1,2\n")
    with pytest.raises(ProfileError, match=":1: a table such as CSV"):
        read_trace(str(file))


def piped(tmp_path, lines):
    """Return a pipe that lines are written into."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    content = "".join(json.dumps(line) + "\n" for line in lines)
    threading.Thread(target=pipe.write_text, args=(content,), daemon=True).start()
    return str(pipe)


def test_a_pipe_is_read_once(tmp_path):
    path = piped(tmp_path, [GOOD] * 600)
    assert read_trace(path, told=lambda done, whole: None).requests == 600


def test_a_pipe_that_would_have_to_be_read_again_is_refused(tmp_path):
    lines = [row([100 * one], 512, one, session_id=f"s{one}") for one in range(9)]
    path = piped(tmp_path, [*lines, row([7], 512, session_id="s0", delay=9)])
    with pytest.raises(ProfileError, match="a pipe cannot be read again; add --dialect mooncake-delta"):
        read_trace(path)


def test_a_broken_line_in_a_folder_is_named_with_its_file(tmp_path):
    good = json.dumps(GOOD) + "\n"
    (tmp_path / "a.jsonl").write_text(good * 3)
    (tmp_path / "b.jsonl").write_text(good + "{broken\n" + good)
    with pytest.raises(ProfileError, match=r"b\.jsonl:2: not valid JSON"):
        read_trace(str(tmp_path))
    told = found(read_trace(str(tmp_path), None, Asked(skip_broken=True)), "broken_lines")
    assert "the first is line 2 of b.jsonl: not valid JSON" in told.text


def test_a_request_that_fits_no_block_size_is_named_with_its_file(tmp_path):
    good = json.dumps(GOOD) + "\n"
    (tmp_path / "a.jsonl").write_text(good * 3)
    (tmp_path / "b.jsonl").write_text(good + json.dumps(row([0, 1, 2], 5)) + "\n")
    with pytest.raises(ProfileError, match=r"b\.jsonl:2: 3 blocks of 512 tokens for an input of 5, though"):
        read_trace(str(tmp_path))


@pytest.mark.parametrize(
    ("requests", "name", "text"),
    [
        ([row([0, 1], 1000), row([0, 1], 1024)], "partial_last_block", "1 request ends in a block that is"),
        ([row([0, 1], 1000)] * 2, "partial_last_block", "2 requests end in a block that is"),
        ([row([], 5), row([0, 1], 1024)], "no_blocks", "1 request has no block"),
        ([row([], 5), row([], 5), row([0, 1], 1024)], "no_blocks", "2 requests have no block"),
    ],
)
def test_one_request_is_told_as_one(read, requests, name, text):
    assert found(read(requests), name).text.startswith(text)
